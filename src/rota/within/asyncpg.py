"""asyncpg's connections, and those that its pool lends."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import awork_through, weakly

T = TypeVar("T")

_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class AsyncpgConnection:
    name = "an asyncpg connection"
    system = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def acheck(self, dialect: Dialect) -> None:
        lent = getattr(self._connection, "_con", None)  # what a pool lends is another each time, around the same connection
        await self._look(dialect.check(weakly(lent or self._connection)), dialect)

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            async with nullcontext() if self._connection.is_in_transaction() else self._connection.transaction():
                return await self._look(steps, dialect)
        except _ERRORS as error:
            raise dialect.meaning(error) from error

    async def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        async def execute(statement: Statement) -> list[Row]:
            text, values = statement.numbered()
            return [tuple(row) for row in await self._connection.fetch(text, *values)]

        try:
            return await awork_through(steps, dialect, execute)
        except _ERRORS as error:
            raise dialect.meaning(error) from error
