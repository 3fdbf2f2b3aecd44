"""Another Redis takes the writes: workers ask the Sentinels which, and leave the one that takes none any more."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from redis_servers import RedisServer, Sentinel, serving
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import JobRow, State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def primary() -> Iterator[RedisServer]:
    with serving(listen="tcp") as server:
        yield server


@pytest.fixture
def replica(primary: RedisServer) -> Iterator[RedisServer]:
    with serving(primary=primary) as server:
        eventually(lambda: server.info("replication")["master_link_status"] == "up")
        yield server


@pytest.fixture
def sentinel(primary: RedisServer, replica: RedisServer) -> Iterator[Sentinel]:
    """It watches both, and takes the primary for dead after half a second."""
    sentinel = Sentinel(primary, patience=500)
    try:
        sentinel.start()
        eventually(lambda: sentinel.replicas() == 1, within=PATIENCE)
        yield sentinel
    finally:
        sentinel.close()


@pytest.fixture
def url(sentinel: Sentinel) -> str:
    host, port = sentinel.address
    return f"redis+sentinel://{host}:{port}/{sentinel.name}"


def rows_of(app: Rota, ids: list[str]) -> list[JobRow]:
    return [row for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500])]


def test_workers_go_on_at_the_replica_that_took_over(
    app: Rota, fleet: Fleet, primary: RedisServer, replica: RedisServer, ledger: Path
) -> None:
    """What a primary had acknowledged and not yet passed on is lost with it: the last jobs, and none before one that is there.

    Its replica may not know of the last claims and ends either, so the jobs of these run once more.
    """
    workers = [fleet.worker(lease=5, concurrency=4) for _ in range(2)]
    enqueuer = fleet.program("fault_steady")
    eventually(lambda: starts(ledger) > 150, within=PATIENCE)
    primary.kill()
    eventually(lambda: enqueuer.log.count("again") == 1, within=PATIENCE)
    enqueuer.send(signal.SIGTERM)
    assert enqueuer.wait() == 0
    assert replica.info("replication")["role"] == "master"
    acknowledged = enqueuer.log.split().index("again")
    ids = [line for line in enqueuer.log.split() if line != "again"]
    there = {row.id for row in rows_of(app, ids)}
    lost = [number for number, job in enumerate(ids) if job not in there]
    assert lost == list(range(acknowledged - len(lost), acknowledged))  # the last of those that the first one took
    kept = [job for job in ids if job in there]
    eventually(lambda: all(row.state.final for row in rows_of(app, kept)), within=PATIENCE)
    done = account(app, kept, ledger, server_crashed=True)
    assert done.states == {State.SUCCEEDED: len(kept)}
    assert set(done.repeated.values()) <= {2}
    for worker in workers:
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert "Traceback" not in fleet.logs()


def test_workers_follow_a_switch_that_somebody_asked_for(
    app: Rota, fleet: Fleet, primary: RedisServer, replica: RedisServer, sentinel: Sentinel, ledger: Path
) -> None:
    """The first one is there all the time, and comes to be the other's replica: what it took in between is forgotten."""
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 1_500)]
    worker = fleet.worker(lease=30, concurrency=5)
    eventually(lambda: starts(ledger) > 100)
    with sentinel.client() as admin:
        admin.execute_command("SENTINEL FAILOVER", sentinel.name)
    eventually(lambda: primary.info("replication")["role"] == "slave", within=PATIENCE)
    more = eventually(lambda: app.named("nap").enqueue_many([(0.01,)] * 20))
    ids += [job.id for job in more]
    eventually(lambda: all(row.state.final for row in rows_of(app, ids)), within=PATIENCE)
    done = account(app, ids, ledger, server_crashed=True)
    assert done.states == {State.SUCCEEDED: len(ids)}
    assert set(done.repeated.values()) <= {2}
    assert replica.info("replication")["role"] == "master"
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert "Traceback" not in worker.log


def test_a_server_that_takes_no_writes_from_now_on_is_noticed_and_left(
    fleet: Fleet, primary: RedisServer, replica: RedisServer, ledger: Path, tmp_path: Path
) -> None:
    url = primary.url()
    with Rota(url) as app:
        go = tmp_path / "go"
        long = app.named("until").enqueue(str(go))
        busy, idle = (
            fleet.program("fault_worker", json.dumps({"lease": 30, "poll": 0.5, "concurrency": slots}), url=url)
            for slots in (1, 4)
        )
        eventually(lambda: starts(ledger) == 1 and len(app.workers()) == 2)
        replica.promote()
        primary.follow(replica)
        for worker in (busy, idle):
            eventually(lambda worker=worker: "takes no writes" in worker.log, within=PATIENCE)
        with pytest.raises(StoreUnavailable, match=r"is a replica and takes no writes .*: point the URL at the primary"):
            app.named("quick").enqueue()
        assert app.get(long.id).status is State.RUNNING  # it is read all the same
        go.touch()
        primary.promote()
        assert long.wait(PATIENCE).status is State.SUCCEEDED
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
        assert account(app, [long.id], ledger).repeated == {}
        for worker in (busy, idle):
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
            assert "Traceback" not in worker.log
