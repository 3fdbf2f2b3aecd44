"""Processes that die or stand still are replaced, and what they had in hand comes back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from accounts import account, starts
from rota import Rota, State
from rota.supervisor.plan import Plan, about, wait_after
from servers import PostgresServer
from supervisor.conftest import PATIENCE, Yard
from working import eventually

both = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@both
def test_the_jobs_of_a_killed_process_come_back_long_before_its_lease_ends(yard: Yard, app: Rota) -> None:
    job = app.named("until").enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "2", "--lease", "10m")
    yard.working(2)
    eventually(lambda: starts(yard.ledger) == 1)
    [row] = [row for row in app.workers() if row.id == job.refresh().row.worker]
    os.kill(row.pid, signal.SIGKILL)
    eventually(lambda: starts(yard.ledger) == 2)
    (yard.folder / "go").touch()
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert (job.attempt, [attempt.outcome for attempt in job.attempts()]) == (2, ["lost"])
    assert row.pid not in yard.working(2)
    parent.said(rf"\(pid {row.pid}\) was killed by SIGKILL: another starts at once")
    assert parent.stopped() == 0


def test_so_do_those_of_the_only_process(yard: Yard, app: Rota) -> None:
    job = app.named("until").enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "1", "--lease", "10m")
    [pid] = yard.working(1)
    eventually(lambda: starts(yard.ledger) == 1)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: starts(yard.ledger) == 2)
    (yard.folder / "go").touch()
    assert (job.wait(PATIENCE).status, job.refresh().attempt) == (State.SUCCEEDED, 2)
    assert parent.stopped() == 0


def test_so_do_those_of_one_that_a_body_ended_with_status_zero(yard: Yard, app: Rota) -> None:
    job = app.named("leave").using(max_attempts=1).enqueue()
    parent = yard.start("--processes", "1", "--lease", "10m")
    assert job.wait(PATIENCE).status is State.FAILED
    assert "worker lost" in (job.reason or "")
    parent.said(r"ended with status 0: another starts at once")
    yard.working(1)
    assert parent.stopped() == 0


@pytest.mark.slow
def test_a_job_that_kills_its_process_ends_failed_and_the_next_one_runs(yard: Yard, app: Rota) -> None:
    deadly = app.named("die").using(max_attempts=3).enqueue()
    parent = yard.start("--processes", "2", "--concurrency", "1")
    harmless = app.named("quick").enqueue()
    eventually(lambda: deadly.refresh().status.final and harmless.refresh().status.final, within=PATIENCE)
    assert (deadly.status, deadly.attempt) == (State.FAILED, 3)
    assert "worker lost" in (deadly.reason or "")
    assert harmless.status is State.SUCCEEDED
    assert account(app, [deadly.id, harmless.id], yard.ledger).starts == 4
    yard.working(2)
    assert parent.stopped() == 0


def test_the_waits_grow_while_processes_die_soon_after_their_start(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "1")
    for number, said in enumerate(["at once", "in 1 s", "in 2 s"], 1):
        [pid] = yard.working(1) if number == 1 else eventually(lambda: [p.pid for p in parent.processes()], within=PATIENCE)
        os.kill(pid, signal.SIGKILL)
        assert parent.said(rf"\(pid {pid}\) was killed by SIGKILL: another starts (.*)") == [said]
    assert parent.log.count("another starts") == 3
    assert parent.stopped() == 0


def test_waits_and_shares_are_bounded() -> None:
    assert [wait_after(deaths) for deaths in (1, 2, 3, 100)] == [0.0, 1.0, 2.0, 30.0]
    assert {about(10) for _ in range(500)} <= set(range(9, 11))
    assert Plan(["x"], processes=2).names() == [None, None]


@pytest.mark.slow
def test_a_process_that_stands_still_is_killed_and_replaced(yard: Yard, app: Rota) -> None:
    job = app.named("until").enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "2", "--lease", "1s", "--wedged-after", "2s")
    yard.working(2)
    eventually(lambda: starts(yard.ledger) == 1)
    [row] = [row for row in app.workers() if row.id == job.refresh().row.worker]
    psutil.Process(row.pid).suspend()
    parent.said(rf"\(pid {row.pid}\) has given no sign of life for \d s and is killed")
    (yard.folder / "go").touch()
    assert (job.wait(PATIENCE).status, job.refresh().attempt) == (State.SUCCEEDED, 2)
    assert row.pid not in yard.working(2)
    assert parent.stopped() == 0


DEADLOCK = """
import gc
import os

from accounts import noted
from rota import Rota
from rota.worker.crew import Crew

app = Rota(os.environ["SHOP_URL"])


@app.task(name="deadlock", retry=0)
def deadlock() -> None:
    [crew] = [each for each in gc.get_objects() if isinstance(each, Crew)]
    crew._lock.acquire()


@app.task(name="quick", retry=0)
def quick() -> None:
    with noted(os.environ["SHOP_LEDGER"]):
        pass
"""


@pytest.mark.slow
def test_a_process_whose_threads_wait_for_each_other_is_killed_where_another_gets_on(yard: Yard, app: Rota) -> None:
    (yard.folder / "locks.py").write_text(DEADLOCK)
    parent = yard.start("--processes", "2", "--lease", "1s", "--wedged-after", "2s", app="locks:app")
    yard.working(2)
    stuck = app.named("deadlock").using(max_attempts=1).enqueue()
    [pid] = eventually(lambda: [row.pid for row in app.workers() if row.id == stuck.refresh().row.worker])
    ids = []

    def killed() -> bool:
        ids.append(app.named("quick").enqueue().id)
        return f"(pid {pid}) has not got on for " in parent.log

    eventually(killed, within=PATIENCE)
    eventually(lambda: stuck.refresh().status.final, within=PATIENCE)
    assert (stuck.status, stuck.attempt) == (State.FAILED, 1)
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    assert pid not in yard.working(2)
    assert parent.stopped() == 0


HOG = """
import ctypes
import os

from accounts import noted
from rota import Rota

app = Rota(os.environ["SHOP_URL"])


@app.task(name="hog", retry=0)
def hog() -> None:
    with noted(os.environ["SHOP_LEDGER"]):
        ctypes.PyDLL(None).usleep(2_000_000)
"""


@pytest.mark.slow
def test_a_body_that_holds_pythons_lock_for_longer_than_the_lease_is_no_reason_to_kill(yard: Yard, app: Rota) -> None:
    (yard.folder / "hogs.py").write_text(HOG)
    job = app.named("hog").using(max_attempts=1).enqueue()
    parent = yard.start("--processes", "1", "--lease", "1s", "--wedged-after", "60s", app="hogs:app")
    eventually(lambda: job.refresh().status.final)
    assert (job.status, starts(yard.ledger)) == (State.SUCCEEDED, 1)
    assert parent.stopped() == 0
    assert "killed" not in parent.log


@pytest.mark.slow
def test_what_was_frozen_as_a_whole_goes_on_as_it_was(yard: Yard, app: Rota) -> None:
    """As a container that is paused, or a machine that sleeps: the supervisor knows that it was held up itself."""
    parent = yard.start("--processes", "2", "--lease", "1s", "--wedged-after", "2s")
    pids = yard.working(2)
    frozen = [psutil.Process(parent.pid), *parent.processes()]
    for process in frozen:
        process.suspend()
    until = time.monotonic() + 5
    eventually(lambda: time.monotonic() > until)
    for process in reversed(frozen):
        process.resume()
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert sorted(process.pid for process in parent.processes()) == sorted(pids)
    assert "killed" not in parent.log
    assert parent.stopped() == 0


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[tuple[PostgresServer, Yard]]:
    """A server that the test may stop, and a yard on it."""
    server = PostgresServer()
    try:
        server.start()
        with Rota(server.url()) as app:
            app.store.open()
            yard = Yard(tmp_path, server.url(), app)
            try:
                yield server, yard
            finally:
                yard.close()
    finally:
        server.close()


@pytest.mark.slow
def test_a_database_that_is_away_or_stands_still_ends_nobody(frail: tuple[PostgresServer, Yard]) -> None:
    """Although nobody gets on with it for longer than a process may be silent."""
    server, yard = frail
    parent = yard.start("--processes", "2", "--lease", "1s", "--wedged-after", "2s")
    pids = yard.working(2)
    server.stop()
    parent.said("the store is away", times=4)
    server.start()
    parent.said("the store is back", times=2)
    frozen = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    processes = [frozen, *frozen.children(recursive=True)]
    for process in processes:
        process.suspend()
    until = time.monotonic() + 6
    eventually(lambda: time.monotonic() > until)
    for process in processes:
        process.resume()
    assert yard.app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert sorted(process.pid for process in parent.processes()) == sorted(pids)
    assert "killed" not in parent.log
    assert parent.stopped() == 0
