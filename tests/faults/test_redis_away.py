"""Redis is killed, restarts, stands still, or cuts connections: workers wait, come back by themselves, and lose and repeat
nothing that the server was to keep."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet, Program

from accounts import account, starts
from redis_servers import RedisServer, serving
from rota import Rota
from rota.clock import SECOND
from rota.errors import StoreUnavailable
from rota.model import JobRow, State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Harm = Callable[[RedisServer], object]


@pytest.fixture
def frail() -> Iterator[RedisServer]:
    """A server that the test may stop and kill."""
    with serving() as server:
        yield server


@pytest.fixture
def url(frail: RedisServer) -> str:
    return frail.url()


def rows_of(app: Rota, ids: list[str]) -> list[JobRow]:
    return [row for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500])]


def all_final(app: Rota, ids: list[str]) -> bool:
    return all(row.state.final for row in rows_of(app, ids))


def ended(workers: list[Program]) -> bool:
    """Whether each of these stops well when it is told to."""
    for worker in workers:
        worker.send(signal.SIGTERM)
    return [worker.wait(15) for worker in workers] == [0] * len(workers)


# -- what a server does to workers --------------------------------------------------------------


def restart(server: RedisServer) -> None:
    server.restart()


def crash(server: RedisServer) -> None:
    server.kill()
    server.start()


def crash_twice(server: RedisServer) -> None:
    crash(server)
    crash(server)


def stand_still(server: RedisServer) -> None:
    server.pause()
    threading.Event().wait(0.5)
    server.resume()


def cut_off(server: RedisServer) -> None:
    assert server.kill_clients()


def cut_listeners_off(server: RedisServer) -> None:
    with server.client() as admin:
        assert admin.client_kill_filter(_type="pubsub")


def cut_others_off(server: RedisServer) -> None:
    with server.client() as admin:
        assert admin.client_kill_filter(_type="normal", skipme=True)


def forget_scripts(server: RedisServer) -> None:
    with server.client() as admin:
        admin.script_flush()


HARMS: tuple[Harm, ...] = (
    *(restart, crash, crash_twice, stand_still),
    *(cut_off, cut_listeners_off, cut_others_off, forget_scripts),
)


def test_under_load_none_of_it_loses_or_repeats_a_job(app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path) -> None:
    """With every write on disk before it is answered, as the server is set up here."""
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 2_000)]
    long = app.named("nap").enqueue(4.0)
    workers = [fleet.worker(lease=30, concurrency=5) for _ in range(2)]
    for harm in HARMS:
        begun = starts(ledger)
        eventually(lambda begun=begun: starts(ledger) > begun + 100)
        harm(frail)
    assert not all_final(app, ids)
    eventually(lambda: all_final(app, [*ids, long.id]), within=PATIENCE)
    done = account(app, [*ids, long.id], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 2_001}, {})
    assert ended(workers)
    assert "Traceback" not in fleet.logs()


def test_a_sleeping_worker_is_rung_again_after_each_of_it(app: Rota, fleet: Fleet, frail: RedisServer) -> None:
    worker = fleet.worker(poll=30)
    app.named("quick").enqueue().wait(PATIENCE)
    for harm in HARMS:
        harm(frail)
        before = time.monotonic()
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < 5, harm
    assert ended([worker])


def test_many_restarts_within_seconds_are_each_survived(app: Rota, fleet: Fleet, frail: RedisServer) -> None:
    workers = [fleet.worker(poll=30) for _ in range(2)]
    app.named("quick").enqueue().wait(PATIENCE)
    for _ in range(3):
        for harm in (restart, crash, restart):
            harm(frail)
        before = time.monotonic()
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert time.monotonic() - before < 8
    eventually(lambda: len([said for said in frail.clients().values() if "subscribe" in said]) == len(workers))
    assert ended(workers)


def test_a_connection_lost_as_a_body_returns_does_not_lose_its_outcome(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path
) -> None:
    ids = [job.id for job in app.named("cut").enqueue_many([(frail.url(),)] * 10)]
    worker = fleet.worker(lease=30, concurrency=1)
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 10}, {})
    assert "its outcome is not recorded" not in worker.log


# -- jobs that are handed to workers that sleep ---------------------------------------------------


def asleep(server: RedisServer, workers: int) -> None:
    """Wait until so many workers sleep and have offered to run what comes next."""
    with server.client() as admin:
        eventually(lambda: admin.hlen("{rota}:offers") == workers)


@pytest.mark.parametrize("harm", [cut_off, crash])
def test_lone_jobs_go_on_whatever_becomes_of_the_worker_that_offered_to_run_them(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path, harm: Harm
) -> None:
    workers = [fleet.worker(lease=30, poll=30) for _ in range(2)]
    asleep(frail, 2)
    enqueuer = fleet.program("fault_steady")
    eventually(lambda: starts(ledger) > 50)
    harm(frail)
    begun = starts(ledger)
    eventually(lambda: starts(ledger) > begun + 50)
    enqueuer.send(signal.SIGTERM)
    assert enqueuer.wait() == 0
    ids = [line for line in enqueuer.log.split() if line != "again"]
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    assert ended(workers)
    assert "Traceback" not in fleet.logs()


def test_a_lone_job_that_a_frozen_worker_was_handed_runs_elsewhere_once_that_one_is_lost(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path
) -> None:
    frozen, other = (fleet.worker(lease=1.5, poll=30) for _ in range(2))
    asleep(frail, 2)
    frozen.send(signal.SIGSTOP)
    ids = [app.named("quick").enqueue().id for _ in range(10)]
    eventually(lambda: all_final(app, ids))
    frozen.send(signal.SIGCONT)
    eventually(lambda: "lease was lost" in frozen.log)
    more = [app.named("quick").enqueue().id for _ in range(10)]
    eventually(lambda: all_final(app, more))
    done = account(app, [*ids, *more], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 20}, {})
    assert ended([frozen, other])


# -- what a server keeps ------------------------------------------------------------------------


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_what_was_acknowledged_is_there_after_a_crash_or_came_in_its_last_moments(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path, fsync: str
) -> None:
    frail.set(appendfsync=fsync)
    workers = [fleet.worker(lease=5) for _ in range(2)]
    enqueuer = fleet.program("fault_steady")
    crashes = []
    for _ in range(2):
        begun = starts(ledger)
        eventually(lambda begun=begun: starts(ledger) > begun + 150, within=PATIENCE)
        crashes.append(time.time_ns() // 1_000)
        crash(frail)
        eventually(lambda: enqueuer.log.count("again") == len(crashes), within=PATIENCE)
    enqueuer.send(signal.SIGTERM)
    assert enqueuer.wait() == 0
    ids = [line for line in enqueuer.log.split() if line != "again"]
    kept = {row.id: row.created_at for row in rows_of(app, ids)}
    if fsync == "always":
        assert len(kept) == len(ids)
    else:  # a write that the disk delays is put off for two seconds at the most
        assert [id for id in ids if id not in kept and not any(0 <= at - made_at(id) < 2 * SECOND for at in crashes)] == []
    eventually(lambda: all_final(app, list(kept)), within=PATIENCE)
    done = account(app, list(kept), ledger, server_crashed=fsync == "everysec")
    assert done.states == {State.SUCCEEDED: len(kept)}
    if fsync == "always":
        assert done.repeated == {}
    assert ended(workers)
    assert "Traceback" not in fleet.logs()


def made_at(id: str) -> int:
    """When an id was made, in microseconds, as it says itself."""
    return int(id.replace("-", "")[:12], 16) * 1_000


def test_workers_go_on_where_a_server_came_back_with_an_old_snapshot(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path
) -> None:
    """What was done since is forgotten, the workers themselves included, so it is done again; nothing is left running."""
    frail.set(appendonly="no")
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 300)]
    with frail.client() as admin:
        admin.save()
    workers = [fleet.worker(lease=90) for _ in range(2)]
    eventually(lambda: starts(ledger) > 200)
    crash(frail)
    eventually(lambda: all_final(app, ids))  # long before these leases would be renewed
    done = account(app, ids, ledger, server_crashed=True)
    assert done.states == {State.SUCCEEDED: 300}
    assert starts(ledger) < 2 * 300
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    eventually(lambda: len(app.workers()) == 2)
    assert ended(workers)
    assert "Traceback" not in fleet.logs()


def test_workers_go_on_where_somebody_emptied_the_server(app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path) -> None:
    app.named("nap").enqueue_many([(0.01,)] * 2_000)
    workers = [fleet.worker(lease=3, poll=30) for _ in range(2)]
    eventually(lambda: starts(ledger) > 100)
    with frail.client() as admin:
        admin.flushall()
    jobs = app.named("quick").enqueue_many([()] * 20)
    eventually(lambda: all_final(app, [job.id for job in jobs]), within=PATIENCE)
    eventually(lambda: len(app.workers()) == 2, within=PATIENCE)
    assert ended(workers)
    assert "Traceback" not in fleet.logs()


# -- what takes a while -------------------------------------------------------------------------


def test_an_outage_is_waited_out_quietly(app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path, tmp_path: Path) -> None:
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

    frail.kill()
    down = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"cannot be reached .*: see that it runs"):
        app.named("quick").enqueue()
    assert time.monotonic() - down < 5
    go.touch()  # the busy one's body ends with nowhere to write it
    eventually(lambda: "the store is away" in leaving.log)
    leaving.send(signal.SIGTERM)
    assert leaving.wait(15) == 0, leaving.log
    threading.Event().wait(max(0.0, down + 3 - time.monotonic()))
    assert busy.alive
    assert idle.alive
    for worker, before in said.items():
        assert worker.log.count("\n") - before < 60, worker.log
        assert "Traceback" not in worker.log
    assert idle.memory() - memory < 20_000_000
    frail.start()

    assert busy_job.wait(PATIENCE).status is State.SUCCEEDED
    back = time.monotonic()
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert time.monotonic() - back < 10
    assert ended([busy, idle])
    assert account(app, [busy_job.id, waiting.id], ledger).repeated == {}


def test_a_worker_started_before_its_server_works_once_that_is_there_and_has_read_its_data(
    fleet: Fleet, frail: RedisServer, url: str
) -> None:
    with Rota(url) as app, frail.client() as admin, ThreadPoolExecutor(1) as beside:
        app.named("later").using(delay=3_600).enqueue_many([()] * 1_000)
        # Microseconds for each job, and the bytes after which the server looks whether anybody asks it for something.
        frail.set(key_load_delay=5_000, loading_process_events_interval_bytes=1_024)
        admin.bgrewriteaof()
        eventually(lambda: not frail.info("persistence")["aof_rewrite_in_progress"])
        frail.stop()
        worker, other = fleet.worker(), fleet.worker()
        eventually(lambda: all("the store is away" in each.log for each in (worker, other)))
        other.send(signal.SIGTERM)
        assert other.wait(10) == 0
        started = beside.submit(frail.start)
        eventually(lambda: "is still reading its data" in worker.log)
        with pytest.raises(StoreUnavailable, match=r"is still reading its data .*: wait"):
            app.named("quick").enqueue()
        eventually(lambda: admin.config_set("key-load-delay", 0))
        started.result()
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert ended([worker])
    assert "Traceback" not in fleet.logs()


def test_a_server_that_stands_still_for_longer_than_a_lease_costs_no_more_than_lost_leases(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path
) -> None:
    """It may take a job back from a worker that could not beat, and hear that one afterwards."""
    ids = [job.id for job in app.named("nap").enqueue_many([(0.02,)] * 300)]
    workers = [fleet.worker(lease=1.5) for _ in range(2)]
    eventually(lambda: starts(ledger) > 50)
    frail.pause()
    threading.Event().wait(2.5)
    frail.resume()
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert done.states == {State.SUCCEEDED: 300}
    lost = {id for id in ids if any(attempt.outcome == "lost" for attempt in app.store.attempts(id))}
    assert done.repeated.keys() <= lost
    assert ended(workers)
    assert "Traceback" not in fleet.logs()
