"""A caller whose connection goes through PgBouncer, to a store that is reached directly, and the other way round."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from bouncer import Bouncer, bouncing
from rota import Rota
from within.conftest import SCHEMA, Shop

if TYPE_CHECKING:
    from servers import PostgresServer


@pytest.fixture
def bouncer(postgres_server: PostgresServer, postgres_tables: str) -> Iterator[Bouncer]:
    with bouncing(postgres_server.directory, default_pool_size=2) as bouncer:
        yield bouncer


@pytest.fixture
def pooled(bouncer: Bouncer, postgres_shop: Shop) -> str:
    """The URL of the shop's database through the pooler."""
    return urlsplit(bouncer.url())._replace(path=urlsplit(postgres_shop.url).path).geturl()


def test_psycopg_through_a_pooler(postgres_shop: Shop, pooled: str) -> None:
    for number in range(3):
        with psycopg.connect(pooled, prepare_threshold=None) as connection:
            postgres_shop.send_receipt.using(connection=connection).enqueue(number)
            assert len(postgres_shop.found()[1]) == number
    with psycopg.connect(pooled, prepare_threshold=None) as connection:
        postgres_shop.send_receipt.using(connection=connection).enqueue(9)
        connection.rollback()
    assert postgres_shop.found() == ([], [0, 1, 2])


def test_asyncpg_through_a_pooler(postgres_shop: Shop, pooled: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(pooled, statement_cache_size=0)
        async with connection.transaction():
            await postgres_shop.send_receipt.using(connection=connection).aenqueue_many([(1,), (2,)])
        await connection.close()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [1, 2])


def test_a_store_through_a_pooler(postgres_shop: Shop, pooled: str) -> None:
    with Rota(pooled, schema=SCHEMA, pooler=True) as app, psycopg.connect(postgres_shop.url) as connection:
        app.named("send_receipt").using(connection=connection).enqueue(1)
        connection.commit()
    assert postgres_shop.found() == ([], [1])
