"""A worker that cannot do its work ends, so that whoever started it sees that."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg
import pytest

from rota import Rota
from rota.model import State
from rota.worker import Worker


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


def refuse_claims(app: Rota) -> None:
    """By a trigger."""
    facts = app.stats().facts
    if facts["store"] == "sqlite":
        with closing(sqlite3.connect(str(facts["path"]), isolation_level=None)) as file:
            file.execute(
                "create trigger refuse before update on rota_jobs when new.worker is not null"
                " begin select raise(abort, 'no job may be claimed'); end"
            )
        return
    with psycopg.connect(app.url.replace("schema=", "application_name="), autocommit=True) as server:
        server.execute(psycopg.sql.SQL("set search_path to {}").format(psycopg.sql.Identifier(str(facts["schema"]))))
        server.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise 'no job may be claimed'; end $$"
        )
        server.execute(
            "create trigger refuse before update on rota_jobs for each row"
            " when (new.worker is not null) execute function refuse()"
        )
