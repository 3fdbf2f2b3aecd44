"""Tables that a newer Rota made: who may go on with them, and what the others are told."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from psycopg import sql

from newer import END, GO_ON, migrated, newer
from rota import Rota
from rota.errors import SchemaMismatch
from rota.model import State
from rota.stores import queries, versions
from rota.stores.locks import locks
from rota.worker import Worker
from servers import PostgresServer
from working import eventually, working

KINDS = ("sqlite", "postgres")


@pytest.fixture
def url(shared_url: str) -> str:
    return shared_url


def test_an_older_process_works_on_tables_that_let_it(url: str) -> None:
    migrated(url, GO_ON)
    app = Rota(url)
    ran = []
    app.task(ran.append, name="note")
    assert (app.migrate(), app.pending()) == ([], [])
    app.send("note", 1)
    with working(app):
        assert eventually(lambda: ran) == [1]
    app.close()


def test_a_process_that_is_too_old_for_the_tables_says_so_when_it_opens_them(url: str) -> None:
    migrated(url, END)
    for use in (Rota.stats, Rota.migrate, Rota.pending):
        with Rota(url) as app, pytest.raises(SchemaMismatch, match=r"must know their version 999.*install a newer Rota"):
            use(app)


def test_a_worker_under_which_the_tables_are_changed_beyond_it_ends_in_words(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Rota(url)
    go = threading.Event()
    app.task(lambda: go.wait(20), name="long")
    job = app.send("long")
    worker = Worker(app, lease=1.5, shutdown_timeout=20)
    worker.start()
    eventually(lambda: job.refresh().status is State.RUNNING)
    migrated(url, "-- Older processes end.\n")
    assert worker.wait(20)
    go.set()
    assert "ends: the store's tables were changed for a newer Rota" in caplog.text
    assert job.refresh().status is State.QUEUED  # handed back
    worker.stop()
    app.close()


def test_a_worker_whose_queries_fail_on_changed_tables_ends_too(url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = Rota(url)
    worker = Worker(app, lease=60)
    worker.start()
    eventually(app.workers)
    migrated(url, END)
    with newer(END), Rota(url) as fresh:
        fresh.send("wake")
    assert worker.wait(20)
    assert "ends" in caplog.text
    assert "Traceback" not in caplog.text
    worker.stop()
    app.close()


def test_a_process_that_must_not_migrate_says_what_to_do(url: str) -> None:
    with Rota(url, migrate=False) as app:
        with pytest.raises(SchemaMismatch, match=r"tables are not there: run `rota migrate`"):
            app.send("x")
        with newer(GO_ON):
            app.migrate()
    with Rota(url, migrate=False) as app:
        app.send("x")  # newer tables that it may use are as good as its own


def test_a_process_that_must_not_migrate_makes_and_changes_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    told = re.escape(f"in {url} the store's tables are not there: run `rota migrate`")
    with Rota(url, migrate=False) as app, pytest.raises(SchemaMismatch, match=told):
        app.stats()
    assert list(tmp_path.iterdir()) == []
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as other:
        other.execute("create table shop (name text)")
    before = (tmp_path / "jobs.db").read_bytes()
    with Rota(url, migrate=False) as app, pytest.raises(SchemaMismatch, match=told):
        app.stats()
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("jobs.db", before)]


def test_old_tables_are_not_changed_by_a_process_that_must_not(url: str) -> None:
    with Rota(url) as app:
        app.migrate()
    with newer(GO_ON), Rota(url, migrate=False) as app:
        with pytest.raises(SchemaMismatch, match=r"have version \d+, and this Rota uses 999: run `rota migrate`"):
            app.send("x")
        assert [(each.name, each.older) for each in app.pending()] == [("0999_later", True)]
        assert app.migrate() == ["0999_later"]
        app.send("x")


def test_a_plan_tells_what_others_are_kept_from(postgres_server: PostgresServer) -> None:
    text = """-- Older processes end: they know no colours.

        create table rota_colours (name text);

        create index rota_colours_name on rota_colours (name);

        alter table rota_jobs add column colour text;

        create index rota_jobs_colour on rota_jobs (colour);

        update rota_history set reason = null;
        """
    with postgres_server.schema() as url, Rota(url) as app:
        app.named("x").enqueue_many([()] * 300)
        with postgres_server.connect() as admin:
            [name] = parse_qs(urlsplit(url).query)["schema"]
            admin.execute(sql.SQL("analyze {}.rota_jobs").format(sql.Identifier(name)))
        with newer(text):
            [planned] = app.pending()
        assert (planned.older, planned.remark) == (False, "they know no colours")
        assert planned.locks == [
            "rota_jobs: nobody else for a moment, once nobody uses it",
            "rota_jobs: no writes while its rows (about 300) are read",
            "rota_history: nobody else while its rows (about 0) are changed",
        ]
        assert app.pending() == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_migration_says_whether_older_processes_may_go_on(kind: str) -> None:
    steps = queries.migrations(kind)
    assert len({versions.older(name, text) for _, name, text in steps}) > 1
    assert versions.needs(kind) == {"sqlite": 7, "postgres": 8}[kind]
    sizes = dict.fromkeys(re.findall(r"create table (\w+)", "".join(text for _, _, text in steps)), 1)
    assert not [lock for _, _, text in steps for lock in locks(text, sizes) if lock.startswith("unknown")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_migration_that_lets_older_processes_go_on_asks_nothing_of_what_they_write(kind: str) -> None:
    """They write rows without the columns that they do not know, when they start as well as later."""
    harmless = re.compile(
        r"create table (?!.*\breferences\b)|create index "
        r"|alter table \w+\s+add column \w+ \w+( not null default \S+| default \S+)?$",
        re.DOTALL,
    )
    for _, name, text in queries.migrations(kind):
        if versions.older(name, text)[0]:
            assert not [statement for statement in queries.statements(text) if not harmless.match(statement)], name
