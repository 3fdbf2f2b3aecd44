"""tinyjobs on SQLite: coroutines as bodies, which it runs fastest."""

from __future__ import annotations

import asyncio

import script
import tally
from tinyjobs import TinyJobs

app = TinyJobs(script.url())


@app.task
async def noop() -> None:
    tally.body()


@app.task
async def stamped(sent: int) -> None:
    tally.stamped(sent)


def setup() -> None:
    app.start()


def enqueue(n: int) -> None:
    script.one_by_one(noop.enqueue, n)


def enqueue_async(n: int, callers: int) -> None:
    asyncio.run(script.many_callers(noop.aenqueue, n, callers))


def bulk(n: int) -> None:
    """It has no bulk call, so this only fills the queue."""

    def fill(jobs: int) -> None:
        for _ in range(jobs):
            noop.enqueue()

    script.all_at_once(fill, n)


def ping(n: int) -> None:
    script.ping(stamped.enqueue, n)


def wake() -> None:
    stamped.enqueue(1)
