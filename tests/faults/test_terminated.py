"""SIGTERM at any moment: the worker ends with status 0, and every job is run, handed back, or taken back after one lease."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import psycopg
import pytest
from kit import PATIENCE, Fleet, Program

from accounts import account, starts
from rota import Rota
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = pytest.mark.slow


def finish(app: Rota, fleet: Fleet, ids: list[str]) -> Program:
    """Let another worker run what is left."""
    worker = fleet.worker()
    eventually(lambda: all(row.state.final for row in app.store.get(ids)), within=PATIENCE)
    return worker


@pytest.mark.timeout(120)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_signal_at_any_call_of_the_store_loses_nothing(app: Rota, fleet: Fleet, ledger: Path, after: bool) -> None:
    jobs = app.named("nap").enqueue_many([(0.02,)] * 300)
    row = fleet.worker(sigterm=(24, after))
    assert row.wait() == 0, row.log
    assert row.log.count("stopped") == 24
    assert "Traceback" not in row.log
    assert app.workers() == []
    assert app.stats().states[State.RUNNING] == 0
    finish(app, fleet, [job.id for job in jobs])
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 300}, {})
    assert {job.refresh().attempt for job in jobs} == {1}


@pytest.mark.timeout(60)
def test_four_deploys_during_one_job_use_up_no_attempt(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    jobs = [app.named(task).using(max_attempts=3).enqueue(str(go)) for task in ("until", "auntil")]
    for deploy in range(1, 5):
        worker = fleet.worker(shutdown_timeout=0.1)
        eventually(lambda deploy=deploy: starts(ledger) == 2 * deploy)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
        for job in jobs:
            row = job.refresh().row
            assert (row.state, row.attempt, row.excused) == (State.QUEUED, 0, deploy)
    go.touch()
    finish(app, fleet, [job.id for job in jobs])
    assert [(job.refresh().status, job.attempt) for job in jobs] == [(State.SUCCEEDED, 1)] * 2


@pytest.mark.timeout(60)
def test_what_ends_in_the_time_given_is_recorded(app: Rota, fleet: Fleet, ledger: Path) -> None:
    jobs = app.named("nap").enqueue_many([(1.0,)] * 4)
    worker = fleet.worker()
    eventually(lambda: starts(ledger) == 4)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert {job.refresh().status for job in jobs} == {State.SUCCEEDED}


@pytest.mark.timeout(60)
def test_a_second_signal_hands_back_at_once(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    job = app.named("until").enqueue(str(tmp_path / "never"))
    worker = fleet.worker(shutdown_timeout=120)
    eventually(lambda: starts(ledger) == 1)
    worker.send(signal.SIGTERM)
    eventually(lambda: "stopping" in worker.log)
    worker.send(signal.SIGTERM)
    before = time.monotonic()
    assert worker.wait() == 0
    assert time.monotonic() - before < 8
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)  # the store has no part in it
def test_what_a_body_left_in_a_thread_does_not_keep_the_process(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    job = app.named("until_in_a_thread").enqueue(str(tmp_path / "never"))
    worker = fleet.worker(shutdown_timeout=0.1)
    eventually(lambda: starts(ledger) == 1)
    worker.send(signal.SIGTERM)
    before = time.monotonic()
    assert worker.wait() == 0, worker.log
    assert time.monotonic() - before < 15
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


@pytest.mark.timeout(60)
def test_a_signal_to_the_whole_group_does_not_kill_isolated_bodies(
    app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path
) -> None:
    """As a service manager sends it: what can end in the time given ends well."""
    go = tmp_path / "go"
    job = app.named("until_isolated").enqueue(str(go))
    worker = fleet.worker()
    eventually(lambda: starts(ledger) == 1)
    for process in (*psutil.Process(worker.pid).children(recursive=True), psutil.Process(worker.pid)):
        process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping" in worker.log)
    go.touch()
    assert worker.wait() == 0
    assert (job.refresh().status, job.attempt, starts(ledger)) == (State.SUCCEEDED, 1, 1)


@pytest.mark.timeout(60)
def test_a_job_due_in_an_hour_does_not_keep_a_worker(app: Rota, fleet: Fleet) -> None:
    job = app.named("quick").using(delay=3600).enqueue()
    worker = fleet.worker()
    eventually(lambda: app.workers())
    worker.send(signal.SIGTERM)
    before = time.monotonic()
    assert worker.wait() == 0
    assert time.monotonic() - before < 5
    assert job.refresh().status is State.SCHEDULED


@pytest.mark.timeout(60)
def test_a_signal_while_the_commit_of_a_claim_is_on_its_way_loses_nothing(
    postgres_server: PostgresServer, tmp_path: Path, ledger: Path
) -> None:
    """The commits of claims take a second here, by a trigger that is deferred to them."""
    with postgres_server.schema() as url, Rota(url) as app:
        fleet = Fleet(tmp_path, url, ledger)
        try:
            job = app.named("quick").enqueue()
            slow_down_claims(url, app)
            worker = fleet.worker()
            eventually(lambda: sleeping_in_commit(url))
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0, worker.log
            assert "Traceback" not in worker.log
            finish(app, fleet, [job.id])
            assert (job.refresh().status, job.attempt) == (State.SUCCEEDED, 1)
            assert account(app, [job.id], ledger).repeated == {}
        finally:
            fleet.close()


def slow_down_claims(url: str, app: Rota) -> None:
    schema = app.store.vitals().facts["schema"]
    with psycopg.connect(url.replace("schema=", "application_name="), autocommit=True) as admin:
        admin.execute(f"""set search_path to "{str(schema).replace('"', '""')}" """)
        admin.execute(
            "create function slow_down() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return null; end $$"
        )
        admin.execute(
            "create constraint trigger slow after update of worker on rota_jobs deferrable initially deferred"
            " for each row when (new.worker is not null) execute function slow_down()"
        )


def sleeping_in_commit(url: str) -> bool:
    with psycopg.connect(url.replace("schema=", "application_name="), autocommit=True) as admin:
        found = admin.execute("select 1 from pg_stat_activity where wait_event = 'PgSleep'").fetchall()
    return bool(found)
