"""Workers leave the jobs of a paused queue alone soon after it was paused, and take them up at once when it is resumed."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from rota import Limit, Rota
from rota.model import State
from rota.worker import Worker
from working import eventually, working

PATIENCE = 30.0
LONG_POLL = 20.0
PROMPT = 5.0
"""Seconds that are far below the poll, and far above what a busy machine needs."""


def heard(worker: Worker, *queues: str) -> None:
    """Wait until a worker knows that these queues are paused, and no others."""
    eventually(lambda: worker._ledger is not None and worker._ledger._lookout.paused == set(queues))


@pytest.mark.parametrize("queues", [None, ["mail", "other"]], ids=["all queues", "named queues"])
def test_a_sleeping_worker_hears_of_a_pause_at_once_and_wakes_when_it_ends(app: Rota, queues: list[str] | None) -> None:
    @app.task(queue="mail")
    def quick() -> None: ...

    with working(app, poll=LONG_POLL, queues=queues) as worker:
        quick.enqueue().wait(PATIENCE)
        before = time.monotonic()
        app.pause("mail")
        heard(worker, "mail")
        jobs = quick.enqueue_many([()] * 5)
        marker = quick.using(queue="other").enqueue()
        assert marker.wait(PATIENCE).status is State.SUCCEEDED
        assert {job.refresh().status for job in jobs} == {State.QUEUED}
        app.resume("mail")
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < LONG_POLL


def test_a_pause_until_a_moment_ends_by_itself(app: Rota) -> None:
    @app.task(queue="mail")
    def quick() -> None: ...

    with working(app, poll=LONG_POLL) as worker:
        quick.enqueue().wait(PATIENCE)
        app.pause("mail", until=1.0)
        heard(worker, "mail")
        job = quick.enqueue()
        before = time.monotonic()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < PROMPT
        assert job.row.claimed_at is not None
        assert job.row.claimed_at >= app.store.pauses()[0].at + 1_000_000


def test_a_pause_that_was_there_before_the_worker_is_heeded(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    app.pause("default")
    job, marker = quick.enqueue(), quick.using(queue="other").enqueue()
    with working(app, poll=LONG_POLL):
        assert marker.wait(PATIENCE).status is State.SUCCEEDED
        assert job.refresh().status is State.QUEUED
    with working(app, poll=LONG_POLL):  # a pause outlives its workers
        marker = quick.using(queue="other").enqueue().wait(PATIENCE)
        assert job.refresh().status is State.QUEUED
        app.resume("default")
        assert job.wait(PATIENCE).status is State.SUCCEEDED


def test_a_busy_worker_finishes_what_runs_and_hands_back_what_has_not_begun(app: Rota) -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    @app.task(queue="mail")
    def slow() -> None:
        begun.release()
        go.wait(PATIENCE)

    @app.task(queue="other")
    def quick() -> None: ...

    jobs = slow.enqueue_many([()] * 50)
    with working(app, poll=LONG_POLL, concurrency=2) as worker:
        assert begun.acquire(timeout=PATIENCE)
        assert begun.acquire(timeout=PATIENCE)
        app.pause("mail")
        assert worker._ledger is not None
        lookout = worker._ledger._lookout
        # Where jobs wait in its hands it looks now and then, else before it asks for more, if its last look is a second old.
        eventually(
            lambda: not worker._crew.waiting and ("mail" in lookout.paused or lookout._paused_as_of < time.monotonic() - 1)
        )
        go.set()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: State.RUNNING not in {job.refresh().status for job in jobs})
        assert Counter(job.status for job in jobs) == {State.SUCCEEDED: 2, State.QUEUED: 48}
        app.resume("mail")
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert {job.attempt for job in jobs} == {1}


def test_what_becomes_due_meanwhile_waits_for_the_resume(app: Rota) -> None:
    tried: list[float] = []

    @app.task(queue="mail", retry=0.2, max_attempts=2)
    def fails_once() -> None:
        tried.append(time.monotonic())
        if len(tried) == 1:
            raise ValueError("not yet")

    @app.task(queue="other")
    def quick() -> None: ...

    with working(app, poll=LONG_POLL) as worker:
        again = fails_once.enqueue()
        eventually(lambda: again.refresh().attempt == 1 and again.status is not State.RUNNING)
        app.pause("mail")
        later = fails_once.using(delay=0.1).enqueue()
        heard(worker, "mail")
        eventually(lambda: {again.refresh().status, later.refresh().status} == {State.QUEUED})
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert len(tried) == 1
        app.resume("mail")
        assert [job.wait(PATIENCE).status for job in (again, later)] == [State.SUCCEEDED] * 2


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_an_idle_worker_of_paused_queues_alone_rests(app: Rota) -> None:
    @app.task(queue="mail")
    def quick() -> None: ...

    app.pause("mail")
    with working(app, poll=LONG_POLL, queues=["mail"]) as worker:
        heard(worker, "mail")
        job = quick.enqueue()
        pause = threading.Event()
        pause.wait(1.5)  # the looks that follow falling asleep
        before = time.process_time()
        pause.wait(1.0)
        assert time.process_time() - before < 0.3
        assert job.refresh().status is State.QUEUED


def test_under_limits_a_paused_queue_takes_no_room_from_another(app: Rota) -> None:
    one = Limit(1, name="one at a time")

    @app.task(queue="mail", concurrency=one)
    def mail() -> None: ...

    @app.task(queue="post", concurrency=one)
    def post() -> None: ...

    app.pause("mail")
    waiting = mail.enqueue_many([()] * 5)
    served = post.enqueue_many([()] * 5)
    with working(app, poll=LONG_POLL) as worker:
        for job in served:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
        heard(worker, "mail")
        assert {job.refresh().status for job in waiting} <= {State.QUEUED, State.HELD}
        app.resume("mail")
        for job in waiting:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
