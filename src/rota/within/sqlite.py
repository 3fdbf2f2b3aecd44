"""The connections of Python's own sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import work_through

T = TypeVar("T")


class SqliteConnection:
    name = "a sqlite3 connection"
    system = "sqlite"
    known_as = None  # it cannot be referred to weakly, and is quickly asked

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def look(self, steps: Steps[T], dialect: Dialect) -> T:
        def execute(statement: Statement) -> list[Row]:
            cursor = self._connection.cursor()
            cursor.row_factory = None  # whatever the caller made of its rows
            try:
                cursor.execute(*statement.named())
                return [] if cursor.description is None else cursor.fetchall()
            finally:
                cursor.close()

        try:
            return work_through(steps, dialect, execute)
        except sqlite3.Error as error:
            raise dialect.meaning(error) from error

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            with _taking_part(self._connection):
                return self.look(steps, dialect)
        except sqlite3.Error as error:
            raise dialect.meaning(error) from error


@contextmanager
def _taking_part(connection: sqlite3.Connection) -> Iterator[None]:
    """Within the caller's transaction; where there is none, in one that begins here as the connection's settings say.

    By itself sqlite3 would begin one only before a statement that writes, and ours may read first.
    """
    begin = beginning(connection)
    if begin is None:
        yield
        return
    connection.execute(begin)
    try:
        yield
        if commits_by_itself(connection):
            connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # it holds nothing of the caller's
            connection.execute("rollback")
        raise


def beginning(connection: sqlite3.Connection) -> str | None:
    """The statement with which a transaction has to begin; none where one is open."""
    if connection.in_transaction:
        return None
    if commits_by_itself(connection):
        return "begin immediate"
    return f"begin {connection.isolation_level or ''}"


def commits_by_itself(connection: sqlite3.Connection) -> bool:
    """Whether no transaction begins on this connection but by the caller's own `begin`."""
    control = getattr(connection, "autocommit", -1)  # since Python 3.12; -1 says that the isolation level decides
    return connection.isolation_level is None if control == -1 else bool(control)
