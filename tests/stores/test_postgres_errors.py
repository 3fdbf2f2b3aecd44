"""What Postgres or a pooler refuses is told with what to do about it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import quote, unquote

import psycopg
import pytest

from bouncer import bouncing
from rota import Rota
from rota.errors import StoreError, StoreUnavailable
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.postgres import PostgresDatabase
from rota.stores.postgres_errors import meaning
from rota.stores.sql import SqlStore
from rota.testing.contract.lines import rung
from servers import PostgresServer
from working import eventually


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """Of a store with tables."""
    with postgres_server.schema() as url:
        with Rota(url) as app:
            app.migrate()
        yield url


@pytest.fixture(scope="module")
def users(postgres_server: PostgresServer) -> Iterator[None]:
    with postgres_server.connect() as admin:
        admin.execute("create role absent nologin")
        admin.execute("create role lone login connection limit 0")
        admin.execute("create role shut_out login")
        admin.execute("create database closed strategy file_copy")
        admin.execute("revoke connect on database closed from public")
    yield
    with postgres_server.connect() as admin:
        admin.execute("drop role absent")
        admin.execute("drop role lone")
        admin.execute("drop role shut_out")
        admin.execute("drop database closed")


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("postgres@", "nobody@", "refuses this user .*check user and password"),
        ("postgres@", "absent@", "refuses this user .*check user and password"),
        ("postgres@", "lone@", "no room for another connection of this user .*raise its connection limit"),
        ("postgres@/postgres?", "shut_out@/closed?", "may not connect to the database .*have connect on it granted"),
        ("/postgres?", "/nowhere?", "has no such database .*create it, or correct the URL"),
        ("?host=", "?port=5433&host=", r"cannot be reached .*No such file or directory\): see that it runs"),
        ("?host=", "?target_session_attrs=standby&host=", "asks for a standby, which takes no writes.*leave it out of the URL"),
        ("?host=", "?target_session_attrs=any-old&host=", "parameter .*cannot be right .*correct it in the URL"),
        ("?host=", "?sslmode=verify&host=", "parameter .*cannot be right .*correct it in the URL"),
        ("?host=", "?options=-c%20colour=red&host=", "parameter .*cannot be right .*correct it in the URL"),
        ("?host=", "?connect_timeout=soon&host=", "parameter .*cannot be right .*correct it in the URL"),
        ("?host=", "?service=nowhere&host=", "parameter .*cannot be right .*in the service file"),
        ("?host=", "?gssencmode=require&host=", "as secure as it must be .*see to sslmode"),
    ],
)
def test_what_keeps_a_connection_from_being_made_is_told_apart(url: str, old: str, new: str, told: str) -> None:
    with pytest.raises(StoreError, match=told), closing(open_store(url.replace(old, new))) as store:
        store.open()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("SSL error: certificate verify failed", "see to sslmode"),
        ("server does not support SSL, but SSL was required", "see to sslmode"),
        ('server certificate for "a" does not match host name "b"', "see to sslmode"),
        ('root certificate file "/nowhere" does not exist', "see to sslmode"),
        ("FATAL: SSL required", "see to sslmode"),
        ("SSL SYSCALL error: EOF detected", "cannot be reached"),
        ("SSL error: unexpected eof while reading", "cannot be reached"),
        ("SSL connection has been closed unexpectedly", "cannot be reached"),
        ("received invalid response to SSL negotiation: H", "does not speak Postgres's protocol"),
        ('no pg_hba.conf entry for host "::1", user "a", database "b", no encryption', "add a line to its pg_hba.conf"),
        (
            'password authentication failed for user "a" FATAL: no pg_hba.conf entry for host "::1", no encryption',
            "check user and password",
        ),
        ("FATAL: the database system is starting up", "cannot serve now"),
        ("connection timeout expired", "no firewall is between"),
    ],
)
def test_what_takes_a_network_or_certificates_to_happen_is_told_apart(said: str, told: str) -> None:
    """The words are libpq's, Postgres's and PgBouncer's; the server of the tests has neither certificates nor a network."""
    assert told in str(meaning(psycopg.OperationalError(f"connection failed: {said}"), "db/shop"))


def slow(url: str, setting: str) -> Store:
    """The store for a user for whom this is set."""
    return open_store(f"{url}&options={quote(f'-c {setting}')}")


def test_a_wait_for_a_lock_that_a_user_may_not_have_is_named(postgres_server: PostgresServer, url: str) -> None:
    with closing(slow(url, "lock_timeout=100")) as store, psycopg.connect(postgres_server.url()) as other:
        store.open()
        other.execute(locked(url))
        with pytest.raises(StoreUnavailable, match=r"gave up waiting for a lock .*pg_blocking_pids.*lock_timeout"):
            store.workers()


def test_a_query_that_is_ended_is_named_with_what_may_have_ended_it(postgres_server: PostgresServer, url: str) -> None:
    with closing(open_store(url)) as store, psycopg.connect(postgres_server.url()) as other:
        store.open()
        other.execute(locked(url))
        [error] = looked(
            store, lambda: other.execute("select pg_cancel_backend(pid) from pg_locks where not granted").fetchone()
        )
    assert isinstance(error, StoreUnavailable)
    assert "raise this user's statement_timeout if that is what did" in str(error)


def test_that_a_user_may_only_read_is_told_apart_from_a_standby(url: str) -> None:
    told = pytest.raises(StoreUnavailable, match=r"takes no writes .*if it is the primary, default_transaction_read_only is on")
    with closing(slow(url, "default_transaction_read_only=on")) as store, told:
        store.rest("nobody", asleep=True)


def test_a_server_that_takes_no_writes_is_told_by_a_check(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        with Rota(url) as app:
            app.migrate()
            assert not app.check()
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(f'alter database "{admin.info.dbname}" set default_transaction_read_only = on')
        with Rota(url) as app:
            [problem] = app.check()
            assert "default_transaction_read_only is on" in problem.text


def test_a_worker_whose_connection_may_not_rest_is_told_why(url: str) -> None:
    """The server says it before it goes away, while the worker sleeps."""
    told = pytest.raises(StoreUnavailable, match=r"not used for a while .*set idle_session_timeout to 0")
    with closing(slow(url, "idle_session_timeout=200")) as store, told, closing(store.line()) as line:
        for _ in range(2):
            rung(line, 5)


def test_transactions_that_postgres_ends_easily_are_warned_of(url: str) -> None:
    direct = slow(url, "default_transaction_isolation=serializable")
    assert not [warning for warning in direct.vitals().warnings if "isolation" in warning]
    direct.close()
    pooled = slow(f"{url}&pooler=true", "default_transaction_isolation=serializable")
    assert [
        warning for warning in pooled.vitals().warnings if "set default_transaction_isolation to 'read committed'" in warning
    ]
    assert isinstance(pooled, SqlStore)
    database = pooled._database
    assert isinstance(database, PostgresDatabase)
    tables = {name: database._queries.table(f"rota_{name.partition('_')[0]}") for name in ("jobs_table", "history_table")}
    [row] = database.work(lambda run: run("vitals", {**tables, "now": None}))
    assert row[-1] == "read committed"  # in a transaction of several round trips
    pooled.close()


@pytest.mark.parametrize("pooler", ["", "&pooler=true", "&pooler=false"])
def test_a_pooler_of_statements_is_named_with_what_to_set(postgres_server: PostgresServer, url: str, pooler: str) -> None:
    with bouncing(postgres_server.directory, pool_mode="statement") as bouncer:
        schema = url.partition("&schema=")[2]
        with Rota(f"{bouncer.url()}&schema={schema}{pooler}") as app:
            for use in (
                lambda: app.named("x").using(key="k").enqueue_many([()] * 2),
                lambda: app.named("x").enqueue_many([()] * 300),
            ):
                with pytest.raises(StoreError, match=r"for a statement .*set its pool_mode to transaction or session"):
                    use()


def test_a_pooler_without_a_connection_left_says_so(postgres_server: PostgresServer, url: str) -> None:
    settings: dict[str, str | int] = {"pool_mode": "session", "default_pool_size": 1, "query_wait_timeout": 1}
    with bouncing(postgres_server.directory, **settings) as bouncer:
        schema = url.partition("&schema=")[2]
        with Rota(f"{bouncer.url()}&schema={schema}") as one, Rota(f"{bouncer.url()}&schema={schema}&pooler=true") as other:
            one.send("x")
            with pytest.raises(StoreUnavailable, match=r"pooler .* has no connection left .*raise its pool_size"):
                other.send("x")


def test_who_goes_away_in_the_midst_of_a_query_and_says_nothing_is_away(postgres_server: PostgresServer, url: str) -> None:
    waiting = "select 1 from pg_locks where not granted"
    with (
        bouncing(postgres_server.directory) as bouncer,
        psycopg.connect(postgres_server.url()) as other,
        closing(open_store(f"{bouncer.url()}&schema={url.partition('&schema=')[2]}")) as store,
    ):
        store.open()
        other.execute(locked(url))
        [error] = looked(store, lambda: other.execute(waiting).fetchone(), bouncer.kill)
    assert isinstance(error, StoreUnavailable)
    assert "cannot be reached" in str(error)


def locked(url: str) -> psycopg.sql.Composed:
    """What keeps everyone from the workers' table."""
    table = psycopg.sql.Identifier(unquote(url.partition("&schema=")[2]), "rota_workers")
    return psycopg.sql.SQL("lock table {}").format(table)


def looked(store: Store, until: Callable[[], object], then: Callable[[], object] = lambda: None) -> list[StoreError]:
    """What a look at the workers meets, in a thread of its own, once this is true and that was done."""
    errors: list[StoreError] = []

    def look() -> None:
        try:
            store.workers()
        except StoreError as error:
            errors.append(error)

    looking = threading.Thread(target=look)
    looking.start()
    eventually(until)
    then()
    looking.join()
    return errors
