"""Tables that an older Rota made become those of this one, with the jobs in them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.ids import new_id
from rota.model import Ended, State, Succeeded, WorkerRow
from rota.stores import open_store, queries
from rota.testing.contract.limits import ONE, admit
from servers import PostgresServer
from working import eventually

STANDING = "select 1 from pg_stat_activity where application_name = 'rota' and state = 'idle in transaction'"


def make_tables(url: str, steps: list[tuple[str, str]], upto: str, jobs: list[str]) -> None:
    """Make the tables of an older Rota, with these jobs of a task `mail` in them."""
    text = "\n".join(text for name, text in steps if name <= upto)
    [table] = re.findall(r"create table (\S.*rota_jobs) \(|create table (rota_jobs) \(", text)
    columns = "id, task, queue, args, priority, due, state, max_attempts, created_at"
    for job in jobs:
        row = f"'{job}', 'mail', 'default', '[[],{{}}]', 0, 1, 'queued', 5, 1"
        text += f"\ninsert into {''.join(table)} ({columns}) values ({row});"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(text)
    else:
        with psycopg.connect(url.split("&schema=")[0], autocommit=True) as connection:
            connection.execute(text.encode())


def test_postgres_ends_a_migration_whose_process_stands_still(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the tables, and all who use them would wait for as long as it does nothing."""
    begun: list[str] = []

    def stand_still(*_: object) -> list[str]:
        begun.append("migration")
        with postgres_server.connect() as other:
            eventually(lambda: not other.execute(STANDING).fetchall())
        return ["0001_tables"]

    monkeypatch.setattr("rota.stores.postgres_driver._SILENCE", "200ms")
    monkeypatch.setattr("rota.stores.postgres.versions.migrate", stand_still)
    with postgres_server.schema() as url:
        store = open_store(url)
        with pytest.raises(StoreUnavailable, match=r"open for too long|closed"):
            store.migrate()
        store.close()
    assert begun == ["migration"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_without_limits_gets_them_and_keeps_its_jobs(
    kind: str, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with postgres_server.schema() as postgres_url:
        url = postgres_url if kind == "postgres" else f"sqlite:///{tmp_path / 'jobs.db'}"
        jobs = [new_id() for _ in range(3)]
        make_tables(url, open_store(url).schema(), "0001_tables", jobs)
        store = open_store(url)
        assert store.migrate() == [name for _, name, _ in queries.migrations(kind)[1:]]
        worker = WorkerRow(new_id(), "w", "h", 1, None, ["mail"], 1, 600_000_000, "1")
        store.join(worker)
        found = admit(store, worker.id, ONE, now=None)
        [claimed] = found.claimed
        assert claimed.id == jobs[0]
        assert {each.state for each in store.get(jobs[1:])} == {State.HELD}
        store.finish(worker.id, [Ended(claimed.id, claimed.claim, Succeeded(), places=found.places[claimed.id])])
        assert [each.id for each in admit(store, worker.id, ONE, now=None).claimed] == [jobs[1]]
        store.close()
