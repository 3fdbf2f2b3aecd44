"""taskiq on a Redis stream, the broker of taskiq-redis that acknowledges: coroutines as bodies, no results kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import script
import tally
import uvloop
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(url=script.url())


@broker.task
async def noop() -> None:
    tally.body()


@broker.task
async def stamped(sent: int) -> None:
    tally.stamped(sent)


def started(act: Callable[[], Awaitable[object]]) -> None:
    async def run() -> None:
        await broker.startup()
        await act()
        await broker.shutdown()

    uvloop.run(run())


def setup() -> None:
    """Make the stream's consumer group: it sees only what comes in after that."""
    started(lambda: asyncio.sleep(0))


def enqueue(n: int) -> None:
    started(lambda: script.aone_by_one(noop.kiq, n))


def enqueue_async(n: int, callers: int) -> None:
    started(lambda: script.many_callers(noop.kiq, n, callers))


def bulk(n: int) -> None:
    """It has no bulk call, so this only fills the queue, by fifty callers at once."""

    async def fill(jobs: int) -> None:
        async def caller(calls: int) -> None:
            for _ in range(calls):
                await noop.kiq()

        await asyncio.gather(*(caller((jobs + number) // 50) for number in range(50)))

    started(lambda: script.aall_at_once(fill, n))


def ping(n: int) -> None:
    started(lambda: script.aping(stamped.kiq, n))


def wake() -> None:
    started(lambda: stamped.kiq(1))
