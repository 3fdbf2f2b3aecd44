"""Coroutines that are cancelled while they enqueue: their connection is left as it was, and goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing

import aiosqlite
import asyncpg
import psycopg
import pytest

from within.conftest import Shop
from within.drivers import an_async_engine, asyncpg_place, path_of
from working import eventually


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_cancelled_coroutine_hears_of_that_alone_where_its_engine_commits_each_statement(
    postgres_shop: Shop, driver: str
) -> None:
    async def main() -> None:
        with psycopg.connect(postgres_shop.url) as holder, psycopg.connect(postgres_shop.url, autocommit=True) as admin:
            postgres_shop.send_receipt.using(connection=holder, key="k").enqueue(1)
            async with (
                an_async_engine(postgres_shop.url, driver, isolation_level="AUTOCOMMIT") as engine,
                engine.connect() as connection,
            ):
                mine = postgres_shop.send_receipt.using(connection=connection, key="k")
                waiting = asyncio.create_task(mine.aenqueue(2))
                blocked = "select count(*) from pg_locks where not granted"
                await asyncio.to_thread(eventually, lambda: admin.execute(blocked).fetchone() == (1,))
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            holder.rollback()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [])


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
@pytest.mark.parametrize("many", [False, True])
def test_a_coroutine_that_is_cancelled_leaves_no_transaction_open_on_asyncpgs_connection(
    postgres_shop: Shop, many: bool
) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        task = postgres_shop.send_receipt.using(connection=connection)
        await task.aenqueue(1)  # from now on its first statement is the one that begins
        for wait in range(12):  # once the server has heard it, or not yet
            os.kill(connection.get_server_pid(), signal.SIGSTOP)
            try:
                going = asyncio.create_task(task.aenqueue_many([(2,)] * 3) if many else task.aenqueue(2))
                for _ in range(wait):
                    await asyncio.sleep(0)
                going.cancel()
                await asyncio.sleep(0)
            finally:
                os.kill(connection.get_server_pid(), signal.SIGCONT)
            with pytest.raises(asyncio.CancelledError):
                await going
            assert not connection.is_in_transaction()
        await task.aenqueue(3)
        await connection.close()

    asyncio.run(main())
    assert [number for number in postgres_shop.found()[1] if number != 2] == [1, 3]


def test_a_coroutine_that_is_cancelled_while_it_waits_to_begin_leaves_no_transaction_open(sqlite_shop: Shop) -> None:
    """Where each statement is committed nobody would end it: the file would stay locked."""
    path = path_of(sqlite_shop.url)

    async def main() -> None:
        async with aiosqlite.connect(path, isolation_level=None) as connection:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                reached, loop = asyncio.Event(), asyncio.get_running_loop()
                other.execute("begin immediate")
                await connection.set_trace_callback(
                    lambda text: loop.call_soon_threadsafe(reached.set) if text == "begin immediate" else None
                )
                waiting = asyncio.create_task(sqlite_shop.send_receipt.using(connection=connection).aenqueue(1))
                await reached.wait()
                waiting.cancel()
                other.execute("rollback")
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert not connection.in_transaction
                other.execute("begin immediate")
                other.execute("rollback")
            await sqlite_shop.send_receipt.using(connection=connection).aenqueue(2)

    asyncio.run(main())
    assert sqlite_shop.found() == ([], [2])
