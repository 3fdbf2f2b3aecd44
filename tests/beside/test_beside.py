"""A worker beside something else in its process: it begins and ends with that, and takes nothing down with it."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import psutil
import pytest

from rota import Job, Rota, State, current_job, keeping
from rota.errors import ConfigError
from rota.rules.health import Trouble
from servers import PostgresServer
from working import eventually, working

PATIENCE = 30.0


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("rota")}


async def soon(check: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, check)


# -- beginning and ending -----------------------------------------------------------------------


def test_it_makes_the_tables_and_works_its_queues_alone(app: Rota) -> None:
    @app.task(name="deliver", queue="mail")
    def deliver() -> None: ...

    with app.beside(queues=["mail"]):
        other = deliver.using(queue="other").enqueue()
        assert deliver.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        (row,) = app.workers()
        assert (row.queues, row.concurrency, row.trouble) == (["mail"], 4, None)
        assert other.refresh().status is State.QUEUED


def test_it_leaves_no_thread_and_no_worker_behind(app: Rota) -> None:
    @app.task
    def plain() -> None: ...

    @app.task
    async def coroutine() -> None: ...

    before = threads()
    with app.beside() as worker:
        assert worker.alive
        for job in [*plain.enqueue_many([()] * 10), *coroutine.enqueue_many([()] * 10)]:
            job.wait(PATIENCE)
    assert threads() == before
    assert app.workers() == []
    assert not worker.alive


def test_it_may_begin_again_after_its_end(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    worker = app.beside()
    worker.stop()
    for _ in range(2):
        worker.start()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        worker.stop()


def test_it_begins_once(app: Rota) -> None:
    with app.beside() as worker, pytest.raises(ConfigError, match="at work already"):
        worker.start()


def test_what_cannot_be_right_is_refused_as_it_begins(app: Rota) -> None:
    with pytest.raises(ConfigError, match="at least one job"), app.beside(concurrency=0):
        pass
    with pytest.raises(ConfigError, match="no store is known"), Rota("nothing://").beside():
        pass
    assert threads() == set()


def test_a_body_that_takes_longer_than_the_grace_is_handed_back_without_an_attempt(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def slow() -> None:
        go.wait(PATIENCE)

    with app.beside(shutdown_timeout=0.1):
        job = slow.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)
    go.set()


def test_beginning_waits_for_no_store_and_neither_does_the_end(caplog: pytest.LogCaptureFixture) -> None:
    away = Rota("postgresql://nobody@/none?host=/nowhere")

    @away.task(concurrency=1)
    def limited() -> None: ...

    with away, away.beside():
        eventually(lambda: "the store is away" in caplog.text)
    assert threads() == set()


def test_several_in_one_process_share_the_work(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    with app.beside(queues=["mail"]), app.beside(queues=["reports"]), working(app, queues=["default"]):
        jobs = [quick.using(queue=queue).enqueue() for queue in ("mail", "reports", "default")]
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        assert sorted(str(row.queues) for row in app.workers()) == ["['default']", "['mail']", "['reports']"]


def test_an_eager_app_needs_no_worker() -> None:
    app = Rota(eager=True)
    with app.beside() as worker:
        assert threads() == set()
        assert not worker.alive


def test_a_process_of_multiprocessing_is_not_told_that_it_has_no_worker(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    with app.beside():
        fork = multiprocessing.get_context("fork")
        heard, said = fork.Pipe(duplex=False)
        child = fork.Process(target=_tell_how_many_lines, args=(caplog, said))
        child.start()
        assert heard.recv() == 0
        child.join(PATIENCE)


def _tell_how_many_lines(caplog: pytest.LogCaptureFixture, said: multiprocessing.connection.Connection) -> None:
    said.send(sum("has none" in record.getMessage() for record in caplog.records))


# -- from coroutines ----------------------------------------------------------------------------


def test_the_loop_goes_on_while_it_ends(app: Rota) -> None:
    asked, go = threading.Event(), threading.Event()

    @app.task
    def slow() -> None:
        eventually(lambda: current_job().should_stop)
        asked.set()
        go.wait(PATIENCE)

    async def loosen() -> None:
        await asyncio.to_thread(asked.wait, PATIENCE)
        go.set()

    async def serve() -> Job[None]:
        async with app.beside(shutdown_timeout=PATIENCE):
            job = await slow.aenqueue()
            await soon(lambda: job.refresh().status is State.RUNNING)
            loosening = asyncio.create_task(loosen())
        await loosening
        return job

    # Were the loop held up, nobody would let the body go.
    assert asyncio.run(serve()).refresh().status is State.SUCCEEDED


def test_whoever_cancels_its_end_has_the_jobs_handed_back_at_once(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def slow() -> None:
        go.wait(PATIENCE)

    async def serve() -> Job[None]:
        worker = app.beside(shutdown_timeout=600)
        await worker.astart()
        job = await slow.aenqueue()
        await soon(lambda: job.refresh().status is State.RUNNING)
        ending = asyncio.create_task(worker.astop())
        await soon(lambda: worker._ending is not None)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        return job

    job = asyncio.run(serve())
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)
    go.set()


# -- falling ------------------------------------------------------------------------------------


class Full(logging.Handler):
    """A handler of the program's that fails for so many of the lines in which a worker says hello."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def emit(self, record: logging.LogRecord) -> None:
        if "serves" in record.getMessage() and self.times:
            self.times -= 1
            raise OSError("the log is full")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    monkeypatch.setattr(keeping, "_FIRST", 0.2)
    log, handler = logging.getLogger("rota"), Full(times=2)
    log.addHandler(handler)
    former = log.level
    log.setLevel(logging.INFO)
    yield handler
    log.setLevel(former)
    log.removeHandler(handler)


def test_one_that_falls_is_started_again_and_check_tells_of_it(app: Rota, full: Full, caplog: pytest.LogCaptureFixture) -> None:
    @app.task
    def quick() -> None: ...

    full.times = 1000
    with app.beside(name="web-1"):
        eventually(lambda: any("it is down" in problem.text for problem in app.check()))
        full.times = 0
        job = quick.enqueue()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        (problem,) = app.check()
        assert problem.trouble is Trouble.FALLEN
        assert "web-1 fell (OSError: the log is full); it was started again" in problem.text
        (row,) = app.workers()
        assert row.trouble == "OSError: the log is full"
    assert "the worker beside this program fell (OSError: the log is full); it is started again in" in caplog.text
    assert app.workers() == []


def test_a_log_that_takes_no_line_at_all_has_it_fall_and_keeps_nobody_from_stopping(
    app: Rota, full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def quick() -> None: ...

    full.times = 0
    with app.beside():
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        with monkeypatch.context() as broken:
            broken.setattr(full, "emit", _refuse)
            quick.enqueue()
            eventually(lambda: any("it is down" in problem.text for problem in app.check()))
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        monkeypatch.setattr(full, "emit", _refuse)
    assert app.workers() == []
    assert threads() == set()


def _refuse(record: logging.LogRecord) -> None:
    raise OSError("the log is full")


def test_the_waits_between_falls_grow(app: Rota, full: Full, caplog: pytest.LogCaptureFixture) -> None:
    full.times = 4
    with app.beside():
        eventually(lambda: full.times == 0)
    waits = [float(record.args[1]) for record in caplog.records if "fell" in record.msg and isinstance(record.args, tuple)]
    assert waits == sorted(waits)
    assert waits[-1] > 2 * waits[0]


def test_it_ends_at_once_while_it_is_down(app: Rota, full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_FIRST", 3600.0)
    with app.beside() as worker:
        eventually(lambda: bool(app.workers()) and not worker.alive)
    assert app.workers() == []
    assert threads() == set()


# -- a store that goes silent -------------------------------------------------------------------


@pytest.mark.slow
def test_its_end_is_bounded_although_the_store_has_gone_silent(caplog: pytest.LogCaptureFixture) -> None:
    go, ended = threading.Event(), threading.Event()
    with closing(PostgresServer()) as server, Rota(_started(server)) as app:

        @app.task
        def slow() -> None:
            go.wait(PATIENCE)

        worker = app.beside(shutdown_timeout=0.1)
        worker.start()
        job = slow.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
        postmaster = psutil.Process(server._pid())
        silent = [postmaster, *postmaster.children(recursive=True)]
        try:
            for process in silent:
                process.suspend()
            ending = threading.Thread(target=lambda: (worker.stop(), ended.set()))
            ending.start()
            # Its lease, and what a network may be silent for, are far longer than this.
            assert ended.wait(14)
            assert "does not end" in caplog.text
        finally:
            for process in silent:
                process.resume()
            go.set()
        ending.join(PATIENCE)
        eventually(lambda: not app.workers())


def _started(server: PostgresServer) -> str:
    server.start()
    return server.url()
