"""Hooks in a worker: around bodies of each kind, told of each end once it is recorded, and never in anybody's way."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from contextvars import ContextVar, copy_context
from pathlib import Path

import pytest

from accounts import noted, starts
from rota import CurrentJob, FailedAttempt, Rota, State, current_job
from rota.clock import SECOND, machine_now
from rota.ids import new_id
from rota.model import Ask, WorkerRow
from rota.worker import Worker
from working import eventually, working

PATIENCE = 30.0
said: ContextVar[str] = ContextVar("said", default="nothing")


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """Lets go whatever waits for it, at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def take(app: Rota, seconds: float, task: str) -> None:
    """Claim what is due as a worker that is never heard of again, and whose lease runs out after so many seconds."""
    row = WorkerRow(new_id(), "w", "here", 1, None, [task], 100, int(seconds * SECOND), "1")
    app.store.join(row, None)
    assert app.store.claim(Ask(row.id, ("default",), 100), None)


# -- around bodies ------------------------------------------------------------------------------


def test_bodies_see_what_hooks_set_and_no_other_body_does(app: Rota) -> None:
    @app.around
    def outer(job: CurrentJob) -> Iterator[None]:
        token = said.set(job.id)
        yield
        said.reset(token)

    @app.around
    async def inner(job: CurrentJob) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        token = said.set(f"{said.get()} in")
        yield
        said.reset(token)

    @app.task(keep_result=True)
    def plain() -> str:
        before = said.get()
        said.set("a body's")
        return before

    @app.task(keep_result=True)
    async def coroutine() -> str:
        before = said.get()
        said.set("a body's")
        await asyncio.sleep(0)
        return before

    with working(app, concurrency=1):
        jobs = [job for _ in range(3) for job in (plain.enqueue(), coroutine.enqueue())]
        assert [job.wait(PATIENCE).result() for job in jobs] == [f"{job.id} in" for job in jobs]


def test_hooks_run_where_the_body_does(app: Rota) -> None:
    places: dict[str, set[int]] = {"plain": set(), "coroutine": set()}

    @app.on_start
    def start(job: CurrentJob) -> None:
        places[job.task].add(threading.get_ident())

    @app.task(name="plain")
    def plain() -> None:
        places["plain"].add(threading.get_ident())

    @app.task(name="coroutine")
    async def coroutine() -> None:
        places["coroutine"].add(threading.get_ident())

    with working(app):
        for task in (plain, coroutine):
            task.enqueue().wait(PATIENCE)
    assert [len(threads) for threads in places.values()] == [1, 1]
    assert places["plain"] != places["coroutine"]


# -- ends ---------------------------------------------------------------------------------------


def test_ends_are_told_once_they_are_recorded(app: Rota) -> None:
    told: dict[str, object] = {}

    @app.on_success
    async def success(job: CurrentJob, result: object) -> None:
        await asyncio.sleep(0)
        told[job.task] = (app.get(job.id).status, current_job().id == job.id, result)

    @app.on_failure
    def failed(job: CurrentJob, failure: FailedAttempt) -> None:
        told[job.task] = (app.get(job.id).status, failure.final, type(failure.error))

    @app.task(name="adds", keep_result=True)
    def adds() -> int:
        return 3

    @app.task(name="fails", max_attempts=1)
    async def fails() -> None:
        raise ValueError("bad")

    @app.task(name="fails first", retry=3600)
    def fails_first() -> None:
        raise KeyError("bad")

    with working(app):
        for task in (adds, fails, fails_first):
            task.enqueue()
        eventually(lambda: len(told) == 3)
    assert told == {
        "adds": (State.SUCCEEDED, True, 3),
        "fails": (State.FAILED, True, ValueError),
        "fails first": (State.SCHEDULED, False, KeyError),
    }


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_its_body_finished_in_its_own_transaction_is_told_as_a_success(app: Rota, fails: bool) -> None:
    told: list[object] = []
    app.on_success(lambda job, result: told.append(result))
    app.on_failure(lambda job, failure: told.append(failure))
    path = app.url.removeprefix("sqlite:///")

    @app.task(keep_result=True)
    def body() -> str:
        with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level="IMMEDIATE")) as own:
            with own:
                own.execute("create table effects (number integer)")
                current_job().finish_within(own, result="within")
            if fails:
                raise ValueError("after the commit")
        return "within"

    with working(app):
        assert body.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: told)
    assert told == ["within"]


def test_a_body_that_runs_on_after_its_time_out_is_told_once(app: Rota, go: threading.Event) -> None:
    told: list[FailedAttempt] = []
    app.on_failure(lambda job, failure: told.append(failure))

    @app.task(timeout=0.1, max_attempts=1)
    def slow() -> None:
        go.wait(PATIENCE)
        raise ValueError("too late")

    with working(app):
        slow.enqueue()
        eventually(lambda: told)
        go.set()
    [failure] = told
    assert (failure.final, failure.type) == (True, "TimeoutError")
    assert isinstance(failure.error, TimeoutError)


def test_a_job_that_was_cancelled_or_handed_back_is_told_to_no_hook(app: Rota) -> None:
    told: list[object] = []
    begun = threading.Event()
    app.on_failure(lambda job, failure: told.append(failure))
    app.on_success(lambda job, result: told.append(result))

    @app.task
    async def long() -> None:
        begun.set()
        await asyncio.sleep(PATIENCE)

    with working(app, shutdown_timeout=0.0):
        job = long.enqueue()
        assert begun.wait(PATIENCE)
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED
        begun.clear()
        other = long.enqueue()
        assert begun.wait(PATIENCE)
    assert other.refresh().status is State.QUEUED
    assert told == []


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_the_worker_that_takes_a_lost_job_back_tells_of_it(store_url: str, max_attempts: int) -> None:
    told: list[tuple[object, ...]] = []
    tenant: ContextVar[str] = ContextVar("tenant")
    with Rota(store_url, context=[tenant]) as app:

        @app.on_failure
        def failed(job: CurrentJob, failure: FailedAttempt) -> None:
            what = (failure.final, failure.lost, tenant.get())
            told.append((job.id, job.attempt, job.max_attempts, job.arguments, *what))

        @app.task(name="t", max_attempts=max_attempts)
        def t(number: int) -> None: ...

        context = copy_context()
        context.run(tenant.set, "acme")
        job = context.run(t.enqueue, 7)
        take(app, 0.5, "t")
        with working(app):
            eventually(lambda: told)
            job.wait(PATIENCE)
    assert told == [(job.id, 1, max_attempts, {"number": 7}, max_attempts == 1, True, "acme")]


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_an_end_that_does_not_count_is_told_to_no_hook(store_url: str, ledger: Path, go: threading.Event) -> None:
    """The lease of the first worker is taken while the body runs; what its body then comes to is another's to say."""
    told: list[str] = []
    with Rota(store_url) as first, Rota(store_url) as other:

        @first.task(name="t")
        def body() -> None:
            with noted(ledger):
                go.wait(PATIENCE)

        first.on_success(lambda job, result: told.append("first"))
        other.task(name="t")(lambda: None)
        other.on_success(lambda job, result: told.append("other"))
        with working(first):
            job = first.send("t")
            eventually(lambda: starts(ledger) == 1)
            assert len(first.store.lost(10, machine_now() + 3600 * SECOND).lost) == 1
            with working(other):
                assert job.wait(PATIENCE).status is State.SUCCEEDED
                eventually(lambda: told)
                go.set()
    assert told == ["other"]


# -- hooks that are slow or wrong ---------------------------------------------------------------


def test_what_hooks_raise_stops_neither_the_worker_nor_other_hooks(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    @app.on_success
    def wrong(job: CurrentJob, result: object) -> None:
        raise SystemExit(3)

    @app.on_success
    async def awaited(job: CurrentJob, result: object) -> None:
        raise asyncio.CancelledError

    app.on_success(lambda job, result: told.append(job.id))
    task = app.task(name="t")(lambda: None)
    with working(app):
        jobs = task.enqueue_many([()] * 3)
        eventually(lambda: len(told) == 3)
    assert sorted(told) == sorted(job.id for job in jobs)
    assert caplog.text.count("the on_success hook") == 6


@pytest.mark.parametrize("why", ["its time is up", "it is cancelled", "the worker shuts down"])
def test_a_body_does_not_begin_once_its_attempt_is_over(app: Rota, go: threading.Event, why: str) -> None:
    """A hook before it took that long."""
    begun, passed = threading.Event(), threading.Event()
    bodies: list[str] = []

    @app.around
    def slow(job: CurrentJob) -> Iterator[None]:
        begun.set()
        eventually(lambda: job._run.stop)  # not by `should_stop`, which would notice it for the body
        go.wait(PATIENCE)
        try:
            yield
        finally:
            passed.set()

    @app.task(name="t", timeout=0.2 if why == "its time is up" else None, max_attempts=1)
    def t() -> None:
        bodies.append("ran")

    expected = {"its time is up": State.FAILED, "it is cancelled": State.CANCELLED, "the worker shuts down": State.QUEUED}
    with working(app) as worker:
        job = t.enqueue()
        assert begun.wait(PATIENCE)
        if why == "its time is up":
            job.wait(PATIENCE)
        elif why == "it is cancelled":
            job.cancel()
        else:
            worker.request_stop(PATIENCE)
        go.set()
        assert passed.wait(PATIENCE)
    assert (job.refresh().status, bodies) == (expected[why], [])


def test_a_hook_that_hangs_keeps_neither_jobs_nor_the_lease_nor_the_end_from_coming(
    app: Rota, go: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.worker.hooks._FAREWELL", 0.1)
    hanging = threading.Event()
    threads: list[threading.Thread] = []

    @app.on_failure
    def hangs(job: CurrentJob, failure: FailedAttempt) -> None:
        threads.append(threading.current_thread())
        hanging.set()
        go.wait(PATIENCE)

    app.task(name="bad", max_attempts=1)(lambda: 1 / 0)
    good = app.task(name="good")(lambda: None)
    with working(app, lease=0.6) as worker:
        app.send("bad")
        assert hanging.wait(PATIENCE)
        [row] = app.workers()
        assert {job.wait(PATIENCE).status for job in good.enqueue_many([()] * 20)} == {State.SUCCEEDED}
        eventually(lambda: app.workers()[0].lease_until > row.lease_until + SECOND)
        assert worker.id == row.id
        bad = app.send("bad").wait(PATIENCE)
        stopping = time.monotonic()
    assert time.monotonic() - stopping < PATIENCE
    assert bad.status is State.FAILED
    assert "a hook has not returned; 1 ends after that one are told to no hook" in caplog.text
    go.set()
    threads[0].join(PATIENCE)
    assert len(threads) == 1


def test_while_a_hook_hangs_what_is_too_much_is_left_out_and_that_is_told(
    app: Rota, go: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.worker.hooks.MOST", 5)
    told: list[str] = []

    @app.on_success
    def hangs(job: CurrentJob, result: object) -> None:
        told.append(job.id)
        go.wait(PATIENCE)

    task = app.task(name="t")(lambda: None)
    with working(app):
        task.enqueue()
        eventually(lambda: told)
        for job in task.enqueue_many([()] * 20):
            job.wait(PATIENCE)
        eventually(lambda: "from now on they are not told" in caplog.text)
        go.set()
        eventually(lambda: "ends were told to none" in caplog.text)
    assert len(told) == 6
    assert "hooks return again: 15 ends were told to none" in caplog.text


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_a_worker_claims_no_faster_than_its_hooks_keep_up(
    app: Rota, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.worker.hooks.BEHIND", 20)
    monkeypatch.setattr("rota.worker.hooks.STUCK", PATIENCE)
    told: Counter[str] = Counter()

    @app.on_success
    def busy(job: CurrentJob, result: object) -> None:
        go.wait(PATIENCE)
        told[job.id] += 1

    task = app.task(name="t")(lambda: None)
    jobs = task.enqueue_many([()] * 2000)
    with working(app, poll=PATIENCE):
        eventually(lambda: (states := app.stats().states)[State.RUNNING] == 0 and 0 < states[State.QUEUED] < 2000)
        go.set()
        eventually(lambda: len(told) == len(jobs))
    assert told == Counter({job.id: 1 for job in jobs})


def test_what_waits_for_hooks_is_told_before_the_worker_ends(app: Rota, go: threading.Event) -> None:
    told: list[str] = []

    @app.on_success
    def slow(job: CurrentJob, result: object) -> None:
        go.wait(PATIENCE)
        told.append(job.id)

    task = app.task(name="t")(lambda: None)
    worker = Worker(app)
    worker.start()
    jobs = task.enqueue_many([()] * 10)
    for job in jobs:
        job.wait(PATIENCE)
    worker.request_stop(0)
    eventually(lambda: app.workers() == [])
    go.set()
    worker.stop()
    assert sorted(told) == sorted(job.id for job in jobs)
