"""What a claim reads does not grow with what the store holds: jobs that are done, scheduled, running, or wait elsewhere.

The databases count what is read, so nothing here depends on how fast the machine is.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from rota import Rota
from rota.ids import new_id
from rota.model import Ask, Ended, NewJob, State, Succeeded, WorkerRow
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.sql import SqlStore
from rota.stores.sqlite import SqliteDatabase
from rota.stores.sqlite_engine import FileEngine
from rota.testing.limits import Declares
from servers import PostgresServer
from working import eventually, working

WAITING, SCHEDULED, DONE, RUNNING = 20_000, 10_000, 3_000, 1_000
QUEUES = [f"q{n}" for n in range(50)]
ASKED = {"one queue": QUEUES[:1], "several": QUEUES[:5], "all": QUEUES, "one that is empty": ["nothing here"]}
TAKEN = 10
BACKLOG = 10_000


def fill(store: Store) -> str:
    """Bring in many jobs in every state, with priorities and keys, and answer the id of a worker."""
    worker = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 600_000_000, "1")
    store.join(worker)
    for queue, number in (("done", DONE), ("busy", RUNNING)):
        store.insert(NewJob(new_id(), "t", queue, "[[],{}]") for _ in range(number))
        claimed = store.claim(Ask(worker.id, (queue,), number))
        assert len(claimed) == number
        if queue == "done":
            store.finish(worker.id, [Ended(each.id, each.claim, Succeeded()) for each in claimed])
    store.insert(NewJob(new_id(), "t", QUEUES[n % 50], "[[],{}]", priority=n % 3) for n in range(WAITING))
    store.insert(NewJob(new_id(), "t", QUEUES[n % 50], "[[],{}]", delay=600_000_000) for n in range(SCHEDULED))
    store.insert(NewJob(new_id(), "t", queue, "[[],{}]", key=queue) for queue in QUEUES)
    return worker.id


def test_a_claim_from_postgres_reads_little_more_than_it_takes(postgres_server: PostgresServer) -> None:
    with postgres_server.schema() as url:
        store = open_store(url)
        worker = fill(store)
        schema = str(store.vitals().facts["schema"])
        store.close()
        for name, queues in ASKED.items():
            before = rows_read(postgres_server, schema)
            taken = store.claim(Ask(worker, tuple(queues), TAKEN))
            store.close()
            read = rows_read(postgres_server, schema) - before
            assert len(taken) == (TAKEN if "q0" in queues else 0), name
            assert len(taken) <= read <= TAKEN * (len(queues) + len(ASKED)), name  # passing over what was taken before


def test_a_claim_under_limits_reads_little_more_than_it_takes(postgres_server: PostgresServer) -> None:
    """Also where a thousand jobs are held, and a thousand run under the same limit."""
    with postgres_server.schema() as url:
        store = open_store(url)
        worker = fill(store)
        schema = str(store.vitals().facts["schema"])
        full = Declares({"mail": {"concurrency": 1_000}})
        store.insert(NewJob(new_id(), "mail", "mail", "[[],{}]") for _ in range(2_000))
        while len(store.admit(Ask(worker, ("mail",), 500, 500), full).claimed):
            pass
        assert [(room.running, room.held) for room in store.rooms()] == [(1_000, 1_000)]
        limits = Declares({"t": {"concurrency": 100_000}, "mail": {"concurrency": 1_000}})
        store.close()
        for name, queues in ASKED.items():
            before = rows_read(postgres_server, schema)
            taken = store.admit(Ask(worker, tuple(queues), TAKEN, TAKEN), limits).claimed
            store.close()
            read = rows_read(postgres_server, schema) - before
            assert len(taken) == (TAKEN if "q0" in queues else 0), name
            assert len(taken) <= read <= 2 * TAKEN * (len(queues) + len(ASKED)), name


def rows_read(server: PostgresServer, schema: str) -> int:
    """How many jobs were read so far."""
    read = along_indexes(server, schema)
    with server.connect() as admin:
        [(one_by_one,)] = admin.execute(
            "select seq_tup_read from pg_stat_user_tables where schemaname = %s and relname = 'rota_jobs'", [schema]
        ).fetchall()
    return read + int(str(one_by_one))


def test_a_claim_from_sqlite_takes_few_steps(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    worker = fill(store)
    for name, queues in ASKED.items():
        taken, steps = counted(store, Ask(worker, tuple(queues), TAKEN))
        assert len(taken) == (TAKEN if "q0" in queues else 0), name
        assert steps <= 100 * TAKEN * (len(queues) + 3), name
    store.close()


def counted(store: Store, ask: Ask) -> tuple[list[object], int]:
    """What was claimed, and about how many steps SQLite's machine took for it."""
    assert isinstance(store, SqlStore)
    assert isinstance(store._database, SqliteDatabase)
    assert isinstance(store._database._engine, FileEngine)
    writer = store._database._engine._writer
    assert writer is not None
    steps: list[None] = []
    writer.set_progress_handler(lambda: steps.append(None), 100)
    taken = store.claim(ask)
    writer.set_progress_handler(None, 0)
    return list(taken), 100 * len(steps)


def test_claims_wade_through_little_of_what_an_old_transaction_keeps(
    postgres_server: PostgresServer,
) -> None:
    """A worker's claims leave off where the last one did; from the front each would pass every job that was done before."""
    with postgres_server.schema() as url, Rota(url) as app, psycopg.connect(url.split("&schema=")[0]) as old:
        app.task(name="t")(lambda: None)
        schema = str(app.stats().facts["schema"])
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select 1")
        app.named("t").enqueue_many([()] * BACKLOG)
        app.close()
        before = along_indexes(postgres_server, schema)
        with working(app):
            eventually(lambda: app.stats().states[State.SUCCEEDED] == BACKLOG, within=60)
        app.close()
        assert along_indexes(postgres_server, schema) - before < 12 * BACKLOG


def along_indexes(server: PostgresServer, schema: str) -> int:
    """How many entries of its indexes were read so far to find jobs, those of jobs that are gone included.

    A session tells at its end, so this waits until there is none of the store's.
    """
    eventually(lambda: not [said for said in server.backends().values() if " rota: " in said])
    with server.connect() as admin:
        [(read,)] = admin.execute(
            "select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = %s and relname = 'rota_jobs'", [schema]
        ).fetchall()
    return int(str(read))
