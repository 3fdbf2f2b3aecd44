"""Bodies of every kind run, see what they may see, and end as they end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import isolated_bodies
import pytest
from asgiref.sync import async_to_sync

from rota import Rota, current_job
from rota.model import State
from working import eventually, working

PATIENCE = 20.0
seen: ContextVar[str] = ContextVar("seen", default="nothing")


class Odd(BaseException):
    pass


def exits() -> None:
    sys.exit(0)


def exits_with_words() -> None:
    sys.exit("x")


def interrupts() -> None:
    raise KeyboardInterrupt


def closes() -> None:
    raise GeneratorExit


def cancels() -> None:
    raise asyncio.CancelledError


def stops() -> None:
    raise StopIteration


def is_odd() -> None:
    raise Odd("odd")


ENDS = [exits, exits_with_words, interrupts, closes, cancels, stops, is_odd]


def test_a_plain_function_runs_in_a_thread_of_the_worker(app: Rota) -> None:
    @app.task(keep_result=True)
    def where(a: int, *, b: int) -> tuple[str, int]:
        return threading.current_thread().name, a + b

    with working(app):
        thread, total = where.enqueue(1, b=2).wait(PATIENCE).result()
    assert thread.startswith("rota-runner")
    assert total == 3


def test_coroutines_run_on_one_loop_beside_the_worker(app: Rota) -> None:
    @app.task(keep_result=True)
    async def where() -> tuple[str, int]:
        await asyncio.sleep(0)
        return threading.current_thread().name, id(asyncio.get_running_loop())

    with working(app):
        places = {job.wait(PATIENCE).result() for job in where.enqueue_many([()] * 5)}
    assert len(places) == 1
    assert places.pop()[0] == "rota-loop"


def test_an_isolated_body_runs_in_a_process_of_its_own(isolated: Rota) -> None:
    with working(isolated):
        jobs = [isolated_bodies.process_id.enqueue(), isolated_bodies.process_id_async.enqueue()]
        assert all(job.wait(PATIENCE).result() != os.getpid() for job in jobs)


def test_an_isolated_body_gets_its_arguments_and_keeps_its_result(isolated: Rota) -> None:
    with working(isolated):
        assert isolated_bodies.parents_arguments.enqueue("ab\x00", times=2).wait(PATIENCE).result() == "ab\x00ab\x00"


def test_a_process_serves_one_body_after_another(isolated: Rota) -> None:
    with working(isolated, concurrency=1):
        jobs = isolated_bodies.process_id.enqueue_many([()] * 3)
        assert len({job.wait(PATIENCE).result() for job in jobs}) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell what a process has open")
def test_an_isolated_bodys_process_inherits_no_connection(isolated: Rota) -> None:
    with working(isolated):
        theirs = set(isolated_bodies.open_files.enqueue().wait(PATIENCE).result())
        ours = set(isolated_bodies.files())
    assert ours
    assert theirs & ours == set()


@pytest.mark.parametrize("end", ENDS)
def test_whatever_a_plain_body_raises_is_a_failure_and_the_worker_lives(app: Rota, end: Callable[[], None]) -> None:
    bad = app.task(name="bad", max_attempts=1)(end)

    @app.task
    def good() -> None: ...

    with working(app, concurrency=1):
        failed, done = bad.enqueue().wait(PATIENCE), good.enqueue().wait(PATIENCE)
    assert (failed.status, failed.attempt) == (State.FAILED, 1)
    assert failed.reason
    assert done.status is State.SUCCEEDED


@pytest.mark.parametrize("end", ENDS)
def test_whatever_a_coroutine_raises_is_a_failure_and_the_worker_lives(app: Rota, end: Callable[[], None]) -> None:
    @app.task(max_attempts=1)
    async def bad() -> None:
        await asyncio.sleep(0)
        end()

    @app.task
    async def good() -> None: ...

    with working(app, concurrency=1):
        failed, done = bad.enqueue().wait(PATIENCE), good.enqueue().wait(PATIENCE)
    assert (failed.status, failed.attempt) == (State.FAILED, 1)
    assert failed.reason
    assert done.status is State.SUCCEEDED


@pytest.mark.parametrize("end", [exits, interrupts, is_odd])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_coroutines_own_task_raises_does_not_end_the_loop(app: Rota, end: Callable[[], None]) -> None:
    @app.task(max_attempts=1)
    async def bad() -> None:
        async def inner() -> None:
            await asyncio.sleep(0)
            end()

        await asyncio.create_task(inner())

    @app.task
    async def good() -> None:
        await asyncio.sleep(0)

    with working(app, concurrency=1):
        failed, done = bad.enqueue().wait(PATIENCE), good.enqueue().wait(PATIENCE)
    assert failed.status is State.FAILED
    assert done.status is State.SUCCEEDED


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)  # the store has no part in how a process ends
@pytest.mark.parametrize("how", ["exit 0", "exit x", "interrupt", "generator", "odd", "leave", "kill"])
def test_whatever_an_isolated_body_does_is_a_failure_and_the_worker_lives(isolated: Rota, how: str) -> None:
    with working(isolated, concurrency=1):
        failed, done = isolated_bodies.end_by.enqueue(how).wait(PATIENCE), isolated_bodies.process_id.enqueue().wait(PATIENCE)
    assert (failed.status, failed.attempt) == (State.FAILED, 1)
    assert failed.reason
    assert ("worker lost" in failed.reason) == (how in ("leave", "kill"))
    assert done.status is State.SUCCEEDED


def test_a_context_variable_set_in_a_body_is_gone_in_the_next(app: Rota) -> None:
    @app.task(keep_result=True)
    def plain() -> str:
        before = seen.get()
        seen.set("a body's")
        return before

    @app.task(keep_result=True)
    async def coroutine() -> str:
        before = seen.get()
        seen.set("a body's")
        await asyncio.sleep(0)
        return before

    with working(app, concurrency=1):
        jobs = [job for _ in range(3) for job in (plain.enqueue(), coroutine.enqueue())]
        assert {job.wait(PATIENCE).result() for job in jobs} == {"nothing"}


@pytest.mark.parametrize("concurrency", [1, 10])
@pytest.mark.parametrize(
    "finish", [lambda function: asyncio.run(function()), lambda function: async_to_sync(function)()], ids=["run", "to_sync"]
)
def test_a_plain_body_may_run_a_loop_and_enqueue_by_both_ways(
    app: Rota, concurrency: int, finish: Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
) -> None:
    @app.task
    def leaf() -> None: ...

    @app.task
    def both() -> None:
        async def inside() -> None:
            await asyncio.gather(leaf.aenqueue(), asyncio.sleep(0))

        leaf.enqueue()
        finish(inside)

    with working(app, concurrency=concurrency):
        jobs = both.enqueue_many([()] * 40)
        assert {job.wait(60).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: app.stats().states[State.SUCCEEDED] == 120)


def test_a_body_knows_its_own_job(app: Rota) -> None:
    @app.task(keep_result=True, queue="notes")
    async def me() -> tuple[str, str, int]:
        return current_job().id, current_job().queue, current_job().attempt

    with working(app):
        job = me.enqueue()
        assert job.wait(PATIENCE).result() == (job.id, "notes", 1)
    with pytest.raises(LookupError):
        current_job()


def test_progress_arrives_while_the_body_runs(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def slow() -> None:
        current_job().progress(1, 3, "on its way")
        go.wait(PATIENCE)

    with working(app):
        job = slow.enqueue()
        eventually(lambda: "on its way" in (job.refresh().row.progress or ""))
        go.set()
        assert job.wait(PATIENCE).status is State.SUCCEEDED


def test_progress_of_an_isolated_body_arrives_while_it_runs(isolated: Rota, ledger: object) -> None:
    with working(isolated, shutdown_timeout=0):
        job = isolated_bodies.endless.enqueue(str(ledger))
        eventually(lambda: "on its way" in (job.refresh().row.progress or ""))
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED


def test_what_a_body_took_does_not_include_the_wait_for_a_slot(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def first() -> None:
        go.wait(PATIENCE)

    @app.task
    def second() -> None: ...

    with working(app, concurrency=1):
        one, other = first.enqueue(), second.enqueue()
        eventually(lambda: one.refresh().status is State.RUNNING)
        threading.Timer(0.5, go.set).start()
        other.wait(PATIENCE)
        assert (other.row.took or 0) < 400_000 < (one.wait(PATIENCE).row.took or 0)
