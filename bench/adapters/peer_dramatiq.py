"""dramatiq on Redis: plain functions as bodies and its default middleware, which retries what fails."""

from __future__ import annotations

import dramatiq
import script
import tally
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=script.url()))


@dramatiq.actor
def noop() -> None:
    tally.body()


@dramatiq.actor
def stamped(sent: int) -> None:
    tally.stamped(sent)


def setup() -> None:
    """It needs nothing made beforehand."""


def enqueue(n: int) -> None:
    script.one_by_one(noop.send, n)


def bulk(n: int) -> None:
    """It has no bulk call, so this only fills the queue."""

    def fill(jobs: int) -> None:
        for _ in range(jobs):
            noop.send()

    script.all_at_once(fill, n)


def ping(n: int) -> None:
    script.ping(stamped.send, n)


def wake() -> None:
    stamped.send(1)
