"""huey on SQLite, Postgres or Redis: no results kept, which is its fastest, and as durable as it is by default."""

from __future__ import annotations

import script
import tally
from huey import Huey, PostgresHuey, RedisHuey, SqliteHuey


def open_huey(url: str) -> Huey:
    if url.startswith("sqlite:///"):
        return SqliteHuey(filename=url.removeprefix("sqlite:///"), results=False)
    if url.startswith("redis:"):
        return RedisHuey(url=url, results=False)
    return PostgresHuey(dsn=url, results=False)


huey = open_huey(script.url())


@huey.task()
def noop() -> None:
    tally.body()


@huey.task()
def stamped(sent: int) -> None:
    tally.stamped(sent)


def setup() -> None:
    """Its tables are made as it opens."""


def enqueue(n: int) -> None:
    script.one_by_one(noop, n)


def bulk(n: int) -> None:
    """It has no bulk call, so this only fills the queue."""

    def fill(jobs: int) -> None:
        for _ in range(jobs):
            noop()

    script.all_at_once(fill, n)


def ping(n: int) -> None:
    script.ping(stamped, n)


def wake() -> None:
    stamped(1)
