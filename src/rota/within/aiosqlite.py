"""aiosqlite's connections."""

from __future__ import annotations

import sqlite3
from asyncio import CancelledError, ensure_future, shield
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import aiosqlite

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import awork_through
from rota.within.sqlite import BY_LEVEL, beginning

T = TypeVar("T")


class AiosqliteConnection:
    name = "an aiosqlite connection"
    system = "sqlite"

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self.own = connection

    async def acheck(self, dialect: Dialect) -> None:
        await self._look(dialect.check(None), dialect)

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            async with _taking_part(self.own):
                return await self._look(steps, dialect)
        except sqlite3.Error as error:
            raise dialect.meaning(error) from error

    async def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        async def execute(statement: Statement) -> list[Row]:
            async with self.own.cursor() as cursor:
                cursor.row_factory = None  # whatever the caller made of its rows
                await cursor.execute(*statement.named())
                return [] if cursor.description is None else list(await cursor.fetchall())

        try:
            return await awork_through(steps, dialect, execute)
        except sqlite3.Error as error:
            raise dialect.meaning(error) from error


@asynccontextmanager
async def _taking_part(connection: aiosqlite.Connection) -> AsyncIterator[None]:
    """As for sqlite3's own: within the caller's transaction, or in one that begins here as the connection's settings say."""
    control = BY_LEVEL if connection.in_transaction else await _control_of(connection)
    begin, commits = beginning(connection, control)
    if begin is None:
        yield
        return
    await _begin(connection, begin)
    try:
        yield
        if commits:
            await connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # it holds nothing of the caller's
            with suppress(sqlite3.Error):  # the commit was done after all, where it is this that was cancelled
                await connection.execute("rollback")
        raise


async def _begin(connection: aiosqlite.Connection, statement: str) -> None:
    """A caller that is cancelled does not keep the connection's own thread from beginning, and nobody would end that."""
    begun = ensure_future(connection.execute(statement))
    try:
        await shield(begun)
    except CancelledError:
        with suppress(sqlite3.Error):
            await begun
            await connection.execute("rollback")
        raise


async def _control_of(connection: aiosqlite.Connection) -> int:
    """sqlite3 tells it in the connection's own thread alone, and aiosqlite has no word for it."""
    try:
        control: int = await connection._execute(lambda: connection._conn.autocommit)  # type: ignore[attr-defined,no-untyped-call]
    except AttributeError:
        return BY_LEVEL
    return control
