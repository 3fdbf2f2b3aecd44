"""What cannot be is refused in words, and what a driver says is said in Rota's."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy.orm import Session, declarative_base

from rota import ConfigError, NotSupported, Rota, State, StoreError, StoreUnavailable
from rota.model import NewJob
from rota.stores.adding import inserting
from rota.within import blocking, work
from within.conftest import SCHEMA, Shop
from within.drivers import POSTGRES, Undone, an_engine, asyncpg_place, driven, path_of
from working import eventually

if TYPE_CHECKING:
    from servers import PostgresServer


# -- connections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", ["sqlite:///jobs.db", 7, object(), sqlite3, sqlite3.Connection], ids=("url", "number", "object", "module", "class")
)
def test_what_is_no_connection_is_refused_where_it_is_given(what: Any) -> None:
    with Rota("memory://") as app:
        with pytest.raises(
            ConfigError, match=r"connection=.* is none that Rota knows: it knows psycopg's connections, asyncpg's"
        ):
            app.named("t").using(connection=what)
        with pytest.raises(ConfigError, match="is none that Rota knows"):
            app.within(what)


def test_cursors_pools_and_engines_are_none(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection, an_engine(postgres_shop.url) as engine:
        for what in (connection.cursor(), engine):
            with pytest.raises(ConfigError, match="is none that Rota knows"):
                postgres_shop.app.within(what)


def test_the_memory_store_is_in_no_database() -> None:
    with Rota("memory://") as app, closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(NotSupported, match="memory:// is in this process's memory, where no connection of yours leads"):
            app.named("t").using(connection=connection).enqueue()
        assert app.jobs() == []


def test_a_connection_of_another_kind_of_database_is_refused(postgres_shop: Shop, sqlite_shop: Shop) -> None:
    with (
        psycopg.connect(postgres_shop.url) as connection,
        pytest.raises(ConfigError, match=r"a psycopg connection leads to Postgres, and the store is in SQLite at .*shop\.db"),
    ):
        sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
    refused = pytest.raises(ConfigError, match="a sqlite3 connection leads to SQLite, and the store is in Postgres at ")
    with closing(sqlite3.connect(path_of(sqlite_shop.url))) as other, refused:
        postgres_shop.send_receipt.using(connection=other).enqueue(1)


def test_a_database_in_memory_is_another_than_a_file(sqlite_shop: Shop) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(
            ConfigError, match=r"leads to a SQLite database in memory, and the store is in the SQLite file .*shop\.db"
        ):
            sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        assert not connection.in_transaction


def test_a_file_is_the_same_by_whatever_name(sqlite_shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path, target_is_directory=True)
    with closing(sqlite3.connect(tmp_path / "alias" / "shop.db")) as connection, connection:
        sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
    assert sqlite_shop.found() == ([], [1])


def test_a_session_that_has_a_database_for_each_class_is_told_what_to_pass(sqlite_shop: Shop) -> None:
    base: Any = declarative_base()
    with an_engine(sqlite_shop.url) as engine, Session(binds={base: engine}) as session:
        with pytest.raises(ConfigError, match=r"pass the connection to the store's database, session\.connection\("):
            sqlite_shop.send_receipt.using(connection=session).enqueue(1)
        with session.begin():
            connection = session.connection(bind_arguments={"bind": engine})
            sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
    assert sqlite_shop.found() == ([], [1])


def test_a_store_that_was_made_before_stores_had_dialects_says_so(sqlite_shop: Shop) -> None:
    class Older:
        """Another's store: all it has but that."""

        url = "etcd://here"

        def __init__(self) -> None:
            self.insert = sqlite_shop.app.store.insert

    older: Any = Older()
    refused = pytest.raises(NotSupported, match="the store etcd://here cannot take part in a transaction of yours")
    with closing(sqlite3.connect(path_of(sqlite_shop.url))) as connection, refused:
        work(older, blocking(connection, "enqueue"), inserting([NewJob("1", "t", "q", "[]")], None))


# -- eager mode ---------------------------------------------------------------------------------


def test_in_eager_mode_the_connection_is_looked_at_and_the_body_runs_at_once() -> None:
    ran = []
    app = Rota(eager=True)

    @app.task
    def note(number: int) -> None:
        ran.append(number)

    with closing(sqlite3.connect(":memory:")) as connection:
        assert note.using(connection=connection).enqueue(1).status is State.SUCCEEDED
        with app.within(connection):
            note.enqueue_many([(2,), (3,)])
        assert ran == [1, 2, 3]
        assert not connection.in_transaction
        waiting = note.using(connection=connection).aenqueue(4)
        with pytest.raises(ConfigError, match="use enqueue in place of aenqueue"):
            waiting.send(None)
    with pytest.raises(ConfigError, match="is none that Rota knows"):
        note.using(connection=7)  # type: ignore[arg-type]
    assert ran == [1, 2, 3]


# -- errors that are no driver's ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["psycopg", "asyncpg"])
@pytest.mark.parametrize(
    "error", [FileNotFoundError("orders.csv"), psycopg.OperationalError("elsewhere")], ids=("file", "driver")
)
def test_what_is_raised_where_the_jobs_are_made_stays_what_it_is(name: str, error: Exception, postgres_shop: Shop) -> None:
    opener, blocking_one = POSTGRES[name]

    def calls(many: int) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(many))
        raise error

    async def use() -> None:
        async with opener(postgres_shop.url) as own, own.transaction():
            for many in (1, 4_500):
                with pytest.raises(type(error)) as caught:
                    await own.enqueue_many(postgres_shop.send_receipt.using(connection=own.connection), calls(many))
                assert caught.value is error
            await own.enqueue(postgres_shop.send_receipt.using(connection=own.connection), 7)

    driven(use(), blocking_one)
    assert postgres_shop.found() == ([], [7])


# -- SQLite's locks -----------------------------------------------------------------------------


def test_a_file_that_another_has_locked(sqlite_shop: Shop) -> None:
    path = path_of(sqlite_shop.url)
    with closing(sqlite3.connect(path, timeout=0.05)) as connection, closing(sqlite3.connect(path)) as other:
        other.execute("begin immediate")
        with pytest.raises(
            StoreUnavailable, match=r"shop\.db is locked by another transaction, for longer than your connection's"
        ):
            sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        other.rollback()
        sqlite_shop.send_receipt.using(connection=connection).enqueue(2)
        connection.commit()
    assert sqlite_shop.found() == ([], [2])


def test_a_transaction_that_read_before_another_wrote(sqlite_shop: Shop) -> None:
    with closing(sqlite3.connect(path_of(sqlite_shop.url), isolation_level=None)) as connection:
        connection.execute("begin")
        connection.execute("select * from orders").fetchall()
        sqlite_shop.send_receipt.enqueue(1)
        with pytest.raises(StoreUnavailable, match=r"was written to since your transaction first read it.*`begin immediate`"):
            sqlite_shop.send_receipt.using(connection=connection).enqueue(2)
        connection.execute("rollback")
    assert sqlite_shop.found() == ([], [1])


def test_a_connection_of_sqlite3_that_is_closed_reads_alone_or_is_another_threads(sqlite_shop: Shop) -> None:
    path = path_of(sqlite_shop.url)
    task = sqlite_shop.send_receipt
    told: list[str] = []

    def enqueue(connection: sqlite3.Connection) -> None:
        with pytest.raises(StoreUnavailable) as refused:
            task.using(connection=connection).enqueue(1)
        told.append(str(refused.value).partition(f"your connection to the SQLite file {path} ")[2])

    with closing(sqlite3.connect(path)) as connection:
        thread = threading.Thread(target=enqueue, args=(connection,))
        thread.start()
        thread.join()
        connection.execute("pragma query_only = 1")
        enqueue(connection)
    enqueue(connection)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        enqueue(connection)
    assert [line.partition(" (")[0] for line in told] == [
        "does not work",
        "takes no writes",
        "does not work",
        "takes no writes",
    ]
    assert sqlite_shop.found() == ([], [])


def test_tables_that_the_callers_own_transaction_keeps_from_being_made(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, Rota(f"sqlite:///{path}") as app:
        connection.execute("create table orders (number integer)")
        connection.execute("insert into orders values (1)")
        with pytest.raises(StoreUnavailable, match=r"within one of your own, .*, call app\.migrate\(\) before it begins"):
            app.named("t").using(connection=connection, queue="q").enqueue()
        connection.commit()
        with connection:
            app.named("t").using(connection=connection).enqueue()
        assert len(app.jobs()) == 1


# -- Postgres's errors --------------------------------------------------------------------------


def test_a_transaction_that_failed_before(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from nowhere")
        with pytest.raises(StoreError, match=r"your transaction has failed before, .*: roll it back first") as told:
            postgres_shop.send_receipt.using(connection=connection).enqueue(2)
        assert isinstance(told.value.__cause__, psycopg.errors.InFailedSqlTransaction)
        connection.rollback()
        postgres_shop.send_receipt.using(connection=connection).enqueue(3)
    assert postgres_shop.found() == ([], [3])


def test_a_transaction_that_may_only_read(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        connection.read_only = True
        with pytest.raises(StoreUnavailable, match=r"your transaction takes no writes .*: enqueue in one that is not"):
            postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        connection.rollback()


def test_a_transaction_that_is_in_conflict_with_another(postgres_shop: Shop) -> None:
    job = postgres_shop.send_receipt.using(key="k").enqueue(1)
    with psycopg.connect(postgres_shop.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select 1")
        job.cancel()
        other = postgres_shop.send_receipt.using(key="k").enqueue(2)
        with pytest.raises(StoreUnavailable, match=r"your transaction is in conflict with another .*: roll it back and run it"):
            postgres_shop.send_receipt.using(connection=connection, key="k").enqueue(3)
        connection.rollback()
        assert postgres_shop.send_receipt.using(connection=connection, key="k").enqueue(3) == other


@pytest.mark.parametrize("name", POSTGRES)
def test_every_driver_tells_of_a_transaction_that_failed_before(name: str, postgres_shop: Shop) -> None:
    opener, blocking = POSTGRES[name]

    async def main() -> None:
        async with opener(postgres_shop.url) as own:
            with pytest.raises(Undone):
                async with own.transaction():
                    await own.enqueue(postgres_shop.send_receipt.using(connection=own.connection), 1)
                    with pytest.raises(Exception, match="nowhere"):
                        await own.run("select * from nowhere")
                    with pytest.raises(StoreError, match="your transaction has failed before") as told:
                        await own.enqueue(postgres_shop.send_receipt.using(connection=own.connection), 2)
                    assert told.value.__cause__ is not None
                    raise Undone

    driven(main(), blocking)
    assert postgres_shop.found() == ([], [])


def test_statements_that_the_driver_prepared_and_somebody_discarded(postgres_shop: Shop) -> None:
    """What helps lies with the caller's connection, not with the store's."""

    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        enqueue = postgres_shop.send_receipt.using(connection=connection).aenqueue
        await enqueue(1)
        await connection.execute("discard all")
        with pytest.raises(StoreError, match="have it prepare none, with statement_cache_size=0 for asyncpg"):
            await enqueue(2)
        await connection.close()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [1])


def test_a_connection_that_is_closed(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        pass
    with pytest.raises(StoreUnavailable, match=r"your connection to Postgres does not work .*closed"):
        postgres_shop.send_receipt.using(connection=connection).enqueue(1)


def test_a_role_with_rights_to_the_tables_enqueues_and_one_without_is_told(
    postgres_shop: Shop, postgres_server: PostgresServer
) -> None:
    """Neither has a right to the schema public, and nothing is looked for there."""
    database = asyncpg_place(postgres_shop.url)["database"]
    schema = Identifier(SCHEMA)
    with postgres_server.connect(database) as admin:
        admin.execute("create role clerk login; create role stranger login; revoke all on schema public from public")
        admin.execute(
            SQL("grant usage on schema {0} to clerk; grant select, insert on all tables in schema {0} to clerk").format(schema)
        )
        try:
            with psycopg.connect(postgres_shop.url, user="clerk") as connection:
                task = postgres_shop.send_receipt.using(connection=connection)
                task.using(key="k").enqueue(1)
                assert task.using(key="k").enqueue(2).existed
                task.enqueue_many([(3,), (4,)])
            refused = pytest.raises(StoreError, match="lacks a right")
            with psycopg.connect(postgres_shop.url, user="stranger") as connection, refused:
                postgres_shop.send_receipt.using(connection=connection).enqueue(5)
        finally:
            admin.execute("grant usage on schema public to public; drop owned by clerk cascade; drop role clerk, stranger")
    assert postgres_shop.found() == ([], [1, 3, 4])


# -- keys that several transactions want --------------------------------------------------------


def test_who_wants_a_key_that_an_open_transaction_took_waits_for_its_end(postgres_shop: Shop) -> None:
    answers = []

    def other() -> None:
        answers.append(postgres_shop.send_receipt.using(key="k").enqueue(2))

    for number, end in ((1, "rollback"), (3, "commit")):
        thread = threading.Thread(target=other)
        with psycopg.connect(postgres_shop.url) as connection:
            mine = postgres_shop.send_receipt.using(connection=connection, key=f"k{number}").enqueue(number)
            assert not mine.existed
            held = postgres_shop.send_receipt.using(connection=connection, key="k").enqueue(number)
            if end == "rollback":
                thread.start()
                with psycopg.connect(postgres_shop.url, autocommit=True) as admin:
                    waiting = "select count(*) from pg_locks where not granted"
                    eventually(lambda: admin.execute(waiting).fetchone() == (1,))  # noqa: B023  # it is called in this round
                connection.rollback()
                thread.join()
                assert not answers[0].existed
            else:
                assert (held, held.existed) == (answers[0], True)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_of_many_transactions_at_once_one_gets_the_key(kind: str, request: pytest.FixtureRequest) -> None:
    shop: Shop = request.getfixturevalue(f"{kind}_shop")
    rounds, threads = 15, 6
    barrier = threading.Barrier(threads)
    answers: list[tuple[int, str, bool]] = []

    def enqueue() -> None:
        with (
            psycopg.connect(shop.url)
            if kind == "postgres"
            else closing(sqlite3.connect(path_of(shop.url), timeout=30)) as connection
        ):
            for number in range(rounds):
                barrier.wait()
                if kind == "sqlite":
                    connection.execute("begin immediate")
                job = shop.send_receipt.using(connection=connection, key=f"round {number}").enqueue(number)
                connection.commit()
                answers.append((number, job.id, job.existed))

    running = [threading.Thread(target=enqueue) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for number in range(rounds):
        mine = [(job, existed) for found, job, existed in answers if found == number]
        assert len(mine) == threads
        assert len({job for job, _ in mine}) == 1
        assert [existed for _, existed in mine].count(False) == 1
    assert shop.found() == ([], list(range(rounds)))
