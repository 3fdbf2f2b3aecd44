"""Migrations of Postgres wait for others as long as they must, say whom for, and say what to do about it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
from psycopg import sql

from newer import GO_ON, newer
from rota import Rota
from rota.errors import StoreError, StoreUnavailable
from rota.stores import postgres_migrating, queries
from servers import PostgresServer
from working import eventually


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.schema() as url:
        yield url


def schema_of(url: str) -> str:
    [name] = parse_qs(urlsplit(url).query)["schema"]
    return unquote(name)


def held(connection: psycopg.Connection[tuple[object, ...]], url: str) -> int:
    """Have a connection hold the lock of the schema's migrations, and answer the number of its server process."""
    connection.execute("select pg_advisory_xact_lock(hashtext('rota'), hashtext(%s))", [schema_of(url)])
    return connection.info.backend_pid


def test_who_migrates_already_is_named_while_it_is_waited_for(
    url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres_migrating, "_WAITS", (0.05, 20.0))
    ran: list[list[str]] = []
    with psycopg.connect(postgres_server.url(), application_name="deploy of web") as other, Rota(url) as app:
        pid = held(other, url)
        migrating = threading.Thread(target=lambda: ran.append(app.migrate()))
        migrating.start()
        eventually(lambda: caplog.records)
        other.rollback()
        migrating.join()
    [record] = caplog.records
    assert re.search(
        rf"waiting for another process that migrates .*process {pid} has it \(deploy of web, user postgres, "
        r"idle in transaction, its transaction began at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)",
        record.getMessage(),
    )
    assert ran == [[name for _, name, _ in queries.migrations("postgres")]]


def test_the_wait_for_who_migrates_already_has_an_end(
    url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrating, "_WAITS", (0.05, 0.05))
    with psycopg.connect(postgres_server.url(), application_name="hung") as other, Rota(url) as app:
        pid = held(other, url)
        with pytest.raises(
            StoreUnavailable, match=rf"for more than 0\.1 s: .*process {pid} has it \(hung.*pg_terminate_backend\({pid}\)"
        ):
            app.send("x")
        other.rollback()
        app.send("x")


def test_who_migrates_another_schema_is_not_waited_for(
    url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrating, "_WAITS", (0.05, 0.05))
    with psycopg.connect(postgres_server.url()) as other, Rota(url) as app:
        held(other, url.replace("schema=", "schema=not-"))
        app.send("x")


def test_a_migration_waits_no_longer_for_a_table_than_others_can_bear_and_says_who_has_it(
    url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrating, "_PATIENCE", 0.2)
    with Rota(url) as app:
        app.migrate()
        with psycopg.connect(postgres_server.url(), application_name="report") as other:
            other.execute(sql.SQL("select 1 from {}.rota_jobs").format(sql.Identifier(schema_of(url))))
            told = pytest.raises(
                StoreUnavailable, match=rf"rota_jobs for itself .*process {other.info.backend_pid} has it \(report"
            )
            with newer(GO_ON), Rota(url) as late, told as refused:
                late.migrate()
            assert "'alter table rota_jobs add column colour text'" in str(refused.value)
        with newer(GO_ON):
            assert app.migrate() == ["0999_later"]


def test_a_prepared_transaction_that_holds_a_table_is_named(
    url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrating, "_PATIENCE", 0.2)
    with Rota(url) as app, psycopg.connect(postgres_server.url(), autocommit=True) as other:
        app.migrate()
        other.execute("begin")
        other.execute(sql.SQL("select 1 from {}.rota_jobs").format(sql.Identifier(schema_of(url))))
        other.execute("prepare transaction 'forgotten'")
        try:
            with newer(GO_ON), Rota(url) as late, pytest.raises(StoreUnavailable, match="see pg_prepared_xacts"):
                late.migrate()
        finally:
            other.execute("rollback prepared 'forgotten'")


def test_a_user_who_may_make_no_tables_is_told_who_may(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("drop role if exists maker")
            admin.execute("create role maker login")
        plain = url.replace("postgres@", "maker@")
        with Rota(plain, schema="jobs") as app, pytest.raises(StoreError, match=r"may not make .*'jobs'.*rota migrate --sql"):
            app.migrate()
        with Rota(url, schema="jobs") as app:
            app.migrate()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("grant usage on schema jobs to maker")
            admin.execute("grant select, insert, update, delete on all tables in schema jobs to maker")
        with newer(GO_ON), Rota(plain, schema="jobs") as app, pytest.raises(StoreError, match="must be owner of table"):
            app.migrate()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("drop owned by maker")
            admin.execute("drop role maker")


def test_no_migration_is_of_what_cannot_be_in_a_transaction() -> None:
    """All that are due run in one, and what `--sql` prints does too."""
    apart = re.compile(
        r"\bconcurrently\b|\bvacuum\b|alter type .* add value|alter system|create database|^pragma", re.IGNORECASE
    )
    for kind in ("sqlite", "postgres"):
        for _, name, text in queries.migrations(kind):
            assert not [statement for statement in queries.statements(text) if apart.search(statement)], name
