"""pgqueuer on asyncpg and uvloop: coroutines as bodies, which it runs fastest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import script
import tally
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

CHUNK = 5_000


@asynccontextmanager
async def factory() -> AsyncIterator[PgQueuer]:
    """What its worker command loads."""
    connection = await asyncpg.connect(script.url())
    try:
        app = PgQueuer(AsyncpgDriver(connection))

        @app.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.body()

        @app.entrypoint("stamped")
        async def stamped(job: Job) -> None:
            tally.stamped(int(job.payload or b"0"))

        yield app
    finally:
        await connection.close()


def with_queries(act: Callable[[Queries], Awaitable[None]]) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(script.url())
        await act(Queries(AsyncpgDriver(connection)))
        await connection.close()

    uvloop.run(run())


def setup() -> None:
    with_queries(lambda queries: queries.install())


def enqueue(n: int) -> None:
    with_queries(lambda queries: script.aone_by_one(lambda: queries.enqueue("noop", None), n))


def enqueue_async(n: int, callers: int) -> None:
    async def run() -> None:
        async with asyncpg.create_pool(script.url(), min_size=10, max_size=10) as pool:
            queries = Queries(AsyncpgPoolDriver(pool))
            await script.many_callers(lambda: queries.enqueue("noop", None), n, callers)

    uvloop.run(run())


def bulk(n: int) -> None:
    async def fill(queries: Queries, jobs: int) -> None:
        for first in range(0, jobs, CHUNK):
            size = min(CHUNK, jobs - first)
            await queries.enqueue(["noop"] * size, [None] * size, [0] * size)

    with_queries(lambda queries: script.aall_at_once(lambda jobs: fill(queries, jobs), n))


def ping(n: int) -> None:
    with_queries(lambda queries: script.aping(lambda sent: queries.enqueue("stamped", b"%d" % sent), n))


def wake() -> None:
    with_queries(lambda queries: queries.enqueue("stamped", b"1"))
