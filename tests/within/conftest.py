"""A shop: an app on a store, and a table of orders of its own in the same database, reached by every driver."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from rota import Job, Rota
from within.drivers import DRIVERS, POSTGRES, SQLITE, Own, driven

if TYPE_CHECKING:
    from servers import PostgresServer


def argument(job: Job[Any]) -> Any:
    """The one argument of a job."""
    given = json.loads(job.row.args)
    [only] = given.get("*", given.values())
    return only


class Shop:
    """The app, its task, and its orders."""

    def __init__(self, app: Rota, url: str, elsewhere: str, orders: str, look: Callable[[str], list[Any]]) -> None:
        self.app = app
        self.url = url
        """Where the database is, without the store's schema."""
        self.elsewhere = elsewhere
        """Where another database is, of the same kind."""
        self.orders = orders
        self._look = look

        @app.task(name="send_receipt", priority=1)
        def send_receipt(order_id: int) -> None: ...

        self.send_receipt = send_receipt

    def order(self, number: int) -> str:
        """The statement with which the shop notes an order."""
        return f"insert into {self.orders} (number) values ({number})"

    def found(self) -> tuple[list[int], list[Any]]:
        """The orders that there are, and the arguments of the jobs, the oldest first, as everybody sees them."""
        jobs = [argument(job) for job in reversed(self.app.jobs(limit=10_000))]
        return [number for (number,) in self._look(f"select number from {self.orders} order by number")], jobs


@pytest.fixture
def sqlite_shop(tmp_path: Path) -> Iterator[Shop]:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with Rota(url) as app:
        app.migrate()
        assert app.store
        reader = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
        reader.execute("create table orders (number integer)")
        yield Shop(app, url, f"sqlite:///{tmp_path / 'elsewhere.db'}", "orders", lambda text: reader.execute(text).fetchall())
        reader.close()


SCHEMA = 'My-Jöbs "1" :jobs %s $1 {x}'
"""A schema whose name trips over every driver's way to mark parameters, if any does."""
_TABLES = ("rota_jobs", "rota_history", "rota_attempts", "rota_workers", "rota_tasks")


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: PostgresServer) -> Iterator[str]:
    """A database's URL: the store's tables are made once, since that takes longer than a test."""
    with postgres_server.database() as url:
        with Rota(url, schema=SCHEMA) as app, postgres_server.connect(urlsplit(url).path[1:]) as admin:
            app.migrate()
            admin.execute("create table orders (number integer)")
        yield url


@pytest.fixture
def postgres_shop(postgres_server: PostgresServer, postgres_tables: str) -> Iterator[Shop]:
    url = postgres_tables
    with psycopg.connect(url, autocommit=True) as admin, Rota(url, schema=SCHEMA) as app:
        try:
            assert app.store
            yield Shop(
                app, url, postgres_server.url("template1"), "orders", lambda text: admin.execute(text.encode()).fetchall()
            )
        finally:
            admin.execute("delete from orders")
            for table in _TABLES:
                admin.execute(SQL("delete from {}.{}").format(Identifier(SCHEMA), Identifier(table)))


@pytest.fixture(params=DRIVERS, ids=lambda pair: pair[1])
def driver(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A kind of store, and the name of a driver in the table."""
    return request.param


@pytest.fixture
def shop(driver: tuple[str, str], request: pytest.FixtureRequest) -> Shop:
    return request.getfixturevalue(f"{driver[0]}_shop")


@pytest.fixture
def on(driver: tuple[str, str], shop: Shop) -> Callable[..., None]:
    """Runs a coroutine function with a connection of the driver's, to the shop's database or to another one."""
    opener, blocking = (SQLITE if driver[0] == "sqlite" else POSTGRES)[driver[1]]

    def run(use: Callable[[Own], Awaitable[None]], url: str | None = None) -> None:
        async def opened() -> None:
            async with opener(shop.url if url is None else url) as own:
                await use(own)

        driven(opened(), blocking)

    return run
