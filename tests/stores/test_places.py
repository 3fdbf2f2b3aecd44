"""Notes of the places that jobs take under limits: few at any time, none for long, and the count is right whatever they say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import unquote

import psycopg
import pytest
from psycopg import sql

from rota.rules.limits import Limit
from rota.rules.sizes import Concurrency
from rota.stores import open_store
from rota.stores.base import Store
from rota.testing.contract.limits import MAIL, ONE, admit, ended, job, mail, settled, worker_of
from rota.testing.contract.scene import NOW, put

HOUR = 3_600_000_000


@pytest.fixture
def store(shared_url: str) -> Iterator[Store]:
    with closing(open_store(shared_url)) as store:
        store.open()
        yield store


def notes(url: str) -> int:
    """How many there are."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return len(connection.execute("select 1 from rota_places").fetchall())
    database, schema = url.split("&schema=")
    with psycopg.connect(database) as postgres:
        return len(postgres.execute(sql.SQL("select 1 from {}.rota_places").format(sql.Identifier(unquote(schema)))).fetchall())


@pytest.mark.parametrize(("size", "jobs", "enough"), [(40, 600, 4), (1_000_000, 1_500, 70)])
def test_notes_do_not_grow_with_the_jobs_that_ran(store: Store, shared_url: str, size: int, jobs: int, enough: int) -> None:
    limits, worker = mail(concurrency=size), worker_of(store)
    put(store, *(job() for _ in range(jobs)))
    most = 0
    while claims := settled(store, worker, limits, slots=15):
        store.finish(worker, [ended(claimed) for claimed in claims], now=NOW)
        most = max(most, notes(shared_url))
    assert most <= enough


def test_notes_go_with_their_rooms(store: Store, shared_url: str) -> None:
    worker = worker_of(store)
    put(store, job(), job())
    [claimed] = admit(store, worker, ONE).claimed
    store.prune({}, 100, now=NOW + HOUR)
    assert notes(shared_url) == 1
    store.finish(worker, [ended(claimed)], now=NOW)
    [second] = settled(store, worker, ONE)
    store.finish(worker, [ended(second)], now=NOW)
    store.prune({}, 100, now=NOW + HOUR)
    assert (notes(shared_url), store.rooms()) == (0, [])


def test_a_pruning_keeps_up_with_many_new_keys(store: Store, shared_url: str) -> None:
    """Each makes a room, and a worker may meet thousands a second."""
    limits, worker = mail(concurrency=Limit(1, key=lambda tenant: tenant)), worker_of(store)
    put(store, *(job(arguments={"tenant": tenant}) for tenant in range(90)))
    claims = settled(store, worker, limits, slots=90)
    store.finish(worker, [ended(claimed) for claimed in claims], now=NOW)
    assert (len(claims), notes(shared_url)) == (90, 90)
    store.prune({}, 1, now=NOW + HOUR)
    assert notes(shared_url) == 0


def test_a_smaller_size_that_was_set_counts_what_runs_and_not_what_ran(store: Store) -> None:
    limits, worker = mail(concurrency=1_000), worker_of(store)
    put(store, *(job() for _ in range(40)))
    first = admit(store, worker, limits, slots=30).claimed
    assert len(first) == 30
    store.finish(worker, [ended(claimed) for claimed in first[3:]], now=NOW)
    store.set_limit(MAIL, Concurrency(5), now=NOW)
    found = admit(store, worker, limits, slots=30)
    assert (len(found.claimed), found.held) == (2, 8)
    store.set_limit(MAIL, Concurrency(6), now=NOW)
    assert len(settled(store, worker, limits)) == 1


def test_places_of_jobs_that_ended_elsewhere_are_not_counted_near_the_limit(store: Store) -> None:
    """A lost worker gives nothing back itself."""
    limits, worker, other = mail(concurrency=20), worker_of(store), worker_of(store)
    put(store, *(job() for _ in range(40)))
    assert len(settled(store, worker, limits, slots=20)) == 20
    assert settled(store, other, limits) == []
    store.leave(worker, now=NOW)
    assert len(settled(store, other, limits)) == 20
