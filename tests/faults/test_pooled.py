"""Behind a transaction pooler no session is a worker's own, and none is needed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from pooler import Pooler, pooling
from rota import Rota
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


@pytest.fixture
def pooler(postgres_server: PostgresServer) -> Iterator[Pooler]:
    with pooling(postgres_server.directory, size=2) as pooler:
        yield pooler


@pytest.fixture
def url(postgres_server: PostgresServer, pooler: Pooler) -> Iterator[str]:
    with postgres_server.schema() as direct:
        yield pooler.url(schema=parse_qs(urlsplit(direct).query)["schema"][0])


@pytest.fixture
def app(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rota]:
    options = {"pooler": True}
    monkeypatch.setenv("FAULT_OPTIONS", json.dumps(options))  # for the programs
    with Rota(url, **options) as app:
        yield app


def test_workers_and_commands_share_two_connections(
    app: Rota, fleet: Fleet, pooler: Pooler, postgres_server: PostgresServer, ledger: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    fleet.command("migrate")
    long = app.named("until").enqueue(str(go))
    jobs = app.named("quick").enqueue_many([()] * 1_000)
    workers = [fleet.worker(lease=15) for _ in range(4)]
    eventually(lambda: app.stats().states[State.SUCCEEDED] == 1_000, within=PATIENCE)
    unwanted = app.named("auntil").enqueue(str(tmp_path / "never"))
    eventually(lambda: starts(ledger, unwanted.id) == 1)
    fleet.command("jobs", "cancel", unwanted.id)
    assert unwanted.wait(PATIENCE).status is State.CANCELLED
    go.touch()
    assert long.wait(PATIENCE).status is State.SUCCEEDED
    assert {worker.pid for worker in app.workers()} == {worker.pid for worker in workers}
    for worker in workers:
        worker.send(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0] * 4

    done = account(app, [long.id, *(job.id for job in jobs)], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 1_001}, {})
    for word in ("WARNING", "ERROR", "Traceback"):
        assert word not in fleet.logs()
    assert pooler.transactions > 100
    with postgres_server.connect() as admin:
        assert admin.execute("select pid from pg_stat_activity where state like 'idle in transaction%'").fetchall() == []
        assert admin.execute("select pid from pg_locks where locktype = 'advisory'").fetchall() == []
