"""Where a block holds, and where it does not: tasks, threads, apps, and what goes on after its end."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import copy_context
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
from django.db import connection, transaction
from sqlalchemy.orm import scoped_session, sessionmaker

from rota import ConfigError, Rota, State
from within.conftest import Shop
from within.drivers import an_engine, asyncpg_place, django_alias, path_of
from working import eventually, working


@pytest.fixture
def own(sqlite_shop: Shop) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path_of(sqlite_shop.url), check_same_thread=False)
    yield connection
    connection.close()


def test_after_the_block_jobs_go_to_the_store_again(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    with own, sqlite_shop.app.within(own):
        sqlite_shop.send_receipt.enqueue(1)
        assert sqlite_shop.found() == ([], [])
    sqlite_shop.send_receipt.enqueue(2)
    assert sqlite_shop.found() == ([], [1, 2])


def test_a_block_ends_where_an_error_ends_it(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    with pytest.raises(KeyError), own, sqlite_shop.app.within(own):
        sqlite_shop.send_receipt.enqueue(1)
        raise KeyError
    sqlite_shop.send_receipt.enqueue(2)
    assert sqlite_shop.found() == ([], [2])


def test_an_inner_block_comes_first_and_the_outer_one_is_there_after_it(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    other = sqlite3.connect(path_of(sqlite_shop.url))
    with closing(other), sqlite_shop.app.within(own):
        with other, sqlite_shop.app.within(other):
            sqlite_shop.send_receipt.enqueue(1)
        sqlite_shop.send_receipt.enqueue(2)
        assert sqlite_shop.found() == ([], [1])
    own.rollback()


def test_a_connection_that_is_given_comes_before_the_blocks(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    other = sqlite3.connect(path_of(sqlite_shop.url))
    with closing(other), sqlite_shop.app.within(own):
        with other:
            sqlite_shop.send_receipt.using(connection=other).enqueue(1)
        assert sqlite_shop.found() == ([], [1])


def test_each_app_has_blocks_of_its_own(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    with Rota("memory://") as other, sqlite_shop.app.within(own):
        other.send("elsewhere")
        assert len(other.jobs()) == 1


def test_another_thread_is_not_in_the_block(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    with sqlite_shop.app.within(own):
        thread = threading.Thread(target=sqlite_shop.send_receipt.enqueue, args=(1,))
        thread.start()
        thread.join()
        assert sqlite_shop.found() == ([], [1])


def test_a_block_begins_once(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    block = sqlite_shop.app.within(own)
    with block, pytest.raises(ConfigError, match="has begun already"), block:
        pass
    with block, own:
        sqlite_shop.send_receipt.enqueue(1)
    assert sqlite_shop.found() == ([], [1])


def test_a_copy_of_the_context_leaves_the_block_when_it_ends(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    with own, sqlite_shop.app.within(own):
        context = copy_context()
        context.run(sqlite_shop.send_receipt.enqueue, 1)
        assert sqlite_shop.found() == ([], [])
    context.run(sqlite_shop.send_receipt.enqueue, 2)
    assert sqlite_shop.found() == ([], [1, 2])


def test_a_block_that_another_context_ends_has_ended(sqlite_shop: Shop, own: sqlite3.Connection) -> None:
    """As generators do that a framework begins in one context and ends in another."""

    @contextmanager
    def around() -> Iterator[None]:
        with own, sqlite_shop.app.within(own):
            yield

    manager = around()
    manager.__enter__()
    sqlite_shop.send_receipt.enqueue(1)
    copy_context().run(manager.__exit__, None, None, None)
    sqlite_shop.send_receipt.enqueue(2)
    assert sqlite_shop.found() == ([], [1, 2])


def test_tasks_that_begin_inside_take_turns_and_others_are_not_in_it(postgres_shop: Shop) -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def outside() -> None:
            await go.wait()
            await postgres_shop.send_receipt.aenqueue(0)

        other = asyncio.create_task(outside())
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        async with connection.transaction(), postgres_shop.app.within(connection):
            await asyncio.gather(*(postgres_shop.send_receipt.aenqueue(number) for number in range(1, 6)))
            go.set()
            await other
            assert postgres_shop.found() == ([], [0])
        await connection.close()

    asyncio.run(main())
    assert sorted(postgres_shop.found()[1]) == [0, 1, 2, 3, 4, 5]


def test_what_one_thread_undoes_in_a_block_is_not_what_another_enqueued(postgres_shop: Shop) -> None:
    """Both make a savepoint on the same connection, since they enqueue more than is sent at once."""
    inside, go_on = threading.Event(), threading.Event()

    def fails_late() -> Iterator[tuple[int]]:
        for number in range(4_500):
            if number == 4_200:
                inside.set()
                go_on.wait(0.3)  # the other may come in between here, if anywhere
            yield (number,)
        raise KeyError("the last")

    def fails() -> None:
        with pytest.raises(KeyError):
            postgres_shop.send_receipt.enqueue_many(fails_late())

    def succeeds() -> None:
        inside.wait(10)
        postgres_shop.send_receipt.enqueue_many([(number,) for number in range(2_500)])
        go_on.set()

    async def main(connection: psycopg.Connection) -> None:
        with postgres_shop.app.within(connection):
            await asyncio.gather(asyncio.to_thread(fails), asyncio.to_thread(succeeds))

    with psycopg.connect(postgres_shop.url) as connection:
        asyncio.run(main(connection))
        connection.commit()
    assert len(postgres_shop.found()[1]) == 2_500


@contextmanager
def djangos_proxy(url: str) -> Iterator[tuple[Any, Callable[[], Any]]]:
    with django_alias(url, "default"):
        yield connection, transaction.atomic


@contextmanager
def scoped(url: str) -> Iterator[tuple[Any, Callable[[], Any]]]:
    with an_engine(url) as engine:
        session = scoped_session(sessionmaker(engine))
        yield session, session.begin
        session.remove()


@pytest.mark.parametrize("opened", [djangos_proxy, scoped], ids=["Django's connection", "a scoped_session"])
def test_what_stands_for_another_connection_in_each_thread_keeps_no_thread_waiting(
    postgres_shop: Shop, opened: Callable[[str], Any]
) -> None:
    """One that waits for a key would keep that from being given back."""
    answers: list[bool] = []
    with opened(postgres_shop.url) as (own, atomic):
        task = postgres_shop.send_receipt.using(connection=own)

        def wait_for_the_key() -> None:
            try:
                with atomic():
                    answers.append(task.using(key="k").enqueue(3).existed)
            finally:
                getattr(own, "remove", own.close)()

        waiter = threading.Thread(target=wait_for_the_key)
        with atomic():
            task.using(key="k").enqueue(1)
            waiter.start()
            with psycopg.connect(postgres_shop.url, autocommit=True) as admin:
                blocked = "select count(*) from pg_locks where not granted"
                eventually(lambda: admin.execute(blocked).fetchone() == (1,))
                rescue = threading.Timer(10, end_those_who_wait, [postgres_shop.url])
                rescue.start()
                task.enqueue(2)
                rescue.cancel()
        waiter.join()
    assert answers == [True]
    assert postgres_shop.found() == ([], [1, 2])


def end_those_who_wait(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(pid) from pg_locks where not granted")


def test_sending_by_name_is_in_the_block_too(postgres_shop: Shop) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        async with postgres_shop.app.within(connection):
            transaction = connection.transaction()
            await transaction.start()
            await postgres_shop.app.asend("other", 1)
            await postgres_shop.app.named("other").aenqueue_many([(2,), (3,)])
            assert postgres_shop.found() == ([], [])
            await transaction.rollback()
        await connection.close()

    asyncio.run(main())
    assert postgres_shop.found() == ([], [])


def test_an_eager_body_is_in_no_block() -> None:
    app = Rota(eager=True)
    seen = []

    @app.task
    def inner() -> None:
        seen.append("inner")

    @app.task
    def outer() -> None:
        inner.enqueue()

    async def main() -> None:
        async with aiosqlite.connect(":memory:") as connection, app.within(connection):
            await outer.aenqueue()
            with pytest.raises(ConfigError, match="has to be awaited"):
                outer.enqueue()

    asyncio.run(main())
    assert seen == ["inner"]


def test_a_worker_that_falls_asleep_between_the_enqueue_and_the_commit_finds_the_job(postgres_shop: Shop) -> None:
    """Postgres notifies those alone who slept at the enqueue; the others look again."""
    with psycopg.connect(postgres_shop.url) as connection:
        job = postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        with working(postgres_shop.app, poll=1.0):
            eventually(lambda: postgres_shop.app.workers()[0].asleep)
            connection.commit()
            eventually(lambda: job.refresh().status is State.SUCCEEDED)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_bodies_that_are_drained_inside_of_a_block_are_not_in_it(kind: str, request: pytest.FixtureRequest) -> None:
    shop: Shop = request.getfixturevalue(f"{kind}_shop")

    @shop.app.task(name="order")
    def order(number: int) -> None:
        shop.send_receipt.enqueue(number)

    order.enqueue(1)
    order.enqueue(2)
    opened = sqlite3.connect(path_of(shop.url)) if kind == "sqlite" else psycopg.connect(shop.url)
    with closing(opened) as connection:
        with shop.app.within(connection):
            assert str(shop.app.run_one()) == "ran order"
            assert len(shop.app.drain()) == 3
            shop.send_receipt.enqueue(3)
        connection.rollback()
    assert sorted(shop.found()[1]) == [1, 1, 2, 2]


FORKED = """
import os, signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
from rota.within import turns

class Connection: ...  # one that makes itself anew in another process, as Django's do

own, taken, go = Connection(), threading.Event(), threading.Event()

def enqueue():
    with turns.turn(own):
        taken.set()
        go.wait(30)

thread = threading.Thread(target=enqueue)
thread.start()
taken.wait(30)
turns._guard.acquire()  # as if another thread were at it just now
child = os.fork()
if not child:
    signal.alarm(10)
    with turns.turn(own):
        os._exit(0)
turns._guard.release()
go.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_in_a_forked_child_nobody_has_a_turn() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"
