"""A body that outruns its time is recorded as failed, whatever it is, and does not use up the worker."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import isolated_bodies
import pytest

from accounts import starts
from rota import Rota
from rota.model import State
from working import eventually, working

PATIENCE = 30.0


def runners() -> int:
    return sum(1 for thread in threading.enumerate() if thread.name.startswith("rota-runner"))


def test_a_stuck_thread_is_recorded_at_the_limit_and_its_slot_replaced(app: Rota) -> None:
    go = threading.Event()

    @app.task(timeout=0.3, max_attempts=1)
    def stuck() -> None:
        go.wait(PATIENCE)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=4):
        jobs = stuck.enqueue_many([()] * 4)
        for job in jobs:
            job.wait(PATIENCE)
            assert (job.status, job.reason) == (State.FAILED, "timed out after 0.3 s")
            assert 300_000 <= (job.row.took or 0) < 5_000_000
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        go.set()


def test_what_a_timed_out_thread_returns_later_changes_nothing(app: Rota) -> None:
    go, ended = threading.Event(), threading.Event()

    @app.task(timeout=0.2, max_attempts=1)
    def stuck() -> None:
        go.wait(PATIENCE)
        ended.set()

    with working(app, concurrency=1):
        job = stuck.enqueue().wait(PATIENCE)
        go.set()
        assert ended.wait(PATIENCE)
    assert job.refresh().status is State.FAILED


def test_stuck_bodies_beyond_the_slots_keep_theirs(app: Rota) -> None:
    go = threading.Event()

    @app.task(timeout=0.1, max_attempts=1)
    def stuck() -> None:
        go.wait(PATIENCE)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=2, shutdown_timeout=0.1):
        jobs = stuck.enqueue_many([()] * 6)
        eventually(lambda: sum(job.refresh().status is State.FAILED for job in jobs) == 4)
        assert runners() <= 4 + 1  # the one that leads
        go.set()
        assert {job.wait(PATIENCE).status for job in jobs} <= {State.FAILED, State.SUCCEEDED}
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED


def test_hundreds_of_bodies_that_end_at_their_limit_cost_no_thread(app: Rota) -> None:
    pause = threading.Event()

    @app.task(timeout=0.02, max_attempts=1)
    def close_to_it() -> None:
        with suppress(BaseException):
            pause.wait(0.02)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=8) as worker:
        gate = threading.Barrier(8)
        full = app.task(name="full")(lambda: gate.wait(PATIENCE) and None)
        for job in full.enqueue_many([()] * 8):
            job.wait(PATIENCE)
        before = runners()
        jobs = close_to_it.enqueue_many([()] * 500)
        assert {job.wait(60).status for job in jobs} <= {State.FAILED, State.SUCCEEDED}
        eventually(lambda: worker._crew.free == 8)
        for job in full.enqueue_many([()] * 8):
            assert job.wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: runners() <= before)
        assert not worker._crew.timed


def test_a_coroutine_is_cancelled_at_its_limit_and_cleans_up(app: Rota) -> None:
    cleaned = threading.Event()

    @app.task(timeout=0.2, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            cleaned.set()

    with working(app):
        job = slow.enqueue().wait(PATIENCE)
    assert (job.status, job.reason) == (State.FAILED, "timed out after 0.2 s")
    assert cleaned.is_set()


def test_a_coroutine_that_swallows_its_cancellation_is_recorded_all_the_same(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.worker.overtime._STUBBORN", 0.3)
    go = threading.Event()

    @app.task(timeout=0.2, max_attempts=1)
    async def stubborn() -> None:
        while not go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=1):
        job = stubborn.enqueue().wait(PATIENCE)
        assert (job.status, job.reason) == (State.FAILED, "timed out after 0.2 s")
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        go.set()


def test_an_isolated_body_is_killed_at_its_limit_and_tried_again(isolated: Rota, ledger: Path) -> None:
    with working(isolated):
        job = isolated_bodies.overrun.enqueue(str(ledger)).wait(PATIENCE)
    assert (job.status, job.attempt, job.reason) == (State.FAILED, 2, "timed out after 1 s")
    assert starts(ledger) == 2
    assert {attempt.outcome for attempt in job.attempts()} == {"again", "failed"}


def test_a_timed_out_attempt_counts(app: Rota) -> None:
    begun = []

    @app.task(timeout=0.2, max_attempts=2, retry=0)
    async def slow() -> None:
        begun.append(1)
        await asyncio.sleep(PATIENCE)

    with working(app):
        job = slow.enqueue().wait(PATIENCE)
    assert (job.status, job.attempt, len(begun)) == (State.FAILED, 2, 2)


def test_the_wait_for_a_slot_is_not_the_bodys_time(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def first() -> None:
        go.wait(PATIENCE)

    @app.task(timeout=0.3, max_attempts=1)
    def second() -> None: ...

    with working(app, concurrency=1):
        first.enqueue()
        job = second.enqueue()
        threading.Timer(0.6, go.set).start()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
