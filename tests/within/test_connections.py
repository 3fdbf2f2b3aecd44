"""Whatever callers taught their connections, and whether or not a transaction is open: jobs come in, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, kwargs_row
from psycopg.types.string import StrDumper
from psycopg.types.uuid import UUIDLoader
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from rota import ArgumentsError
from rota.stores.adding import MOST
from within.conftest import Shop
from within.drivers import an_async_engine, an_engine, asyncpg_place, path_of


def use(shop: Shop, connection: Any) -> None:
    """All that reads something back: one job, one whose key is held, and many."""
    task = shop.send_receipt.using(connection=connection)
    first = task.using(key="k").enqueue(1)
    again = task.using(key="k").enqueue(2)
    many = task.enqueue_many([(3,), (4,)])
    known = task.using(key="k").enqueue_many([(5,), (6,)])
    assert (again, again.existed, known) == (first, True, [first, first])
    assert len({first.id, *(job.id for job in many)}) == 3


async def ause(shop: Shop, connection: Any) -> None:
    task = shop.send_receipt.using(connection=connection)
    first = await task.using(key="k").aenqueue(1)
    again = await task.using(key="k").aenqueue(2)
    many = await task.aenqueue_many([(3,), (4,)])
    known = await task.using(key="k").aenqueue_many([(5,), (6,)])
    assert (again, again.existed, known) == (first, True, [first, first])
    assert len({first.id, *(job.id for job in many)}) == 3


# -- what callers taught their connections ------------------------------------------------------


def a_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((column[0] for column in cursor.description), row, strict=True))


@pytest.mark.parametrize("factory", [sqlite3.Row, a_dict])
@pytest.mark.parametrize("text", [str, bytes])
def test_rows_and_texts_of_sqlite3(sqlite_shop: Shop, factory: Any, text: Any) -> None:
    with closing(sqlite3.connect(path_of(sqlite_shop.url))) as connection:
        connection.row_factory = factory
        connection.text_factory = text
        use(sqlite_shop, connection)
        assert connection.row_factory is factory
        connection.commit()
    assert sqlite_shop.found() == ([], [1, 3, 4])


def test_converters_of_sqlite3(sqlite_shop: Shop) -> None:
    before = sqlite3.converters.copy()  # type: ignore[attr-defined]  # the module keeps them there
    for kind in ("text", "integer", ""):
        sqlite3.register_converter(kind, lambda raw: f"converted {raw!r}")
    try:
        detect = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
        with closing(sqlite3.connect(path_of(sqlite_shop.url), detect_types=detect)) as connection:
            use(sqlite_shop, connection)
            connection.commit()
    finally:
        sqlite3.converters.clear()  # type: ignore[attr-defined]
        sqlite3.converters.update(before)  # type: ignore[attr-defined]
    assert sqlite_shop.found() == ([], [1, 3, 4])


def test_rows_of_aiosqlite(sqlite_shop: Shop) -> None:
    async def main() -> None:
        async with aiosqlite.connect(path_of(sqlite_shop.url)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = bytes
            await ause(sqlite_shop, connection)
            await connection.commit()

    asyncio.run(main())
    assert sqlite_shop.found() == ([], [1, 3, 4])


class OddUuid(UUIDLoader):
    def load(self, data: Any) -> Any:
        return uuid.UUID(bytes(data).decode())


@pytest.mark.parametrize("rows", [dict_row, kwargs_row(dict)])
@pytest.mark.parametrize("cursors", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_rows_and_cursors_of_psycopg(postgres_shop: Shop, rows: Any, cursors: Any) -> None:
    with psycopg.connect(postgres_shop.url, row_factory=rows, cursor_factory=cursors) as connection:
        connection.adapters.register_dumper(str, StrDumper)
        connection.adapters.register_loader("uuid", OddUuid)
        use(postgres_shop, connection)
    assert postgres_shop.found() == ([], [1, 3, 4])


def test_codecs_of_asyncpg(postgres_shop: Shop) -> None:
    class Row(asyncpg.Record):
        pass

    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url), record_class=Row)
        for name in ("json", "jsonb"):
            await connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        await connection.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")
        async with connection.transaction():
            await ause(postgres_shop, connection)
        await connection.close()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [1, 3, 4])


def test_a_transaction_of_another_isolation_and_an_empty_search_path(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        connection.execute("set search_path to ''")
        use(postgres_shop, connection)
        assert connection.execute("show transaction_isolation").fetchone() == ("serializable",)
        assert connection.execute("show search_path").fetchone() == ('""',)
    assert postgres_shop.found() == ([], [1, 3, 4])


def test_no_setting_of_the_session_is_another_afterwards(postgres_shop: Shop) -> None:
    settings = "select name, setting from pg_settings where name <> 'application_name' order by name"
    with psycopg.connect(postgres_shop.url) as connection:
        before = connection.execute(settings).fetchall()
        use(postgres_shop, connection)
        assert connection.execute(settings).fetchall() == before
        connection.commit()
        assert connection.execute(settings).fetchall() == before


def test_an_encoding_of_the_callers(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url, client_encoding="latin1") as connection:
        job = postgres_shop.send_receipt.using(connection=connection, key="schön").enqueue(1)
        connection.commit()
    assert job.key == "schön"
    assert postgres_shop.found() == ([], [1])


def test_what_went_wrong_before_in_a_pipeline_of_the_callers_is_told_as_it_is(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn), connection.pipeline():
            connection.execute("select nowhere")
            postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        connection.rollback()

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_shop.url) as connection:
            with pytest.raises(psycopg.errors.UndefinedColumn):
                async with connection.pipeline():
                    await connection.execute("select nowhere")
                    await postgres_shop.send_receipt.using(connection=connection).aenqueue(1)
            await connection.rollback()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [])


def test_in_a_pipeline_of_the_callers(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection, connection.pipeline():
        connection.execute(postgres_shop.order(1))
        use(postgres_shop, connection)
        connection.execute(postgres_shop.order(2))

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_shop.url) as connection, connection.pipeline():
            await postgres_shop.send_receipt.using(connection=connection).aenqueue(5)
            await connection.execute(postgres_shop.order(3))

    asyncio.run(main())
    assert postgres_shop.found() == ([1, 2, 3], [1, 3, 4, 5])


# -- where no transaction is open ---------------------------------------------------------------


def wrong_at_last() -> Iterator[tuple[object, ...]]:
    """More calls than go into two statements, of which the last does not fit: the first are in the database by then."""
    yield from ((number,) for number in range(2 * MOST + 1))
    yield ("no number",)


def sync_ways() -> Iterator[tuple[str, str, Callable[[str], Any]]]:
    yield "sqlite", "sqlite3", lambda url: closing(sqlite3.connect(path_of(url), isolation_level=None))
    yield "postgres", "psycopg", lambda url: psycopg.connect(url, autocommit=True)


SYNC = {f"{kind}, {name}": (kind, way) for kind, name, way in sync_ways()}


@pytest.mark.parametrize("way", SYNC)
def test_a_connection_that_commits_each_statement_commits_the_job(way: str, request: pytest.FixtureRequest) -> None:
    kind, opened = SYNC[way]
    shop: Shop = request.getfixturevalue(f"{kind}_shop")
    with opened(shop.url) as connection:
        shop.send_receipt.using(connection=connection).enqueue(1)
        assert shop.found() == ([], [1])
        use(shop, connection)
        with pytest.raises(ArgumentsError):
            shop.send_receipt.using(connection=connection).enqueue_many(wrong_at_last())
        connection.execute("begin")
        shop.send_receipt.using(connection=connection).enqueue(9)
        connection.execute("rollback")
    assert shop.found() == ([], [1, 1, 3, 4])


@pytest.mark.parametrize(("kind", "driver"), [("sqlite", ""), ("postgres", "psycopg"), ("postgres", "pg8000")])
def test_an_engine_that_commits_each_statement_commits_the_job(kind: str, driver: str, request: pytest.FixtureRequest) -> None:
    shop: Shop = request.getfixturevalue(f"{kind}_shop")
    with (
        an_engine(shop.url, driver, isolation_level="AUTOCOMMIT") as engine,
        engine.connect() as connection,
        Session(engine) as session,
    ):
        shop.send_receipt.using(connection=connection).enqueue(7)
        assert shop.found() == ([], [7])
        use(shop, session)
        assert shop.found() == ([], [7, 1, 3, 4])
        with pytest.raises(ArgumentsError):
            shop.send_receipt.using(connection=connection).enqueue_many(wrong_at_last())
        connection.exec_driver_sql("begin")
        shop.send_receipt.using(connection=connection).enqueue(9)
        connection.exec_driver_sql("rollback")
    assert shop.found() == ([], [7, 1, 3, 4])


@pytest.mark.parametrize(("kind", "driver"), [("sqlite", "aiosqlite"), ("postgres", "psycopg"), ("postgres", "asyncpg")])
def test_an_async_engine_that_commits_each_statement_commits_the_job(
    kind: str, driver: str, request: pytest.FixtureRequest
) -> None:
    shop: Shop = request.getfixturevalue(f"{kind}_shop")

    async def main() -> None:
        async with an_async_engine(shop.url, driver, isolation_level="AUTOCOMMIT") as engine, AsyncSession(engine) as session:
            await ause(shop, session)
            assert shop.found() == ([], [1, 3, 4])
            with pytest.raises(ArgumentsError):
                await shop.send_receipt.using(connection=session).aenqueue_many(wrong_at_last())
        assert shop.found() == ([], [1, 3, 4])

    asyncio.run(main())


def test_an_asyncpg_connection_outside_of_a_transaction_commits_the_job(postgres_shop: Shop) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        await ause(postgres_shop, connection)
        assert not connection.is_in_transaction()
        with pytest.raises(ArgumentsError):
            await postgres_shop.send_receipt.using(connection=connection).aenqueue_many(wrong_at_last())
        await connection.close()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [1, 3, 4])


if sys.version_info >= (3, 12):  # sqlite3 has no autocommit before

    def test_connections_that_were_told_to_autocommit_commit_the_job(sqlite_shop: Shop) -> None:
        path = path_of(sqlite_shop.url)
        with closing(sqlite3.connect(path, autocommit=True)) as connection:  # type: ignore[call-arg]
            use(sqlite_shop, connection)
            assert not connection.in_transaction

        async def main() -> None:
            async with aiosqlite.connect(path, autocommit=True) as connection:
                await sqlite_shop.send_receipt.using(connection=connection).aenqueue(5)
                await connection.rollback()

        asyncio.run(main())
        assert sqlite_shop.found() == ([], [1, 3, 4, 5])


def test_sqlite3_begins_a_transaction_as_it_would_for_the_callers_own_statement(sqlite_shop: Shop) -> None:
    with closing(sqlite3.connect(path_of(sqlite_shop.url))) as connection:
        sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        assert connection.in_transaction
        assert sqlite_shop.found() == ([], [])
        connection.rollback()
    assert sqlite_shop.found() == ([], [])


def test_sqlalchemys_own_advice_for_sqlite_works(sqlite_shop: Shop) -> None:
    """Transactions that SQLAlchemy begins itself, by its events, where the driver begins none."""
    with an_engine(sqlite_shop.url) as engine:

        @sqlalchemy.event.listens_for(engine, "connect")
        def connected(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None

        @sqlalchemy.event.listens_for(engine, "begin")
        def begun(connection: sqlalchemy.Connection) -> None:
            connection.exec_driver_sql("begin")

        with Session(engine) as session:
            use(sqlite_shop, session)
            session.rollback()
            use(sqlite_shop, session)
            session.commit()
    assert sqlite_shop.found() == ([], [1, 3, 4])


@pytest.mark.parametrize("options", [{"stream_results": True}, {"yield_per": 10}], ids=("stream_results", "yield_per"))
def test_a_sqlalchemy_connection_that_streams_rows(postgres_shop: Shop, options: dict[str, Any]) -> None:
    with an_engine(postgres_shop.url) as engine, engine.connect().execution_options(**options) as connection:
        use(postgres_shop, connection)
        connection.commit()
    assert postgres_shop.found() == ([], [1, 3, 4])


def test_a_connection_is_asked_once_where_it_leads(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        dialect = postgres_shop.app.store.dialect()
        query, _ = next(dialect.check(connection))
        assert query == "whereabouts"
        postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        with pytest.raises(StopIteration):
            next(dialect.check(connection))
        connection.rollback()


# -- what is imported ---------------------------------------------------------------------------

ONE_DRIVER = """
import sqlite3, sys
from rota import Rota
app = Rota(sys.argv[1])
app.migrate()
with sqlite3.connect(sys.argv[2]) as connection, app.within(connection):
    app.send("t")
app.close()
print(*sys.modules)
"""


def test_no_driver_is_imported_but_the_callers_own(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    command = [sys.executable, "-c", ONE_DRIVER, f"sqlite:///{path}", path]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "rota.within.sqlite" in loaded
    assert loaded & {"aiosqlite", "asyncio", "asyncpg", "django", "psycopg", "sqlalchemy"} == set()


def test_without_a_connection_nothing_of_this_is_imported() -> None:
    command = [sys.executable, "-c", "from rota import Rota; import sys; Rota('memory://').send('t'); print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert [module for module in loaded if module.startswith("rota.within")] == []
