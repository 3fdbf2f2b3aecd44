"""The connections of Python's own sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import work_through

T = TypeVar("T")


class SqliteConnection:
    name = "a sqlite3 connection"
    system = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.own = connection

    def check(self, dialect: Dialect) -> None:
        self._look(dialect.check(None), dialect)  # which takes a few microseconds; nothing can be remembered of it

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            with _taking_part(self.own):
                return self._look(steps, dialect)
        except sqlite3.Error as error:
            raise dialect.meaning(error) from error

    def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        def execute(statement: Statement) -> list[Row]:
            cursor = self.own.cursor()
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


@contextmanager
def _taking_part(connection: sqlite3.Connection) -> Iterator[None]:
    """Within the caller's transaction; where there is none, in one that begins here as the connection's settings say.

    By itself sqlite3 would begin one only before a statement that writes, and ours may read first.
    """
    begin, commits = beginning(connection, control_of(connection))
    if begin is None:
        yield
        return
    connection.execute(begin)
    try:
        yield
        if commits:
            connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # it holds nothing of the caller's
            connection.execute("rollback")
        raise


class Connection(Protocol):
    """What the connections of sqlite3 and aiosqlite have in common."""

    @property
    def in_transaction(self) -> bool: ...

    @property
    def isolation_level(self) -> str | None: ...


BY_LEVEL = -1
"""What `autocommit`, which there is since Python 3.12, says where the isolation level decides."""


def control_of(connection: sqlite3.Connection) -> int:
    return getattr(connection, "autocommit", BY_LEVEL)


def beginning(connection: Connection, control: int) -> tuple[str | None, bool]:
    """The statement with which a transaction has to begin, none where one is open; and whether to commit it as well."""
    if connection.in_transaction:
        return None, False
    commits = connection.isolation_level is None if control == BY_LEVEL else bool(control)
    return ("begin immediate" if commits else f"begin {connection.isolation_level or ''}"), commits
