"""Another server takes the writes: workers find it among the hosts of their URL and leave the one that takes none any more."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import JobRow, State
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def standby(frail: PostgresServer) -> Iterator[PostgresServer]:
    """A server that follows `frail`."""
    server = PostgresServer(frail)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def url(frail: PostgresServer, standby: PostgresServer) -> str:
    """With both hosts."""
    return frail.url(host=f"{frail.directory},{standby.directory}")


def rows_of(app: Rota, ids: list[str]) -> list[JobRow]:
    return [row for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500])]


@pytest.mark.parametrize("synchronous", [False, True], ids=["asynchronous", "synchronous"])
def test_workers_go_on_at_the_standby_that_was_promoted(
    app: Rota, fleet: Fleet, frail: PostgresServer, standby: PostgresServer, ledger: Path, synchronous: bool
) -> None:
    """What a primary had acknowledged and not yet passed on is lost with it: the last jobs, and none before one that is there.

    With synchronous replication none is. Claims wait for no standby, so a few jobs may be claimed once more.
    """
    if synchronous:
        frail.set("synchronous_standby_names", "*")
    app.migrate()
    workers = [fleet.worker(lease=5, concurrency=4) for _ in range(2)]
    enqueuer = fleet.program("fault_steady")
    eventually(lambda: starts(ledger) > 150, within=PATIENCE)
    frail.kill()
    with pytest.raises(StoreUnavailable):  # at once, although a standby is there
        app.named("quick").enqueue()
    standby.promote()
    eventually(lambda: enqueuer.log.count("again") == 1, within=PATIENCE)
    enqueuer.send(signal.SIGTERM)
    assert enqueuer.wait() == 0
    acknowledged = enqueuer.log.split().index("again")
    ids = [line for line in enqueuer.log.split() if line != "again"]
    there = {row.id for row in rows_of(app, ids)}
    lost = [number for number, job in enumerate(ids) if job not in there]
    assert lost == list(range(acknowledged - len(lost), acknowledged))  # the last of those that the first one took
    assert len(lost) == 0 if synchronous else len(lost) < 50
    kept = [job for job in ids if job in there]
    eventually(lambda: all(row.state.final for row in rows_of(app, kept)), within=PATIENCE)
    done = account(app, kept, ledger, server_crashed=True)
    assert done.states == {State.SUCCEEDED: len(kept)}
    assert sum(done.repeated.values()) < 50
    for worker in workers:
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert "Traceback" not in fleet.logs()


def test_a_server_that_comes_back_as_a_standby_is_left(
    app: Rota, fleet: Fleet, frail: PostgresServer, standby: PostgresServer, ledger: Path
) -> None:
    worker = fleet.worker(lease=30)
    before = app.named("quick").enqueue_many([()] * 20)
    eventually(lambda: starts(ledger) == 20, within=PATIENCE)
    eventually(lambda: app.stats().states[State.SUCCEEDED] == 20)
    frail.stop()
    standby.promote()
    frail.follow(standby)
    after = eventually(lambda: app.named("quick").enqueue_many([()] * 20))  # the first host answers, but takes no writes
    eventually(lambda: app.stats().states[State.SUCCEEDED] == 40, within=PATIENCE)
    assert account(app, [job.id for job in [*before, *after]], ledger).repeated == {}
    with psycopg.connect(frail.url(), autocommit=True) as follower:
        assert follower.execute("select pg_is_in_recovery()").fetchone() == (True,)
    with Rota(frail.url()) as alone, pytest.raises(StoreUnavailable, match=r"takes no writes.*name all hosts"):
        alone.named("quick").enqueue()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_server_that_takes_no_writes_from_now_on_is_noticed_and_left(
    fleet: Fleet, frail: PostgresServer, ledger: Path, tmp_path: Path
) -> None:
    url = frail.url()
    with Rota(url) as app:
        go = tmp_path / "go"
        long = app.named("until").enqueue(str(go))
        worker = fleet.program("fault_worker", json.dumps({"lease": 30, "poll": 0.5}), url=url)
        eventually(lambda: starts(ledger) == 1)
        clients = set(frail.backends())
        frail.set("default_transaction_read_only", "on")
        eventually(lambda: "takes no writes" in worker.log, within=PATIENCE)
        with pytest.raises(StoreUnavailable, match="takes no writes"):
            app.named("quick").enqueue()
        eventually(lambda: len(clients & set(frail.backends())) <= 1, within=PATIENCE)  # one that had nothing to write
        assert app.stats().states[State.RUNNING] == 1  # it is read all the same
        go.touch()
        with psycopg.connect(url, autocommit=True, options="-cdefault_transaction_read_only=off") as admin:
            admin.execute("alter system reset default_transaction_read_only")
            admin.execute("select pg_reload_conf()")
        assert long.wait(PATIENCE).status is State.SUCCEEDED
        assert account(app, [long.id], ledger).starts == 1
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
