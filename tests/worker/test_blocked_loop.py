"""A coroutine that does not come back to its loop keeps nothing from going on but what had begun beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest

from rota import Rota
from rota.model import State
from rota.worker import Worker, coroutines, overtime
from working import eventually, working

PATIENCE = 30.0
seen: ContextVar[str] = ContextVar("seen", default="nothing")


class Gate:
    """What blocks here, blocks until the test opens it, which it does at its end at the latest."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._arrived = threading.Semaphore(0)

    def block(self) -> None:
        self._arrived.release()
        self.open.wait(2 * PATIENCE)

    def compute(self) -> None:
        self._arrived.release()
        while not self.open.is_set():
            pass

    def reached(self) -> bool:
        """Wait for the next that blocks."""
        return self._arrived.acquire(timeout=PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.fixture
def store_url() -> str:
    """One store: loops know none, and what they hand back goes the way of every outcome."""
    return "memory://"


@pytest.fixture(autouse=True)
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop counts as blocked after two looks in half a second: that it may take five only makes tests long."""
    monkeypatch.setattr(coroutines, "LATE", 0.5)
    monkeypatch.setattr(coroutines, "LATE_AT_STOP", 0.5)
    monkeypatch.setattr(coroutines, "_LOOK", 0.25)
    monkeypatch.setattr(coroutines, "_FAREWELL", 0.5)
    monkeypatch.setattr(overtime, "_STUBBORN", 1.0)


def loops_blocked(worker: Worker, loops: int = 1) -> bool:
    found = worker._coroutines
    return found is not None and sum(loop.blocked for loop in found._loops) == loops


@pytest.mark.parametrize("how", [Gate.block, Gate.compute])
def test_coroutines_that_have_not_begun_do_so_elsewhere(app: Rota, gate: Gate, how: Callable[[Gate], None]) -> None:
    @app.task
    async def blocks() -> None:
        how(gate)

    @app.task
    async def quick() -> None:
        await asyncio.sleep(0)

    with working(app, concurrency=4):
        blocked = blocks.enqueue()
        assert gate.reached()
        jobs = quick.enqueue_many([()] * 10)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        assert {job.row.excused for job in jobs} == {0}, "a job went back to the store"
        assert blocked.refresh().status is State.RUNNING
        gate.open.set()
        assert blocked.wait(PATIENCE).status is State.SUCCEEDED


def test_jobs_get_the_slots_of_bodies_that_wait_for_the_blocked_loop(app: Rota, gate: Gate) -> None:
    @app.task
    async def waits() -> None:
        await asyncio.to_thread(gate.open.wait, PATIENCE)

    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task
    def plain() -> None: ...

    @app.task
    async def coroutine() -> None: ...

    with working(app, concurrency=4) as worker:
        begun = waits.enqueue_many([()] * 3)
        eventually(lambda: all(job.refresh().status is State.RUNNING for job in begun))
        begun.append(blocks.enqueue())
        assert gate.reached()
        jobs = [kind.enqueue() for _ in range(10) for kind in (plain, coroutine)]
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        assert {job.refresh().status for job in begun} == {State.RUNNING}
        gate.open.set()
        assert {job.wait(PATIENCE).status for job in begun} == {State.SUCCEEDED}
        assert {job.row.attempt for job in begun} == {1}
        eventually(lambda: worker._crew.free == 4)


def test_a_body_that_blocks_keeps_its_own_slot_as_a_plain_one_does(
    app: Rota, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=1) as worker:
        job = blocks.enqueue()
        assert gate.reached()
        eventually(lambda: "has blocked the event loop" in caplog.text)
        assert worker._crew.load == 1
        gate.open.set()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED


def test_no_more_run_than_there_are_slots_once_the_loop_answers_again(app: Rota, gate: Gate) -> None:
    waiters, plains = threading.Event(), threading.Event()

    @app.task
    async def waits() -> None:
        await asyncio.to_thread(waiters.wait, PATIENCE)

    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task
    def plain() -> None:
        plains.wait(PATIENCE)

    with working(app, concurrency=3) as worker:
        crew = worker._crew
        begun = waits.enqueue_many([()] * 2)
        eventually(lambda: all(job.refresh().status is State.RUNNING for job in begun))
        blocked = blocks.enqueue()
        assert gate.reached()
        lent = plain.enqueue_many([()] * 2)
        eventually(lambda: all(job.refresh().status is State.RUNNING for job in lent))
        eventually(lambda: crew.load == 3)
        gate.open.set()
        assert blocked.wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: crew.load == 4)
        eventually(lambda: crew.free == 0)
        plains.set()
        assert {job.wait(PATIENCE).status for job in lent} == {State.SUCCEEDED}
        eventually(lambda: crew.free == 1)
        waiters.set()
        assert {job.wait(PATIENCE).status for job in begun} == {State.SUCCEEDED}
        eventually(lambda: crew.free == 3)


def test_a_body_that_blocks_past_its_time_out_fails_and_its_slot_goes_on(app: Rota, gate: Gate) -> None:
    @app.task(timeout=0.2, max_attempts=1)
    async def blocks() -> None:
        gate.block()

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=1) as worker:
        blocked = blocks.enqueue()
        assert gate.reached()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert (blocked.refresh().status, blocked.reason) == (State.FAILED, "timed out after 0.2 s")
        gate.open.set()
        eventually(lambda: not loops_blocked(worker))
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: worker._crew.free == 1)
    assert blocked.refresh().status is State.FAILED


def test_a_body_that_waits_for_the_blocked_loop_past_its_time_out_fails(app: Rota, gate: Gate) -> None:
    @app.task(timeout=2, max_attempts=1)
    async def waits() -> None:
        await asyncio.sleep(PATIENCE)

    @app.task
    async def blocks() -> None:
        gate.block()

    with working(app, concurrency=2) as worker:
        waiting = waits.enqueue()
        eventually(lambda: waiting.refresh().status is State.RUNNING)
        blocks.enqueue()
        assert gate.reached()
        assert (waiting.wait(PATIENCE).status, waiting.reason) == (State.FAILED, "timed out after 2 s")
        assert loops_blocked(worker)
        gate.open.set()
        eventually(lambda: worker._crew.free == 2)


def test_every_loop_may_be_blocked_and_a_job_runs_on_another(app: Rota, gate: Gate) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=4) as worker:
        blocked = blocks.enqueue_many([()] * 3)
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: loops_blocked(worker, loops=3))
        gate.open.set()
        assert {job.wait(PATIENCE).status for job in blocked} == {State.SUCCEEDED}


def test_work_comes_back_to_the_first_loop(app: Rota, gate: Gate) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task(keep_result=True)
    async def where() -> str:
        return threading.current_thread().name

    with working(app, concurrency=2) as worker:
        blocks.enqueue()
        assert gate.reached()
        assert where.enqueue().wait(PATIENCE).result() != "rota-loop"
        gate.open.set()
        eventually(lambda: loops_blocked(worker, loops=0))
        assert where.enqueue().wait(PATIENCE).result() == "rota-loop"


def test_bodies_on_another_loop_share_no_context(app: Rota, gate: Gate) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task(keep_result=True)
    async def looks() -> str:
        before = seen.get()
        seen.set("a body's")
        return before

    with working(app, concurrency=2):
        blocks.enqueue()
        assert gate.reached()
        jobs = looks.enqueue_many([()] * 5)
        assert {job.wait(PATIENCE).result() for job in jobs} == {"nothing"}
        gate.open.set()


# -- who it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["itself", "in a task of its own", "in a callback"])
def test_the_log_names_the_job_that_blocks_and_the_place(
    app: Rota, gate: Gate, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async def inner() -> None:
        gate.block()

    @app.task(name="culprit")
    async def culprit() -> None:
        match how:
            case "itself":
                await inner()
            case "in a task of its own":
                await asyncio.create_task(inner())
            case _:
                asyncio.get_running_loop().call_soon(gate.block)
                await asyncio.sleep(0)

    @app.task
    async def waits() -> None:
        await asyncio.to_thread(gate.open.wait, PATIENCE)

    with working(app, concurrency=2):
        waiting = waits.enqueue()
        eventually(lambda: waiting.refresh().status is State.RUNNING)
        job = culprit.enqueue()
        said = f"culprit (job {job.id}) has blocked the event loop"
        eventually(lambda: said in caplog.text, within=PATIENCE)
        [error] = [record for record in caplog.records if said in record.getMessage()]
        gate.open.set()
    assert error.levelname == "ERROR"
    assert "self.open.wait(2 * PATIENCE)" in error.getMessage()
    assert "run_forever" not in error.getMessage()


def test_what_an_ended_body_left_on_the_loop_blocks_nothing_either(app: Rota, gate: Gate) -> None:
    @app.task
    async def leaves() -> None:
        asyncio.get_running_loop().call_later(0.01, gate.block)

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=1):
        assert leaves.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert gate.reached()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED


def test_a_job_is_handed_back_when_too_many_loops_are_blocked(app: Rota, gate: Gate) -> None:
    @app.task
    async def leaves() -> None:
        asyncio.get_running_loop().call_later(0.01, gate.block)

    @app.task
    async def quick() -> None: ...

    @app.task
    def plain() -> None: ...

    with working(app, concurrency=1) as worker:
        for _ in range(3):
            assert leaves.enqueue().wait(PATIENCE).status is State.SUCCEEDED
            assert gate.reached()
        job = quick.enqueue()
        eventually(lambda: job.refresh().row.excused > 0)
        assert plain.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        gate.open.set()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: worker._crew.free == 1)


# -- the end ------------------------------------------------------------------------------------


def test_a_stop_hands_back_what_has_not_begun_although_the_loop_is_blocked(app: Rota, gate: Gate) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    @app.task
    async def quick() -> None: ...

    with working(app, concurrency=4, shutdown_timeout=60) as worker:
        blocked = blocks.enqueue()
        assert gate.reached()
        jobs = quick.enqueue_many([()] * 3)
        eventually(lambda: all(job.refresh().status is State.RUNNING for job in jobs))
        worker.request_stop(60)
        eventually(lambda: all(job.refresh().status is State.QUEUED for job in jobs))
        assert {job.row.attempt for job in jobs} == {0}
        assert blocked.refresh().status is State.RUNNING
        gate.open.set()
    assert blocked.refresh().status is State.SUCCEEDED


def test_a_stop_ends_soon_although_every_loop_is_blocked(app: Rota, gate: Gate) -> None:
    @app.task
    async def blocks() -> None:
        gate.block()

    with working(app, concurrency=4, shutdown_timeout=0.2) as worker:
        jobs = blocks.enqueue_many([()] * 4)
        eventually(lambda: loops_blocked(worker, loops=4))
        before = time.monotonic()
        worker.stop()
        assert time.monotonic() - before < 10
    for job in jobs:
        assert (job.refresh().status, job.row.attempt, job.row.excused) == (State.QUEUED, 0, 1)


def test_what_was_handed_back_does_not_go_on_when_the_loop_is_free(app: Rota, gate: Gate) -> None:
    went_on = threading.Event()

    @app.task
    async def blocks() -> None:
        gate.block()
        await asyncio.sleep(0)
        went_on.set()

    worker = Worker(app, shutdown_timeout=0)
    worker.start()
    job = blocks.enqueue()
    assert gate.reached()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "rota-loop"]
    worker.stop()
    gate.open.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not went_on.is_set()
    assert job.refresh().status is State.QUEUED


def test_nothing_watches_while_no_coroutine_runs(app: Rota) -> None:
    @app.task
    async def quick() -> None: ...

    with working(app) as worker:
        quick.enqueue().wait(PATIENCE)
        found = worker._coroutines
        assert found is not None
        eventually(lambda: not found._busy.is_set())
        assert not any(loop._asked for loop in found._loops)
