"""A worker that sleeps takes up jobs that were edited while they waited, as soon as it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rota import Rota, Task
from rota.model import State
from working import eventually, working

PATIENCE = 30.0
LONG_POLL = 20.0
PROMPT = 5.0
"""Seconds that are far below the poll, and far above what a busy machine needs."""


@pytest.fixture
def quick(app: Rota) -> Iterator[Task[..., Any, Any]]:
    """A task that ends at once, and a worker that sleeps."""

    @app.task(name="quick")
    def quick() -> None: ...

    with working(app, queues=["default"], poll=LONG_POLL):
        quick.enqueue().wait(PATIENCE)
        yield quick


@pytest.mark.parametrize("delay", [0, 0.3])
def test_a_job_that_is_made_due_sooner_starts_then(quick: Task[..., Any, Any], delay: float) -> None:
    job = quick.using(delay=3600).enqueue()
    before = time.monotonic()
    job.edit(delay=delay)
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert time.monotonic() - before < PROMPT


def test_a_job_that_is_moved_to_a_queue_of_the_worker_starts(quick: Task[..., Any, Any]) -> None:
    job = quick.using(queue="of nobody").enqueue()
    before = time.monotonic()
    job.edit(queue="default")
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert time.monotonic() - before < PROMPT


def test_a_held_job_with_a_greater_priority_starts_first(app: Rota) -> None:
    go, ran = threading.Event(), list[int]()

    @app.task(concurrency=1)
    def limited(number: int) -> None:
        go.wait(PATIENCE)
        ran.append(number)

    jobs = limited.enqueue_many([(number,) for number in range(4)])
    with working(app, poll=LONG_POLL):
        eventually(lambda: [job.refresh().status for job in jobs[1:]] == [State.HELD] * 3)
        jobs[3].edit(priority=1)
        go.set()
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert ran == [0, 3, 1, 2]
