"""An idle worker starts what comes at once, by being rung; the poll is for when nothing rings."""

from __future__ import annotations

import threading
import time
from typing import Any

from rota import Rota
from rota.model import State
from rota.stores.base import Store
from working import eventually, working

PATIENCE = 30.0
LONG_POLL = 20.0
PROMPT = 5.0
"""Seconds that are far below the poll, and far above what a busy machine needs to start a job."""


def test_single_jobs_start_long_before_the_poll(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    with working(app, poll=LONG_POLL):
        for _ in range(10):
            before = time.monotonic()
            assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
            assert time.monotonic() - before < PROMPT


class Looked:
    """The store, with a note of each look for queued jobs."""

    def __init__(self, store: Store, looks: list[str]) -> None:
        self._store = store
        self.looks = looks

    def twin(self) -> Looked:
        return Looked(self._store.twin(), self.looks)

    def queues(self) -> list[str]:
        self.looks.append("queues")
        return self._store.queues()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_an_idle_worker_looks_again_each_poll_for_as_long_as_it_sleeps(app: Rota) -> None:
    looked = Looked(app.store, [])
    app.holding._store = looked  # type: ignore[assignment]
    with working(app, poll=0.05):
        eventually(lambda: any(row.asleep for row in app.workers()))
        looked.looks.clear()
        eventually(lambda: len(looked.looks) >= 10)


def test_the_first_job_ever_on_a_queue_nobody_knew_starts_promptly(app: Rota) -> None:
    with working(app, poll=LONG_POLL):
        eventually(lambda: app.workers())

        @app.task(queue="quite new")
        def quick() -> None: ...

        before = time.monotonic()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT


def test_a_backlog_does_not_hide_a_queue_that_is_new(app: Rota) -> None:
    begun = threading.Event()

    @app.task
    def steady() -> None:
        begun.set()
        time.sleep(0.02)

    @app.task
    def urgent() -> None: ...

    steady.enqueue_many([()] * 2_000)
    with working(app, poll=LONG_POLL, concurrency=2, shutdown_timeout=0.5):
        assert begun.wait(PATIENCE)
        before = time.monotonic()
        assert urgent.using(queue="quite new", priority=100).enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT


def test_what_another_process_of_the_app_enqueues_starts_promptly(store_url: str) -> None:
    if store_url.startswith("memory:"):
        return  # it is one process's own
    with Rota(store_url) as app, Rota(store_url) as other:

        @app.task(name="quick")
        def quick() -> None: ...

        with working(app, poll=LONG_POLL):
            other.send("quick").wait(PATIENCE)
            before = time.monotonic()
            assert other.send("quick").wait(PATIENCE).status is State.SUCCEEDED
            assert time.monotonic() - before < PROMPT


def test_a_job_due_sooner_than_all_others_starts_when_due(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    quick.using(delay=3600).enqueue()
    with working(app, poll=LONG_POLL):
        eventually(lambda: app.workers())
        before = time.monotonic()
        assert quick.using(delay=0.5).enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT


def test_a_retry_by_hand_wakes_the_worker(app: Rota) -> None:
    tried = []

    @app.task(max_attempts=1)
    def bad() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise ValueError("no")

    with working(app, poll=LONG_POLL):
        job = bad.enqueue().wait(PATIENCE)
        before = time.monotonic()
        assert job.retry().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT


def test_an_idle_worker_rests(app: Rota) -> None:
    """It neither turns in a circle nor writes: its threads use next to no time."""
    with working(app, poll=LONG_POLL):
        eventually(lambda: app.workers())
        pause = threading.Event()
        pause.wait(1.5)  # the looks that follow falling asleep
        before = time.process_time()
        pause.wait(1.0)
        assert time.process_time() - before < 0.3


def test_an_outcome_is_written_promptly_though_nothing_else_happens(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def slow() -> None:
        go.wait(PATIENCE)

    with working(app, poll=LONG_POLL, concurrency=2):
        job = slow.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
        before = time.monotonic()
        go.set()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT
