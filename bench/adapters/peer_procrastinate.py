"""procrastinate: coroutines as bodies and async enqueueing, as its documentation advises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import procrastinate
import script
import tally

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=script.url()))


@app.task(name="noop")
async def noop() -> None:
    tally.body()


@app.task(name="stamped")
async def stamped(sent: int) -> None:
    tally.stamped(sent)


def opened(act: Callable[[], Awaitable[object]]) -> None:
    async def run() -> None:
        async with app.open_async():
            await act()

    asyncio.run(run())


def setup() -> None:
    opened(lambda: app.schema_manager.apply_schema_async())


def enqueue(n: int) -> None:
    opened(lambda: script.aone_by_one(lambda: noop.defer_async(), n))


def enqueue_async(n: int, callers: int) -> None:
    opened(lambda: script.many_callers(lambda: noop.defer_async(), n, callers))


def bulk(n: int) -> None:
    async def fill(jobs: int) -> None:
        await noop.batch_defer_async(*({} for _ in range(jobs)))

    opened(lambda: script.aall_at_once(fill, n))


def ping(n: int) -> None:
    opened(lambda: script.aping(lambda sent: stamped.defer_async(sent=sent), n))


def wake() -> None:
    opened(lambda: stamped.defer_async(sent=1))
