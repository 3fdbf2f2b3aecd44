"""Many workers on a server with few connections: each needs a few of its own, however many slots it has, and waits for them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Rota
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

WORKERS, SLOTS = 4, 20
EACH = 5
"""The most connections of a worker whose bodies use none."""
OWN = 4
"""Those of the test."""


@pytest.fixture
def small() -> Iterator[PostgresServer]:
    """A server with room for the workers, the test and an administrator."""
    server = PostgresServer(max_connections=str(WORKERS * EACH + OWN))
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_workers_that_start_at_once_on_a_full_server_wait_and_then_share_it(
    small: PostgresServer, tmp_path: Path, ledger: Path
) -> None:
    go = tmp_path / "go"
    with Rota(small.url(application_name="test")) as app, ExitStack() as others:
        fleet = Fleet(tmp_path, small.url(), ledger)
        others.callback(fleet.close)
        jobs = app.named("until").enqueue_many([(str(go),)] * WORKERS * SLOTS)
        with ExitStack() as crowd:
            with pytest.raises(psycopg.OperationalError):
                while True:
                    crowd.enter_context(small.connect())
            workers = [fleet.worker(concurrency=SLOTS, lease=30) for _ in range(WORKERS)]
            eventually(lambda: all("the store is away" in worker.log for worker in workers))
            assert all(worker.alive for worker in workers)
        eventually(lambda: starts(ledger) == WORKERS * SLOTS, within=PATIENCE)
        assert sum(" rota: " in said for said in small.backends().values()) <= WORKERS * EACH
        go.touch()
        eventually(lambda: app.stats().states[State.SUCCEEDED] == len(jobs), within=PATIENCE)
        done = account(app, [job.id for job in jobs], ledger)
        assert (done.starts, done.repeated) == (len(jobs), {})
        assert "Traceback" not in fleet.logs()


def test_more_workers_than_the_server_has_room_for_leave_no_one_waiting_for_another(tmp_path: Path, ledger: Path) -> None:
    """Each that works has all it needs, and each that waits has nothing; who goes is followed by one that waited."""
    room, waiting = 2, 6
    server = PostgresServer(max_connections=str(room * EACH + OWN))
    with ExitStack() as end:
        end.callback(server.close)
        server.start()
        app = end.enter_context(Rota(server.url(application_name="test")))
        fleet = Fleet(tmp_path, server.url(), ledger)
        end.callback(fleet.close)
        go = tmp_path / "go"
        jobs = app.named("until").enqueue_many([(str(go),)] * (room + waiting) * SLOTS)
        workers = [fleet.worker(concurrency=SLOTS, lease=30) for _ in range(room + waiting)]
        eventually(lambda: starts(ledger) >= room * SLOTS, within=PATIENCE)
        eventually(lambda: any("has no room for another connection" in worker.log for worker in workers))
        eventually(lambda: all(worker.log for worker in workers))  # so that each is far enough to heed a signal
        assert all(worker.alive for worker in workers)
        go.touch()
        eventually(lambda: app.stats().states[State.SUCCEEDED] == len(jobs), within=PATIENCE)
        for worker in workers:
            worker.send(signal.SIGTERM)
        assert [worker.wait() for worker in workers] == [0] * len(workers)
        done = account(app, [job.id for job in jobs], ledger)
        assert (done.starts, done.repeated) == (len(jobs), {})
        assert "Traceback" not in fleet.logs()
