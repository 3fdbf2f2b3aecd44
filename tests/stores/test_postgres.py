"""What is Postgres's alone: round trips, rights, schemas, poolers, restarts and rings."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from urllib.parse import quote, urlencode

import psycopg
import pytest

from rota import Rota
from rota.clock import SECOND
from rota.errors import ConfigError, SchemaMismatch, StoreError, StoreUnavailable
from rota.ids import new_id
from rota.model import Ask, Ended, Failed, Failure, Move, NewJob, State, Succeeded, WorkerRow
from rota.stores import open_store, postgres, postgres_driver, queries
from rota.stores.base import Store
from rota.stores.database import Call, Send
from rota.stores.postgres import PostgresDatabase
from rota.stores.postgres_pool import Plans
from rota.stores.sql import SqlStore
from rota.testing.contract.lines import rung
from servers import PostgresServer
from working import eventually


def job(**fields: object) -> NewJob:
    return NewJob(new_id(), "t", "q", "[]", **fields)  # type: ignore[arg-type]


def worker(store: Store) -> str:
    row = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 60 * SECOND, "1")
    store.join(row)
    return row.id


def database_of(store: Store) -> PostgresDatabase:
    assert isinstance(store, SqlStore)
    assert isinstance(store._database, PostgresDatabase)
    return store._database


def connection_of(store: Store, plans: Plans = "kept") -> psycopg.Connection[tuple[object, ...]]:
    """The connection that the store uses next for what is planned so."""
    database = database_of(store)
    with database._pool.session(database._queries, plans) as session:
        return session.driver()


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.schema() as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url)
    store.open()
    yield store
    store.close()


# -- round trips --------------------------------------------------------------------------------


def round_trips(store: Store, do: object, plans: Plans = "kept") -> int:
    """How often the store waited for the server: each Sync asks it to answer."""
    connection = connection_of(store, plans)
    with tempfile.TemporaryFile("w+") as log:
        connection.pgconn.trace(log.fileno())
        do()  # type: ignore[operator]
        connection.pgconn.untrace()
        log.seek(0)
        return sum(1 for line in log if "\tSync" in line)


def test_a_lone_insert_is_one_round_trip(store: Store) -> None:
    store.insert([job()])
    assert round_trips(store, lambda: store.insert([job()])) == 1


def test_a_claim_and_a_small_batch_are_one_round_trip(store: Store) -> None:
    me = worker(store)
    assert round_trips(store, lambda: store.insert([job() for _ in range(50)])) == 1
    assert round_trips(store, lambda: store.claim(Ask(me, ("q",), 10))) == 1


def test_finishing_and_claiming_is_one_round_trip(store: Store) -> None:
    me = worker(store)
    store.insert([job() for _ in range(20)])
    claimed = store.claim(Ask(me, ("q",), 10))
    failure = Failed(Failure("E", "m"))
    ends = [Ended(each.id, each.claim, failure if n % 2 else Succeeded()) for n, each in enumerate(claimed)]
    assert round_trips(store, lambda: store.finish(me, ends, Ask(me, ("q",), 10))) == 1


# -- schemas and rights -------------------------------------------------------------------------


@pytest.mark.parametrize("userinfo", ["shop:secret", "shop:secret#1", "shop:secret?1", "shop:", ":secret"])
def test_what_is_shown_of_a_url_has_no_password(userinfo: str) -> None:
    store = open_store(f"postgresql://{userinfo}@db1:5432,db2/jobs?sslpassword=secret&password=secret&application_name=a")
    assert store.url == f"postgresql://{userinfo.partition(':')[0]}@db1:5432,db2/jobs?application_name=a"


@pytest.mark.parametrize("name", ['a%b "c";\nd', "$1::text", ":now", "rota_jobs", "%s %(x)s", "a\\b", "select", "\u00e9" * 31])
def test_any_name_of_a_schema_will_do(postgres_server: PostgresServer, name: str) -> None:
    with psycopg.connect(postgres_server.url()) as own, Rota(postgres_server.url(), schema=name) as app:
        app.migrate()
        app.named("x").using(key="k", connection=own).enqueue()
        app.named("x").using(connection=own).enqueue_many([()] * 2)
        own.commit()
        assert len(app.named("x").enqueue_many([()] * 300)) == 300
        assert sum(count.jobs for count in app.store.counts()) == 303
        own.execute(psycopg.sql.SQL("drop schema {} cascade").format(psycopg.sql.Identifier(name)))
        own.commit()


def test_it_works_without_a_search_path_and_without_rights_on_public(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("revoke all on schema public from public")
        store = open_store(f"{url}&{urlencode({'options': '-c search_path=', 'schema': 'My-Jobs'}, quote_via=quote)}")
        [added] = store.insert([job()])
        assert [claimed.id for claimed in store.claim(Ask(worker(store), ("q",), 1))] == [added.id]
        store.close()


def test_a_role_that_may_only_read_and_write_rows_runs_once_the_tables_are_there(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        owner = open_store(url, schema="jobs")
        owner.open()
        owner.close()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("drop role if exists plain")
            admin.execute("create role plain login")
            admin.execute("grant usage on schema jobs to plain")
            admin.execute("grant select, insert, update, delete on all tables in schema jobs to plain")
        plain = open_store(url.replace("postgres@", "plain@"), schema="jobs")
        me = worker(plain)
        plain.insert([job() for _ in range(300)])
        claimed = plain.claim(Ask(me, ("q",), 100))
        assert len(plain.finish(me, [Ended(each.id, each.claim, Succeeded()) for each in claimed]).counted) == 100
        plain.close()
        fresh = open_store(url.replace("postgres@", "plain@"), schema="other")
        with pytest.raises(SchemaMismatch, match="tables are not there: run `rota migrate` as a user who may"):
            fresh.open()
        fresh.close()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("drop owned by plain")
            admin.execute("drop role plain")


def test_tables_of_a_newer_rota_are_refused(url: str, store: Store) -> None:
    database = database_of(store)
    connection_of(store).execute(f"insert into {database._queries.table('rota_migrations')} values (999, 'later', 1, 999)")
    other = open_store(url)
    with pytest.raises(SchemaMismatch, match="version 999"):
        other.open()
    other.close()


def test_many_may_make_the_tables_at_once(url: str) -> None:
    barrier = threading.Barrier(8)
    stores = [open_store(url) for _ in range(8)]
    ran: list[list[str]] = []

    def make(store: Store) -> None:
        barrier.wait()
        ran.append(store.migrate())

    threads = [threading.Thread(target=make, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert sorted(ran) == [[]] * 7 + [[name for _, name, _ in queries.migrations("postgres")]]


# -- rings --------------------------------------------------------------------------------------


def test_two_schemas_do_not_wake_each_other(postgres_server: PostgresServer, store: Store) -> None:
    store.rest(worker(store), True)
    line = store.line()
    with postgres_server.schema() as other_url:
        other = open_store(other_url)
        other.rest(worker(other), True)
        other.insert([job()])
        other.close()
    assert not rung(line, 0.2)
    store.insert([job()])
    assert rung(line, 5)
    line.close()


def test_no_one_is_notified_while_no_one_sleeps(store: Store) -> None:
    me = worker(store)
    line = store.line()
    store.insert([job()])
    store.insert([job() for _ in range(10)])
    store.insert([job() for _ in range(500)])
    assert not rung(line, 0.2)
    store.rest(me, True)
    store.insert([job() for _ in range(500)])
    assert rung(line, 5)
    line.close()


def test_a_line_that_lost_its_connection_says_so(store: Store, postgres_server: PostgresServer) -> None:
    line = store.line()
    postgres_server.terminate_backends()
    with pytest.raises(StoreUnavailable):  # the server's last words may come first, and its silence with the next wait
        for _ in range(2):
            rung(line, 5)
    line.close()
    again = store.line()
    store.rest(worker(store), True)
    store.insert([job()])
    assert rung(again, 5)
    again.close()


def test_a_silent_network_is_noticed_unless_the_url_says_otherwise() -> None:
    usual = database_of(open_store("postgresql://somewhere/db"))._pool._settings
    assert usual["tcp_user_timeout"] == 30_000
    assert "tcp_user_timeout" not in database_of(open_store("postgresql://somewhere/db?tcp_user_timeout=5000"))._pool._settings


# -- connections --------------------------------------------------------------------------------


def test_an_insert_after_the_server_came_back_meets_no_stale_connection() -> None:
    server = PostgresServer()
    server.start()
    store = open_store(server.url())
    try:
        store.insert([job()])
        server.restart()
        store.insert([job()])
        server.kill()
        server.start()
        store.insert([job()])
        server.stop()
        begun = monotonic()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.insert([job()])
        assert monotonic() - begun < 5
        server.start()
        store.insert([job()])
        assert [count.jobs for count in store.counts()] == [4]
    finally:
        store.close()
        server.close()


def test_connections_stay_within_their_number(url: str, postgres_server: PostgresServer) -> None:
    store = open_store(url, max_size=2)
    store.open()
    before = set(postgres_server.backends())
    threads = [threading.Thread(target=lambda: store.insert([job() for _ in range(20)])) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(postgres_server.backends()) - before) <= 1
    assert [count.jobs for count in store.counts()] == [320]
    store.close()


def test_behind_a_pooler_nothing_is_prepared(url: str) -> None:
    store = open_store(url, pooler=True)
    for _ in range(10):
        store.insert([job()])
    assert connection_of(store).execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
    store.close()


def test_a_forked_child_connects_anew(url: str) -> None:
    code = f"""if True:
        import os
        from rota.ids import new_id
        from rota.model import NewJob
        from rota.stores import open_store
        store = open_store({url!r})
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        child = os.fork()
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        print([count.jobs for count in store.counts()])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[4]", done.stderr


def test_a_url_that_cannot_be_right_is_refused() -> None:
    with pytest.raises(ConfigError, match="colour"):
        open_store("postgresql://h/db?colour=red")


def test_a_deadlock_is_run_again(store: Store) -> None:
    """Two transactions lock the same two jobs in opposite orders; the store's is the one that Postgres ends."""
    ids = sorted(added.id for added in store.insert([job(), job()]))
    table = database_of(store)._queries.table("rota_jobs")
    connection_of(store).execute("set deadlock_timeout = '10ms'")
    with psycopg.connect(database_of(store)._pool._url.conninfo) as other:
        other.execute("set deadlock_timeout = '60s'")
        other.execute(f"select 1 from {table} where id = %s for update", [ids[1]])
        changing = threading.Thread(target=store.change, args=(Move.CANCEL, ids))
        changing.start()
        while not other.execute("select 1 from pg_stat_activity where wait_event_type = 'Lock'").fetchone():
            other.execute("select pg_stat_clear_snapshot()")
        other.execute(f"select 1 from {table} where id = %s for update", [ids[0]])
        other.rollback()
        changing.join()
    assert {row.state for row in store.get(ids)} == {State.CANCELLED}


def test_who_is_frozen_within_a_claim_keeps_the_others_waiting_for_a_while_only(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped, or whose machine is gone, says nothing more while it holds a room's lock."""
    monkeypatch.setattr(postgres_driver, "_SILENCE", "300ms")
    room: list[Call] = [("lock_rooms", {"ids": [], "rooms": '[["partner",""]]'})]
    locked, woken = threading.Event(), threading.Event()
    answers: list[str] = []
    frozen = database_of(open_store(url))

    def freeze(send: Send, last: Send) -> None:
        send(room)
        locked.set()
        answers.append("woken" if woken.wait(5) else "too late")
        last([])

    def claim() -> None:
        try:
            frozen.decide(freeze)
        except StoreUnavailable as error:
            answers.append(str(error))

    claiming = threading.Thread(target=claim)
    claiming.start()
    assert locked.wait(5)
    database_of(store).decide(lambda send, last: last(room))
    woken.set()
    claiming.join()
    frozen.close()
    assert answers[0] == "woken"
    assert len(answers) == 2  # and it is told, as when the server goes away


def test_a_transaction_that_keeps_vacuum_from_its_work_is_named(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_LONG", "0 seconds")
    with psycopg.connect(url.split("&schema=")[0], application_name="report") as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select 1")
        [warning] = [warning for warning in store.vitals().warnings if "a transaction of" in warning]
        assert f"(report, process {other.info.backend_pid})" in warning
    assert not [warning for warning in store.vitals().warnings if "report" in warning]


# -- what is stored -----------------------------------------------------------------------------


def test_a_commit_that_the_server_refuses_is_told_as_such(store: Store) -> None:
    """All statements were answered by then."""
    queries = database_of(store)._queries
    with connection_of(store).cursor() as cursor:
        cursor.execute(
            f"create function {queries.quoted}.refuse() returns trigger language plpgsql "
            "as $$begin raise exception 'not at this time'; end$$"
        )
        cursor.execute(
            f"create constraint trigger late after insert on {queries.table('rota_jobs')} initially deferred "
            f"for each row execute function {queries.quoted}.refuse()"
        )
    for _ in range(2):
        with pytest.raises(StoreError, match="not at this time"):
            store.insert([job()])
    assert not store.counts()


def test_null_bytes_in_a_failure_do_not_stop_a_batch(store: Store) -> None:
    me = worker(store)
    store.insert([job(), job()])
    one, two = store.claim(Ask(me, ("q",), 2))
    ends = [Ended(one.id, 1, Failed(Failure("E\0", "m\0\ud800", "t\0"))), Ended(two.id, 1, Succeeded('"a\\u0000b"'))]
    assert store.finish(me, ends).counted == {one.id, two.id}
    assert {row.id: row.result for row in store.get([one.id, two.id])} == {one.id: None, two.id: '"a\\u0000b"'}
    [attempt] = store.attempts(one.id)
    assert attempt.failure is not None
    assert "\0" not in attempt.failure.message


def test_what_is_no_uuid_is_no_job(store: Store) -> None:
    assert store.get(["nonsense", new_id()]) == []
    assert store.attempts("nonsense") == []
    [changed] = store.change(Move.RETRY, ["nonsense"])
    assert (changed.before, changed.after) == (None, None)


def test_a_copied_batch_may_be_sent_again_in_every_state(store: Store) -> None:
    me = worker(store)
    jobs = [job() for _ in range(1_000)]
    store.insert(jobs)
    claimed = store.claim(Ask(me, ("q",), 100))
    store.finish(me, [Ended(each.id, each.claim, Succeeded()) for each in claimed[:50]])
    more = [job() for _ in range(1_000)]
    assert [added.existed for added in store.insert([*jobs, *more])] == [False] * 2_000
    assert {count.state: count.jobs for count in store.counts()} == {
        State.SUCCEEDED: 50,
        State.RUNNING: 50,
        State.QUEUED: 1_900,
    }
    done = [each.id for each in claimed[:50]]
    store.insert([NewJob(id, "t", "q", "[]") for id in done] + [job() for _ in range(200)])
    assert {row.state for row in store.get(done)} == {State.SUCCEEDED}


def test_a_batch_that_fails_half_way_adds_nothing(store: Store) -> None:
    def jobs() -> Iterator[NewJob]:
        yield from (job() for _ in range(10_000))
        raise RuntimeError("the caller's own generator broke")

    with pytest.raises(RuntimeError):
        store.insert(jobs())
    assert store.counts() == []
    store.insert([job()])


@pytest.mark.parametrize("count", [300, 5_000])
def test_batches_with_the_same_keys_in_other_orders_do_not_deadlock(store: Store, count: int) -> None:
    keys = [f"k{n}" for n in range(count)]
    barrier = threading.Barrier(4)
    answers: list[set[str]] = []

    def insert(order: list[str]) -> None:
        barrier.wait()
        answers.append({added.id for added in store.insert([job(key=key) for key in order])})

    orders = (keys, keys[::-1], keys[count // 2 :] + keys[: count // 2], keys)
    threads = [threading.Thread(target=insert, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert [found.jobs for found in store.counts()] == [count]


# -- health -------------------------------------------------------------------------------------


def test_the_vitals_tell_where_and_how_big(store: Store, url: str) -> None:
    vitals = store.vitals()
    assert vitals.facts["store"] == "postgres"
    assert vitals.facts["schema"] == database_of(store)._queries.schema
    assert vitals.now > 1_700_000_000 * SECOND


def test_a_server_that_may_lose_jobs_is_warned_about(url: str) -> None:
    store = open_store(f"{url}&{urlencode({'options': '-c synchronous_commit=off'}, quote_via=quote)}")
    assert any("synchronous_commit is off" in warning for warning in store.vitals().warnings)
    store.close()


def test_a_server_with_hardly_a_connection_left_is_warned_about(store: Store, postgres_server: PostgresServer) -> None:
    def warned() -> bool:
        return any("connections are taken" in warning for warning in store.vitals().warnings)

    with ExitStack() as clients:
        first = clients.enter_context(postgres_server.connect())
        most = int(str(first.execute("show max_connections").fetchone()[0]))  # type: ignore[index]
        assert not warned()
        for _ in range(most * 9 // 10 - len(postgres_server.backends())):
            clients.enter_context(postgres_server.connect())
        assert warned()
    eventually(lambda: not warned())


# -- the schema as text -------------------------------------------------------------------------


def test_the_printed_schema_makes_tables_that_need_nothing_more(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as admin:
        store = open_store(url, schema="My-Jobs")
        for _name, text in store.schema():
            admin.execute(text.encode())
        assert store.migrate() == []
        store.insert([job()])
        assert store.queues() == [job().queue]
        store.close()


def test_asking_whether_the_tables_are_there_makes_none(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        store = open_store(url)
        assert not store.there()
        assert not store.there()
        store.open()
        assert store.there()
        store.close()
