"""SQLite reads jobs along an index in every hot query, whether or not someone ran `analyze`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from plans import HOT

from rota.ids import new_id
from rota.model import NewJob
from rota.stores import open_store
from rota.stores.sqlite_engine import bind, forms


@pytest.fixture(scope="module", params=["as it comes", "analyzed"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """One for all, since plans are only looked at."""
    path = tmp_path_factory.mktemp("plans") / "jobs.db"
    store = open_store(f"sqlite:///{path}")
    delays = (0, 0, 0, 60_000_000)
    store.insert(NewJob(new_id(), "t", f"q{n % 20}", "[]", delay=delays[n % 4], priority=n % 3) for n in range(20_000))
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("select count(*) from rota_queues").fetchall()  # so that all its files are open before a test looks
    if request.param == "analyzed":
        connection.execute("analyze")
    yield connection
    connection.close()


@pytest.mark.parametrize("query", HOT)
def test_no_hot_query_reads_a_whole_table(database: sqlite3.Connection, query: str) -> None:
    bound = {name: bind(name, value) for name, value in HOT[query].items()}
    for statement in forms()[query]:
        steps = [row[3] for row in database.execute(f"explain query plan {statement}", bound)]
        assert not [step for step in steps if step.startswith("SCAN rota_")], "\n".join(steps)


def test_a_claim_takes_each_queue_in_the_order_of_its_index(database: sqlite3.Connection) -> None:
    bound = {name: bind(name, value) for name, value in HOT["claim"].items()}
    for statement in forms()["claim"]:
        steps = [row[3] for row in database.execute(f"explain query plan {statement}", bound)]
        [at] = [number for number, step in enumerate(steps) if "rota_jobs_ready (queue=?)" in step]
        assert steps[at - 1] == "CORRELATED LIST SUBQUERY 1"
        assert "TEMP B-TREE" not in steps[at - 1]


def test_failed_jobs_are_found_newest_first_along_their_own_index(database: sqlite3.Connection) -> None:
    bound = dict.fromkeys(("before", "queue", "task", "key", "worker")) | {"limit": 50}
    [statement] = forms()["find_failed"]
    assert [row[3] for row in database.execute(f"explain query plan {statement}", bound)] == [
        "SCAN rota_history USING INDEX rota_history_failed"
    ]
