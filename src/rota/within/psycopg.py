"""psycopg's connections."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, TypeVar

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import awork_through, work_through

T = TypeVar("T")


class PsycopgConnection:
    name = "a psycopg connection"
    system = "postgresql"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.own = connection

    def check(self, dialect: Dialect) -> None:
        if _pipelines(self.own):  # errors of what the caller did before come out here, and are the caller's
            with self.own.pipeline():
                pass
        self._look(dialect.check(self.own), dialect)

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            with self.own.transaction() if _commits_each(self.own) else nullcontext():
                return self._look(steps, dialect)
        except psycopg.Error as error:
            raise dialect.meaning(error) from error

    def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            with psycopg.RawCursor(self.own, row_factory=tuple_row) as cursor:  # whatever the caller made of its own

                def execute(statement: Statement) -> list[Row]:
                    text, values = statement.numbered()
                    # In the caller's own pipeline an answer comes only at its end, and the next query depends on it.
                    with self.own.pipeline() if _pipelines(self.own) else nullcontext():
                        cursor.execute(text.encode(self.own.info.encoding), values)
                    return [] if cursor.description is None else list(cursor.fetchall())

                return work_through(steps, dialect, execute)
        except psycopg.Error as error:
            raise dialect.meaning(error) from error


class AsyncPsycopgConnection:
    name = "an async psycopg connection"
    system = "postgresql"

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.own = connection

    async def acheck(self, dialect: Dialect) -> None:
        if _pipelines(self.own):
            async with self.own.pipeline():
                pass
        await self._look(dialect.check(self.own), dialect)

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            async with self.own.transaction() if _commits_each(self.own) else nullcontext():
                return await self._look(steps, dialect)
        except psycopg.Error as error:
            raise dialect.meaning(error) from error

    async def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            async with psycopg.AsyncRawCursor(self.own, row_factory=tuple_row) as cursor:

                async def execute(statement: Statement) -> list[Row]:
                    text, values = statement.numbered()
                    async with self.own.pipeline() if _pipelines(self.own) else nullcontext():
                        await cursor.execute(text.encode(self.own.info.encoding), values)
                    return [] if cursor.description is None else list(await cursor.fetchall())

                return await awork_through(steps, dialect, execute)
        except psycopg.Error as error:
            raise dialect.meaning(error) from error


def _commits_each(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def _pipelines(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return connection.info.pipeline_status is not PipelineStatus.OFF
