"""A ring is small and rare, whatever comes in: an empty notification on a channel with a short name, once a batch."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import NewJob, WorkerRow
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.postgres import PostgresDatabase
from rota.stores.sql import SqlStore
from servers import PostgresServer

LONG = "ñ" * 200
MANY = 20_000


@pytest.fixture
def store(postgres_server: PostgresServer) -> Iterator[Store]:
    """A store in which a worker sleeps."""
    with postgres_server.schema() as url:
        store = open_store(url)
        row = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 60 * SECOND, "1")
        store.join(row)
        store.rest(row.id, True)
        yield store
        store.close()


@pytest.fixture
def ear(postgres_server: PostgresServer, store: Store) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection that hears the store ring."""
    assert isinstance(store, SqlStore)
    assert isinstance(store._database, PostgresDatabase)
    with postgres_server.connect() as connection:
        connection.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(store._database._queries.channel)))
        yield connection


def heard(ear: psycopg.Connection[tuple[object, ...]]) -> int:
    """How often it rang since the last time."""
    ear.execute("select 1")
    return len(list(ear.notifies(timeout=0)))


@pytest.mark.parametrize("batch", [1, 20, 300])
def test_jobs_of_any_size_ring(store: Store, ear: psycopg.Connection[tuple[object, ...]], batch: int) -> None:
    """A notification holds fewer than 8,000 bytes."""
    for size in (7_900, 7_999, 8_000, 8_100, 100_000):
        args = '["' + "x" * (size - 4) + '"]'
        store.insert([NewJob(new_id(), LONG, LONG, args, key=f"{LONG} {size} {n}") for n in range(batch)])
        assert heard(ear) == 1
    assert [count.jobs for count in store.counts()] == [5 * batch]


def test_a_large_batch_rings_a_few_times_at_most(store: Store, ear: psycopg.Connection[tuple[object, ...]]) -> None:
    """Each notification wakes every worker, and takes a lock that all commits of the server share."""
    store.insert(NewJob(new_id(), "t", "q", "[]") for _ in range(MANY))
    assert 1 <= heard(ear) <= 5
