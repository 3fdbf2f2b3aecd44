"""A stop claims no more, waits for what runs, hands back the rest, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import isolated_bodies
import pytest

from accounts import starts
from rota import Abandon, Rota, Snooze, current_job
from rota.errors import ConfigError
from rota.model import State
from rota.worker import Worker
from working import eventually, working

PATIENCE = 30.0


def test_a_stop_leaves_waiting_and_future_jobs_as_they_are(app: Rota) -> None:
    begun, go = threading.Event(), threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        go.wait(PATIENCE)

    later = slow.using(delay=3600).enqueue()
    worker = Worker(app, concurrency=1)
    worker.start()
    first = slow.enqueue()
    assert begun.wait(PATIENCE)
    waiting = slow.enqueue_many([()] * 20)
    threading.Timer(0.2, go.set).start()
    before = time.monotonic()
    worker.stop()
    assert time.monotonic() - before < 5
    assert first.refresh().status is State.SUCCEEDED
    assert {job.refresh().status for job in waiting} == {State.QUEUED}
    assert later.refresh().status is State.SCHEDULED
    assert app.workers() == []


def test_a_stop_by_its_program_speaks_of_no_signals(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rota")
    with working(app):
        pass
    [said] = [line for line in caplog.messages if line.startswith("stopping")]
    assert said == "stopping: 0 running, with 5 s to end"


def test_no_thread_is_left_after_a_stop(app: Rota) -> None:
    @app.task
    def plain() -> None: ...

    @app.task
    async def coroutine() -> None: ...

    before = set(threading.enumerate())
    with working(app):
        for job in [*plain.enqueue_many([()] * 20), *coroutine.enqueue_many([()] * 20)]:
            job.wait(PATIENCE)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]


def test_every_outcome_is_written_before_the_stop_ends(app: Rota) -> None:
    done = []

    @app.task
    def quick() -> None:
        done.append(current_job().id)

    for _ in range(10):
        quick.enqueue_many([()] * 300)
        with working(app):
            goal = len(done) + 50
            eventually(lambda goal=goal: len(done) >= goal)
        states = app.stats().states
        assert states[State.RUNNING] == 0
        assert states[State.SUCCEEDED] == len(done) == len(set(done))


def test_what_runs_on_after_the_time_is_handed_back_without_an_attempt(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def plain() -> None:
        go.wait(PATIENCE)

    @app.task
    async def coroutine() -> None:
        await asyncio.sleep(PATIENCE)

    with working(app, shutdown_timeout=0.2):
        jobs = [plain.enqueue(), coroutine.enqueue()]
        eventually(lambda: all(job.refresh().status is State.RUNNING for job in jobs))
    for job in jobs:
        row = job.refresh().row
        assert (row.state, row.attempt, row.excused) == (State.QUEUED, 0, 1)
    go.set()


def test_an_isolated_body_is_killed_and_handed_back(isolated: Rota, ledger: Path) -> None:
    with working(isolated, shutdown_timeout=0.2):
        job = isolated_bodies.endless.enqueue(str(ledger))
        eventually(lambda: starts(ledger) == 1)
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


def test_a_body_that_looks_may_end_early_and_is_handed_back(app: Rota) -> None:
    begun = threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        eventually(lambda: current_job().should_stop)
        raise RuntimeError("asked to stop")

    with working(app):
        job = slow.enqueue()
        assert begun.wait(PATIENCE)
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


def test_a_failure_of_its_own_during_a_stop_counts(app: Rota) -> None:
    begun, go = threading.Event(), threading.Event()

    @app.task(max_attempts=1)
    def slow() -> None:
        begun.set()
        go.wait(PATIENCE)
        raise ValueError("its own")

    worker = Worker(app)
    worker.start()
    job = slow.enqueue()
    assert begun.wait(PATIENCE)
    worker.request_stop(PATIENCE)
    eventually(lambda: all(run.stop for run in worker._crew.in_hand))
    go.set()
    worker.stop()
    assert (job.refresh().status, job.reason, job.attempt) == (State.FAILED, "its own", 1)


@pytest.mark.parametrize(("word", "state"), [(Abandon("enough"), State.FAILED), (Snooze(3600), State.SCHEDULED)])
def test_what_a_body_says_at_a_stop_is_done(app: Rota, word: Exception, state: State) -> None:
    begun = threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        eventually(lambda: current_job().should_stop)
        raise word

    with working(app):
        job = slow.enqueue()
        assert begun.wait(PATIENCE)
    assert job.refresh().status is state


def test_stopping_twice_is_fine(app: Rota) -> None:
    worker = Worker(app)
    worker.start()
    worker.stop()
    worker.stop()


def test_a_stop_at_once_is_fine(app: Rota) -> None:
    for _ in range(20):
        worker = Worker(app)
        worker.start()
        worker.stop()
    assert app.workers() == []


def test_a_worker_that_never_started_can_be_stopped(app: Rota) -> None:
    worker = Worker(app)
    worker.stop()
    worker.start()
    worker.stop()


def test_a_worker_starts_once(app: Rota) -> None:
    with working(app) as worker, pytest.raises(ConfigError, match="make another"):
        worker.start()


def test_a_stop_before_the_store_is_there_ends_soon(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("postgresql://nobody@/none?host=/nowhere")

    @app.task
    def quick() -> None: ...

    worker = Worker(app)
    worker.start()
    eventually(lambda: "the store is away" in caplog.text)
    before = time.monotonic()
    worker.stop()
    assert time.monotonic() - before < 5
    assert len(caplog.records) < 10
    app.close()


def test_a_body_may_stop_its_own_worker(app: Rota) -> None:
    worker = Worker(app, shutdown_timeout=5)

    @app.task
    def last() -> None:
        worker.request_stop(PATIENCE)

    worker.start()
    job = last.enqueue()
    assert worker._ended.wait(PATIENCE)
    assert job.refresh().status is State.SUCCEEDED
