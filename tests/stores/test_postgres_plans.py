"""Postgres reads jobs along an index in every hot query, on analyzed tables and on tables that grew since.

Plans that are made at each run are looked at as they are then; plans that are kept, also as they are made on empty tables.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from plans import HOT_ON_POSTGRES

from rota.ids import new_id
from rota.model import Ask, Ended, NewJob, Succeeded, WorkerRow
from rota.stores import open_store
from rota.stores.postgres import PostgresDatabase
from rota.stores.postgres_driver import Session
from rota.stores.sql import SqlStore
from servers import PostgresServer


def database_of(store: object) -> PostgresDatabase:
    assert isinstance(store, SqlStore)
    assert isinstance(store._database, PostgresDatabase)
    return store._database


@pytest.fixture(scope="module", params=["empty", "vacuumed empty"])
def empty(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[Session]:
    """A session that keeps plans, on a store without jobs."""
    with postgres_server.schema() as url:
        store = open_store(url, max_size=1)
        store.open()
        database = database_of(store)
        with database._pool.session(database._queries, "kept") as session:
            if request.param == "vacuumed empty":
                for table in ("rota_jobs", "rota_history", "rota_attempts"):
                    session.driver().execute(f"vacuum analyze {database._queries.table(table)}")
            yield session
        store.close()


@pytest.fixture(scope="module", params=["never analyzed", "vacuumed empty, then filled", "analyzed"])
def session(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[Session]:
    """A session on a store with many jobs, each of its statements prepared while the tables were empty."""
    with postgres_server.schema() as url:
        store = open_store(url, max_size=1)
        store.open()
        database = database_of(store)
        with database._pool.session(database._queries) as session:
            if request.param == "vacuumed empty, then filled":
                session.driver().execute(f"vacuum analyze {database._queries.table('rota_jobs')}")
                session.driver().execute(f"vacuum analyze {database._queries.table('rota_history')}")
        worker = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 600_000_000, "1")
        store.join(worker)
        for _ in range(10):  # more often than it takes to prepare a statement
            store.insert([NewJob(new_id(), "t", "q1", "[]")])
            [claimed] = store.claim(Ask(worker.id, ("q1",), 1))
            store.finish(worker.id, [Ended(claimed.id, claimed.claim, Succeeded())], Ask(worker.id, ("q1",), 1))
        delays = (0, 0, 0, 60_000_000)
        store.insert(NewJob(new_id(), "t", f"q{n % 20}", "[]", delay=delays[n % 4], priority=n % 3) for n in range(50_000))
        with database._pool.session(database._queries) as session:
            if request.param == "analyzed":
                session.driver().execute(f"analyze {database._queries.table('rota_jobs')}")
            yield session
        store.close()


def plan(session: Session, query: str) -> str:
    which = session.queries[query]
    values = which.values({"durable": True, **HOT_ON_POSTGRES[query]})
    result = session.driver().pgconn.exec_params(b"explain (costs off) " + which.text, values, param_formats=which.formats)
    assert not result.error_message, result.error_message
    return "\n".join((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))


def kept_plan(session: Session, query: str) -> str:
    """The plan that serves whatever the parameters are."""
    text = b"explain (generic_plan, costs off) " + session.queries[query].text
    return "\n".join(str(row[0]) for row in session.driver().execute(text))


@pytest.mark.parametrize("query", HOT_ON_POSTGRES)
def test_no_hot_query_reads_the_whole_live_table(session: Session, query: str) -> None:
    steps = plan(session, query)
    assert "Seq Scan on rota_jobs" not in steps, steps


@pytest.mark.parametrize("query", HOT_ON_POSTGRES)
def test_no_plan_that_is_kept_from_an_empty_store_reads_a_whole_table(empty: Session, query: str) -> None:
    steps = kept_plan(empty, query)
    for table in ("jobs", "history", "rooms", "places", "tallies"):
        assert f"Seq Scan on rota_{table}" not in steps, steps


@pytest.mark.parametrize("query", ["claim", "claim_behind", "claim_amply"])
def test_a_claim_whose_plan_is_kept_takes_each_queue_in_the_order_of_its_index(empty: Session, query: str) -> None:
    steps = kept_plan(empty, query)
    inner = steps[steps.rindex("Nested Loop", 0, steps.index("LockRows", steps.index("Sort"))) :]
    assert "Index Scan using rota_jobs_ready" in inner, steps
    assert "Sort" not in inner, steps


@pytest.mark.parametrize("query", ["claim", "claim_behind", "claim_amply"])
def test_a_claim_takes_each_queue_in_the_order_of_its_index(session: Session, query: str) -> None:
    steps = plan(session, query)
    inner = steps[steps.rindex("Nested Loop", 0, steps.index("LockRows", steps.index("Sort"))) :]
    assert "Index Scan using rota_jobs_ready" in inner, steps
    assert "Sort" not in inner, steps


def test_plans_are_made_for_the_tables_as_they_are(session: Session) -> None:
    assert session.driver().execute("show plan_cache_mode").fetchone() == ("force_custom_plan",)
