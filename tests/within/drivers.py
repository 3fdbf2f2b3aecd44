"""The table of drivers: how each opens a connection of its own, begins, ends and marks transactions, in that driver's idiom.

All are written as coroutines, so that one test serves those that block and those that are awaited. What blocks is driven
without an event loop, as it would be used.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import aiosqlite
import asyncpg
import django
import django.conf
import psycopg
import sqlalchemy
from django.db import connections, transaction
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from rota import Job

T = TypeVar("T")


class Undone(Exception):
    """Raised to have a transaction or a savepoint rolled back."""


class Own:
    """A connection of the caller's own, open."""

    blocking = True

    def __init__(
        self,
        connection: Any,
        execute: Callable[[str], Any],
        transaction: Callable[[], AbstractAsyncContextManager[Any]],
        savepoint: Callable[[], AbstractAsyncContextManager[Any]],
    ) -> None:
        self.connection = connection
        self.execute = execute
        self.transaction = transaction
        self.savepoint = savepoint

    async def enqueue(self, task: Any, *args: Any) -> Job[Any]:
        return task.enqueue(*args)

    async def enqueue_many(self, task: Any, calls: Any) -> list[Job[Any]]:
        return task.enqueue_many(calls)

    async def run(self, statement: str) -> None:
        self.execute(statement)


class AsyncOwn(Own):
    blocking = False

    async def enqueue(self, task: Any, *args: Any) -> Job[Any]:
        return await task.aenqueue(*args)

    async def enqueue_many(self, task: Any, calls: Any) -> list[Job[Any]]:
        return await task.aenqueue_many(calls)

    async def run(self, statement: str) -> None:
        await self.execute(statement)


Opener = Callable[[str], AbstractAsyncContextManager[Own]]
"""Opens a connection to the database of a `sqlite:///` or `postgresql://` URL."""


def driven(coroutine: Coroutine[Any, Any, T], blocking: bool) -> T:
    """What a coroutine returns; one that only blocks needs no event loop."""
    if not blocking:
        return asyncio.run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


def ends(manager: Callable[[], Any]) -> Callable[[], AbstractAsyncContextManager[None]]:
    """A transaction or savepoint that a plain context manager makes."""

    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        with manager():
            yield

    return around


def marks(run: Callable[[str], Any]) -> Callable[[], AbstractAsyncContextManager[None]]:
    """A savepoint where the driver has no idiom of its own."""

    @asynccontextmanager
    async def around() -> AsyncIterator[None]:
        await _done(run("savepoint own"))
        try:
            yield
        except BaseException:
            await _done(run("rollback to savepoint own"))
            raise
        await _done(run("release savepoint own"))

    return around


async def _done(answer: Any) -> None:
    if hasattr(answer, "__await__"):
        await answer


# -- SQLite -------------------------------------------------------------------------------------


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


@asynccontextmanager
async def sqlite3_legacy(url: str) -> AsyncIterator[Own]:
    connection = sqlite3.connect(path_of(url))
    try:
        yield Own(connection, connection.execute, ends(lambda: connection), marks(connection.execute))
    finally:
        connection.close()


@asynccontextmanager
async def sqlite3_manual(url: str) -> AsyncIterator[Own]:
    connection = sqlite3.connect(path_of(url), isolation_level=None)

    @contextmanager
    def begun() -> Iterator[None]:
        connection.execute("begin immediate")
        with connection:
            yield

    try:
        yield Own(connection, connection.execute, ends(begun), marks(connection.execute))
    finally:
        connection.close()


@asynccontextmanager
async def sqlite3_always_within(url: str) -> AsyncIterator[Own]:
    """As Python 3.12 and later recommend."""
    connection = sqlite3.connect(path_of(url), autocommit=False)  # type: ignore[call-arg]
    try:
        yield Own(connection, connection.execute, ends(lambda: connection), marks(connection.execute))
    finally:
        connection.close()


@asynccontextmanager
async def aiosqlite_own(url: str) -> AsyncIterator[Own]:
    async with aiosqlite.connect(path_of(url)) as connection:

        @asynccontextmanager
        async def around() -> AsyncIterator[None]:
            try:
                yield
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()

        yield AsyncOwn(connection, connection.execute, around, marks(connection.execute))


# -- Postgres -----------------------------------------------------------------------------------


@asynccontextmanager
async def psycopg_own(url: str) -> AsyncIterator[Own]:
    with psycopg.connect(url) as connection:
        yield Own(connection, connection.execute, ends(connection.transaction), ends(connection.transaction))


@asynccontextmanager
async def psycopg_autocommit(url: str) -> AsyncIterator[Own]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield Own(connection, connection.execute, ends(connection.transaction), ends(connection.transaction))


@asynccontextmanager
async def psycopg_async(url: str) -> AsyncIterator[Own]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield AsyncOwn(connection, connection.execute, connection.transaction, connection.transaction)


def asyncpg_place(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    return {"user": "postgres", "database": parts.path[1:], "host": parse_qs(parts.query)["host"][0]}


@asynccontextmanager
async def asyncpg_own(url: str) -> AsyncIterator[Own]:
    connection = await asyncpg.connect(**asyncpg_place(url))
    try:
        yield AsyncOwn(connection, connection.execute, connection.transaction, connection.transaction)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pooled(url: str) -> AsyncIterator[Own]:
    pool = asyncpg.create_pool(**asyncpg_place(url), min_size=1, max_size=1)
    async with pool, pool.acquire() as connection:
        yield AsyncOwn(connection, connection.execute, connection.transaction, connection.transaction)


# -- SQLAlchemy ---------------------------------------------------------------------------------


@contextmanager
def an_engine(url: str, driver: str = "psycopg", **options: Any) -> Iterator[sqlalchemy.Engine]:
    if driver == "pg8000" and url.startswith("postgresql"):  # which knows a server's socket by its file
        place = asyncpg_place(url)
        options["connect_args"] = {"unix_sock": f"{place['host']}/.s.PGSQL.5432"}
        url = f"postgresql://{place['user']}@/{place['database']}"
    engine = sqlalchemy.create_engine(url.replace("postgresql:", f"postgresql+{driver}:"), **options)
    try:
        yield engine
    finally:
        engine.dispose()


@asynccontextmanager
async def an_async_engine(url: str, driver: str, **options: Any) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url.replace(":", f"+{driver}:", 1), **options)
    try:
        yield engine
    finally:
        await engine.dispose()


@asynccontextmanager
async def sqlalchemy_connection(url: str) -> AsyncIterator[Own]:
    with an_engine(url) as engine, engine.connect() as connection:
        yield Own(connection, connection.exec_driver_sql, ends(connection.begin), ends(connection.begin_nested))


@asynccontextmanager
async def sqlalchemy_connection_of_pg8000(url: str) -> AsyncIterator[Own]:
    with an_engine(url, "pg8000") as engine, engine.connect() as connection:
        yield Own(connection, connection.exec_driver_sql, ends(connection.begin), ends(connection.begin_nested))


@asynccontextmanager
async def sqlalchemy_session(url: str) -> AsyncIterator[Own]:
    with an_engine(url) as engine, Session(engine) as session:
        yield Own(session, lambda text: session.execute(sqlalchemy.text(text)), ends(session.begin), ends(session.begin_nested))


@asynccontextmanager
async def sqlalchemy_scoped(url: str) -> AsyncIterator[Own]:
    with an_engine(url) as engine:
        session = scoped_session(sessionmaker(engine))
        try:
            execute = lambda text: session.execute(sqlalchemy.text(text))  # noqa: E731
            yield Own(session, execute, ends(session.begin), ends(session.begin_nested))
        finally:
            session.remove()


def sqlalchemy_async_connection(driver: str) -> Opener:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Own]:
        async with an_async_engine(url, driver) as engine, engine.connect() as connection:
            yield AsyncOwn(connection, connection.exec_driver_sql, connection.begin, connection.begin_nested)

    return opened


def sqlalchemy_async_session(driver: str) -> Opener:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Own]:
        async with an_async_engine(url, driver) as engine, AsyncSession(engine) as session:
            execute = lambda text: session.execute(sqlalchemy.text(text))  # noqa: E731
            yield AsyncOwn(session, execute, session.begin, session.begin_nested)

    return opened


# -- Django -------------------------------------------------------------------------------------


def django_database(url: str) -> dict[str, Any]:
    if url.startswith("sqlite:"):
        where: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": path_of(url)}
    else:
        place = asyncpg_place(url)
        where = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": place["database"],
            "HOST": place["host"],
            "USER": place["user"],
        }
    return where


@contextmanager
def django_alias(url: str, alias: str = "shop") -> Iterator[Any]:
    """Django's connection to a database that its settings call `alias`."""
    if not django.conf.settings.configured:
        django.conf.settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    connections.databases[alias] = connections.configure_settings({"default": {}, alias: django_database(url)})[alias]
    try:
        yield connections[alias]
    finally:
        connections[alias].close()
        del connections[alias], connections.databases[alias]


@asynccontextmanager
async def django_own(url: str) -> AsyncIterator[Own]:
    with django_alias(url) as connection:

        def execute(statement: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute(statement)

        def atomic() -> Any:
            return transaction.atomic(using="shop")

        yield Own(connection, execute, ends(atomic), ends(atomic))


SQLITE: dict[str, tuple[Opener, bool]] = {
    "sqlite3": (sqlite3_legacy, True),
    **({"sqlite3, autocommit=False": (sqlite3_always_within, True)} if sys.version_info >= (3, 12) else {}),
    "sqlite3 without transactions of its own": (sqlite3_manual, True),
    "aiosqlite": (aiosqlite_own, False),
    "SQLAlchemy Connection, sqlite3": (sqlalchemy_connection, True),
    "SQLAlchemy Session, sqlite3": (sqlalchemy_session, True),
    "SQLAlchemy scoped_session, sqlite3": (sqlalchemy_scoped, True),
    "SQLAlchemy AsyncConnection, aiosqlite": (sqlalchemy_async_connection("aiosqlite"), False),
    "SQLAlchemy AsyncSession, aiosqlite": (sqlalchemy_async_session("aiosqlite"), False),
    "Django, sqlite3": (django_own, True),
}

POSTGRES: dict[str, tuple[Opener, bool]] = {
    "psycopg": (psycopg_own, True),
    "psycopg, autocommit": (psycopg_autocommit, True),
    "psycopg, async": (psycopg_async, False),
    "asyncpg": (asyncpg_own, False),
    "asyncpg, from a pool": (asyncpg_pooled, False),
    "SQLAlchemy Connection, psycopg": (sqlalchemy_connection, True),
    "SQLAlchemy Connection, pg8000": (sqlalchemy_connection_of_pg8000, True),
    "SQLAlchemy Session, psycopg": (sqlalchemy_session, True),
    "SQLAlchemy AsyncConnection, asyncpg": (sqlalchemy_async_connection("asyncpg"), False),
    "SQLAlchemy AsyncSession, asyncpg": (sqlalchemy_async_session("asyncpg"), False),
    "SQLAlchemy AsyncSession, psycopg": (sqlalchemy_async_session("psycopg"), False),
    "Django, psycopg": (django_own, True),
}

DRIVERS: Sequence[tuple[str, str]] = [*(("sqlite", name) for name in SQLITE), *(("postgres", name) for name in POSTGRES)]
