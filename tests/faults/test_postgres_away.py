"""Postgres goes away, restarts, or cuts connections: workers wait, come back by themselves, and lose and repeat nothing."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def url(frail: PostgresServer) -> str:
    return frail.url()


@pytest.fixture
def fleet(tmp_path: Path, url: str, ledger: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url, ledger)
    try:
        yield fleet
    finally:
        fleet.close()


def all_final(app: Rota, ids: list[str]) -> bool:
    return all(row.state.final for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500]))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restarts_under_load_lose_nothing(
    app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path, mode: Literal["fast", "immediate"]
) -> None:
    """A claim is not waited for to be on disk, so after a crash of the server a few jobs may be claimed, and run, once more."""
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 2_000)]
    long = app.named("nap").enqueue(4.0)
    for _ in range(2):
        fleet.worker(lease=30, concurrency=5)
    for _ in range(2):
        begun = starts(ledger)
        eventually(lambda begun=begun: starts(ledger) > begun + 100 or starts(ledger) >= 2_001)
        frail.restart(mode)
    eventually(lambda: all_final(app, [*ids, long.id]), within=PATIENCE)
    done = account(app, [*ids, long.id], ledger, server_crashed=mode == "immediate")
    assert done.states == {State.SUCCEEDED: 2_001}
    assert starts(ledger) == 2_001 if mode == "fast" else starts(ledger) < 2_100


def test_restarts_under_limits_lose_nothing_and_run_nothing_twice(
    app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path
) -> None:
    """Each worker has two turns under way, outcomes and rounds of limits, whenever the server goes."""
    tasks = (*["free"] * 6, "pair", "shared one", "shared two")
    ids = [job.id for task in tasks for job in app.named(task).enqueue_many([()] * (1_000 if task == "free" else 80))]
    workers = [fleet.program("fault_limited", '{"lease": 30, "poll": 0.5, "concurrency": 8}') for _ in range(2)]
    for _ in range(4):
        begun = starts(ledger)
        eventually(lambda begun=begun: starts(ledger) > begun + 150 or starts(ledger) >= len(ids), within=PATIENCE)
        frail.restart()
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    for worker in workers:
        worker.send(signal.SIGTERM)
        assert worker.wait(15) == 0
    assert "Traceback" not in fleet.logs()


def test_backends_cut_one_after_the_other_under_load_cost_nothing(
    app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path
) -> None:
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 3_000)]
    fleet.worker(lease=30, concurrency=5)
    cut: list[str] = []
    with frail.connect() as admin:
        for _ in range(12):
            begun = starts(ledger)
            eventually(lambda begun=begun: starts(ledger) > begun + 50)
            backends = {pid: said for pid, said in frail.backends().items() if pid != admin.info.backend_pid}
            pid = max(backends, key=lambda pid: (backends[pid] not in cut, pid))  # one that does what none did that was cut
            cut.append(backends[pid])
            admin.execute("select pg_terminate_backend(%s)", [pid])
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert len(set(cut)) > 3
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 3_000}, {})


def test_a_sleeping_worker_is_rung_again_whichever_of_its_connections_was_cut(
    app: Rota, fleet: Fleet, frail: PostgresServer
) -> None:
    fleet.worker(poll=30)
    app.named("quick").enqueue().wait(PATIENCE)
    for pid in frail.backends():  # its line is among them
        with frail.connect() as admin:
            admin.execute("select pg_terminate_backend(%s)", [pid])
        eventually(lambda pid=pid: pid not in frail.backends())
        before = time.monotonic()
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < 5


def test_a_connection_lost_as_a_body_returns_does_not_lose_its_outcome(
    app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path
) -> None:
    jobs = app.named("cut").enqueue_many([(frail.url(),)] * 10)
    worker = fleet.worker(lease=30, concurrency=1)  # one after the other: a second body's own connection would be cut as well
    eventually(lambda: all_final(app, [job.id for job in jobs]), within=PATIENCE)
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 10}, {})
    assert "its outcome is not recorded" not in worker.log


def test_what_the_command_line_asks_for_after_a_restart_is_done(
    app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path, tmp_path: Path
) -> None:
    jobs = [app.named(task).enqueue(str(tmp_path / "never")) for task in ("auntil", "until_isolated", "until")]
    worker = fleet.worker(poll=30, lease=30, shutdown_timeout=0.1)
    eventually(lambda: starts(ledger) == 3)
    frail.restart()
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    fleet.command("jobs", "cancel", jobs[0].id, jobs[1].id)
    for job in jobs[:2]:
        assert job.wait(PATIENCE).status is State.CANCELLED
    fleet.command("queues", "pause", "mail")
    paused = app.named("quick").using(queue="mail").enqueue()
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert paused.refresh().status is State.QUEUED
    fleet.command("queues", "resume", "mail")
    assert paused.wait(PATIENCE).status is State.SUCCEEDED
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert jobs[2].refresh().status is State.QUEUED


def test_an_outage_is_waited_out_quietly(app: Rota, fleet: Fleet, frail: PostgresServer, ledger: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    busy_job = app.named("until").enqueue(str(go))
    busy = fleet.worker(lease=60, concurrency=1)
    eventually(lambda: starts(ledger) == 1)
    waiting = app.named("quick").enqueue()
    idle, leaving = fleet.worker(lease=60), fleet.worker(lease=60, shutdown_timeout=2.0)
    assert waiting.wait(PATIENCE).status is State.SUCCEEDED
    eventually(lambda: len(app.workers()) == 3)
    memory = idle.memory()
    said = {worker: worker.log.count("\n") for worker in (busy, idle)}

    frail.stop("immediate")
    down = time.monotonic()
    with pytest.raises(StoreUnavailable):
        app.named("quick").enqueue()
    go.touch()  # the busy one's body ends with nowhere to write it
    eventually(lambda: "the store is away" in leaving.log)
    leaving.send(signal.SIGTERM)
    assert leaving.wait(15) == 0, leaving.log
    threading.Event().wait(max(0.0, down + 5 - time.monotonic()))
    assert busy.alive
    assert idle.alive
    for worker, lines in said.items():
        assert worker.log.count("\n") - lines < 60, worker.log
        assert "Traceback" not in worker.log
    assert idle.memory() - memory < 20_000_000
    frail.start()

    assert busy_job.wait(PATIENCE).status is State.SUCCEEDED
    before = time.monotonic()
    more = app.named("auntil").enqueue(str(tmp_path / "never"))
    eventually(lambda: starts(ledger) == 3)
    assert time.monotonic() - before < 10
    more.cancel()  # which is heard, like all else
    assert more.wait(10).status is State.CANCELLED
    for worker in (busy, idle):
        worker.send(signal.SIGTERM)
        assert worker.wait(15) == 0
    assert account(app, [busy_job.id, waiting.id], ledger).states == {State.SUCCEEDED: 2}


def test_a_worker_started_before_its_server_works_once_that_is_there(
    fleet: Fleet, frail: PostgresServer, url: str, ledger: Path
) -> None:
    frail.stop()
    worker, other = fleet.worker(), fleet.worker()
    eventually(lambda: "the store is away" in worker.log and "the store is away" in other.log)
    other.send(signal.SIGTERM)
    assert other.wait(10) == 0
    frail.start()
    with Rota(url) as app:
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
