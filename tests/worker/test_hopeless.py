"""A worker that cannot do its work ends, so that whoever started it sees that."""

from __future__ import annotations

import logging
import sqlite3
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest

from rota import Job, Rota
from rota.model import State
from rota.worker import Worker
from working import eventually


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_a_worker_that_can_never_claim_ends_and_says_so(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store answers, but refuses each claim. One that is away would be waited for."""
    monkeypatch.setattr("rota.worker.ledger.FATAL_TRIES", 3)

    @app.task
    def quick() -> None: ...

    job = quick.enqueue()
    refuse_claims(app)
    assert Worker(app).run() == 1
    assert "cannot go on" in caplog.text
    assert app.workers() == []
    assert job.refresh().status is State.QUEUED


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_worker_that_can_never_beat_ends_and_hands_its_jobs_back(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.worker.pulse.FATAL_TRIES", 2)

    @app.task
    def quick() -> None: ...

    quick.enqueue()
    app.store.open()
    with closing(sqlite3.connect(str(app.stats().facts["path"]), isolation_level=None)) as file:
        file.execute(
            "create trigger refuse before update on rota_workers when new.lease_until > old.lease_until"
            " begin select raise(abort, 'no lease may be renewed'); end"
        )
    assert Worker(app, lease=0.6).run() == 1
    assert "the lease cannot be kept" in caplog.text
    assert app.workers() == []


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_a_worker_that_can_never_queue_what_is_due_ends_although_it_claims(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else nobody would see that its jobs of later never start, as long as there are others."""
    monkeypatch.setattr("rota.worker.ledger.FATAL_TRIES", 3)
    worker = Worker(app, poll=0.1)

    begun: list[Job[None]] = []
    later: list[Job[None]] = []

    @app.task
    def quick() -> None:
        begun.append(quick.enqueue())
        if len(begun) == 2:
            eventually(lambda: app.stats().states[State.SUCCEEDED])  # so it has claimed, and written what became of that
            later.append(quick.using(queue="later", delay=0.1).enqueue())
        worker.wait(0.01)

    quick.enqueue()
    refuse(app, "no job may be queued", "old.state = 'scheduled' and new.state = 'queued'")
    assert worker.run() == 1
    assert "no job may be queued" in caplog.text
    assert app.workers() == []
    assert [job.refresh().status for job in later] == [State.SCHEDULED]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_worker_whose_pulse_stops_ends(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever stopped it, a clock that exits for example: else its jobs would be another's while it runs them."""

    def clock() -> datetime:
        if threading.current_thread().name == "rota-pulse":
            sys.exit("the clock stands still")
        return datetime.now(UTC)

    with Rota(store_url, clock=clock) as app:
        assert Worker(app, lease=0.6).run() == 1
        assert "the lease cannot be kept, so the worker ends: SystemExit: the clock stands still" in caplog.text
        assert app.workers() == []


class Full(logging.Handler):
    """Fails for each line of the thread that keeps the lease."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.threadName == "rota-pulse":
            raise OSError("the log is full")


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_worker_whose_pulse_cannot_even_log_ends(store_url: str) -> None:
    def clock() -> datetime:
        if threading.current_thread().name == "rota-pulse":
            raise ValueError("the clock stands still")
        return datetime.now(UTC)

    log, full = logging.getLogger("rota"), Full()
    log.addHandler(full)
    try:
        with Rota(store_url, clock=clock) as app:
            assert Worker(app, lease=0.6).run() == 1
            assert app.workers() == []
    finally:
        log.removeHandler(full)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_worker_whose_slots_are_all_kept_by_bodies_without_end_ends(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would claim for ever what it can never begin; whoever started it starts another."""
    monkeypatch.setattr("rota.worker.overtime.CHOKED", 0.3)
    go = threading.Event()

    @app.task(timeout=0.1, max_attempts=1)
    def stuck() -> None:
        go.wait(30)

    @app.task
    def quick() -> None: ...

    jobs = stuck.enqueue_many([()] * 4)
    waiting = quick.enqueue()
    assert Worker(app, concurrency=2, poll=0.1).run() == 1
    go.set()
    assert "every slot (2) is kept by a body that runs on after its time-out" in caplog.text
    assert app.workers() == []
    assert {job.refresh().status for job in jobs} == {State.FAILED}
    assert (waiting.refresh().status, waiting.attempt) == (State.QUEUED, 0)


def refuse_claims(app: Rota) -> None:
    refuse(app, "no job may be claimed", "new.worker is not null")


def refuse(app: Rota, words: str, change: str) -> None:
    """Have the store say these words to a change of a job, by a trigger."""
    facts = app.stats().facts
    if facts["store"] == "sqlite":
        with closing(sqlite3.connect(str(facts["path"]), isolation_level=None)) as file:
            file.execute(
                f"create trigger refuse before update on rota_jobs when {change} begin select raise(abort, '{words}'); end"
            )
        return
    with psycopg.connect(app.url.replace("schema=", "application_name="), autocommit=True) as server:
        server.execute(psycopg.sql.SQL("set search_path to {}").format(psycopg.sql.Identifier(str(facts["schema"]))))
        server.execute(f"create function refuse() returns trigger language plpgsql as $$ begin raise '{words}'; end $$")
        server.execute(
            f"create trigger refuse before update on rota_jobs for each row when ({change}) execute function refuse()"
        )
