"""What a claim reads does not grow with what the store holds: jobs that are done, scheduled, running, or wait elsewhere.

The databases count what is read, so nothing here depends on how fast the machine is.
"""

from __future__ import annotations

from pathlib import Path

from rota.ids import new_id
from rota.model import Ask, Ended, NewJob, Succeeded, WorkerRow
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.sql import SqlStore
from rota.stores.sqlite import SqliteDatabase
from rota.stores.sqlite_engine import FileEngine
from servers import PostgresServer
from working import eventually

WAITING, SCHEDULED, DONE, RUNNING = 20_000, 10_000, 3_000, 1_000
QUEUES = [f"q{n}" for n in range(50)]
ASKED = {"one queue": QUEUES[:1], "several": QUEUES[:5], "all": QUEUES, "one that is empty": ["nothing here"]}
TAKEN = 10


def fill(store: Store) -> str:
    """Bring in many jobs in every state, with priorities and keys, and answer the id of a worker."""
    worker = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 600_000_000, "1")
    store.join(worker)
    for queue, number in (("done", DONE), ("busy", RUNNING)):
        store.insert(NewJob(new_id(), "t", queue, "[]") for _ in range(number))
        claimed = store.claim(Ask(worker.id, (queue,), number))
        assert len(claimed) == number
        if queue == "done":
            store.finish(worker.id, [Ended(each.id, each.claim, Succeeded()) for each in claimed])
    store.insert(NewJob(new_id(), "t", QUEUES[n % 50], "[]", priority=n % 3) for n in range(WAITING))
    store.insert(NewJob(new_id(), "t", QUEUES[n % 50], "[]", delay=600_000_000) for n in range(SCHEDULED))
    store.insert(NewJob(new_id(), "t", queue, "[]", key=queue) for queue in QUEUES)
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


def rows_read(server: PostgresServer, schema: str) -> int:
    """How many jobs were read so far. A session tells at its end, so this waits until there is none of the store's."""
    eventually(lambda: not [said for said in server.backends().values() if " rota: " in said])
    with server.connect() as admin:
        [(along_indexes, one_by_one)] = admin.execute(
            "select (select sum(idx_tup_read) from pg_stat_user_indexes as i where i.relid = t.relid), seq_tup_read"
            " from pg_stat_user_tables as t where schemaname = %s and relname = 'rota_jobs'",
            [schema],
        ).fetchall()
    return int(str(along_indexes)) + int(str(one_by_one))


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
