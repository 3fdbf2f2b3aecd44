"""asyncpg's connections, and those that its pool lends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import awork_through, weakly

T = TypeVar("T")

_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)

_TRIES = 5
"""So often a rollback is sent, if it has to be."""


class AsyncpgConnection:
    name = "an asyncpg connection"
    system = "postgresql"

    def __init__(self, connection: Any) -> None:
        self.own = connection

    async def acheck(self, dialect: Dialect) -> None:
        lent = getattr(self.own, "_con", None)  # what a pool lends is another each time, around the same connection
        await self._look(dialect.check(weakly(lent or self.own)), dialect)

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            async with _taking_part(self.own):
                return await self._look(steps, dialect)
        except _ERRORS as error:
            raise dialect.meaning(error) from error

    async def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        async def execute(statement: Statement) -> list[Row]:
            text, values = statement.numbered()
            return [tuple(row) for row in await self.own.fetch(text, *values)]

        try:
            return await awork_through(steps, dialect, execute)
        except _ERRORS as error:
            raise dialect.meaning(error) from error


@asynccontextmanager
async def _taking_part(connection: Any) -> AsyncIterator[None]:
    """Within the caller's transaction, or in one of its own.

    That is none of asyncpg's: one that is cancelled while it begins has perhaps begun, and stays open on the connection.
    """
    if connection.is_in_transaction():
        yield
        return
    try:
        await connection.execute("begin")
        yield
        await connection.execute("commit")
    except BaseException:
        await _roll_back(connection)  # after a commit it does nothing
        raise


async def _roll_back(connection: Any) -> None:
    """Of a call that was cancelled, the server is told in its own time: what comes next may be what it cancels."""
    for _ in range(_TRIES):
        with suppress(*_ERRORS):
            await connection.execute("rollback")
        if connection.is_closed() or not connection.is_in_transaction():
            break
