"""Django's connections, also to a database that is not the store's: its store hears of the job after the commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from rota import ConfigError, NotSupported, Rota, State
from within.conftest import Shop
from within.drivers import Undone, django_alias


def test_the_connection_of_each_thread_is_used(sqlite_shop: Shop) -> None:
    """Django gives every thread a connection of its own under one name."""
    with django_alias(sqlite_shop.url) as connection, django_alias(sqlite_shop.url, "default"):
        from django.db import connection as proxy

        with transaction.atomic("shop"):
            sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        with transaction.atomic():
            sqlite_shop.send_receipt.using(connection=proxy).enqueue(2)
            assert sqlite_shop.found() == ([], [1])
        with transaction.atomic(), sqlite_shop.app.within(proxy):
            sqlite_shop.send_receipt.enqueue(3)
        assert sqlite_shop.found() == ([], [1, 2, 3])


def test_a_connection_of_another_thread_is_refused(sqlite_shop: Shop) -> None:
    """It would be enqueued over that of this thread, and committed whatever becomes of the transaction on the other."""
    told: list[BaseException] = []

    def enqueue() -> None:
        try:
            with pytest.raises(ConfigError, match="this Django connection is another thread's, and so is its transaction"):
                sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
            connection.inc_thread_sharing()
            with pytest.raises(ConfigError, match="this Django connection is another thread's"):
                sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        except BaseException as error:
            told.append(error)
        finally:
            connections["shop"].close()

    with django_alias(sqlite_shop.url) as connection, transaction.atomic("shop"):
        thread = threading.Thread(target=enqueue)
        thread.start()
        thread.join()
    assert (told, sqlite_shop.found()) == ([], ([], []))


def test_outside_of_atomic_the_job_is_committed(sqlite_shop: Shop) -> None:
    with django_alias(sqlite_shop.url) as connection:
        sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
        assert sqlite_shop.found() == ([], [1])


def test_a_block_that_failed_before_says_so_in_djangos_words(sqlite_shop: Shop) -> None:
    with django_alias(sqlite_shop.url) as connection, transaction.atomic("shop"):
        transaction.set_rollback(True, using="shop")
        with pytest.raises(TransactionManagementError, match="You can't execute queries until the end"):
            sqlite_shop.send_receipt.using(connection=connection).enqueue(1)
    assert sqlite_shop.found() == ([], [])


def test_what_is_refused_where_the_jobs_are_made_is_not_taken_for_a_store_elsewhere(sqlite_shop: Shop) -> None:
    """The jobs would be lost without a word: who made them has made some already."""

    def calls() -> Iterator[tuple[int]]:
        yield (1,)
        sqlite_shop.send_receipt.enqueue(9)

    with django_alias(sqlite_shop.url) as connection, transaction.atomic("shop"):
        with pytest.raises(NotSupported, match="the generator given to enqueue_many changes jobs itself"):
            sqlite_shop.send_receipt.using(connection=connection).enqueue_many(calls())
        sqlite_shop.send_receipt.using(connection=connection).enqueue(2)
    assert sqlite_shop.found() == ([], [2])


def test_a_store_elsewhere_gets_the_job_after_the_commit(sqlite_shop: Shop) -> None:
    with django_alias(sqlite_shop.elsewhere) as connection:
        task = sqlite_shop.send_receipt.using(connection=connection)
        with transaction.atomic("shop"):
            job = task.enqueue(1)
            task.enqueue_many((number,) for number in (2, 3))
            assert sqlite_shop.found() == ([], [])
        assert (job.status, sqlite_shop.found()) == (State.QUEUED, ([], [1, 2, 3]))
        with pytest.raises(Undone), transaction.atomic("shop"):
            task.enqueue(4)
            raise Undone
        with transaction.atomic("shop"):
            with pytest.raises(Undone), transaction.atomic("shop"):
                task.enqueue(5)
                raise Undone
            task.enqueue(6)
        task.enqueue(7)
        assert sqlite_shop.found() == ([], [1, 2, 3, 6, 7])


def test_a_store_in_memory_gets_the_job_after_the_commit(sqlite_shop: Shop) -> None:
    with Rota("memory://") as app, django_alias(sqlite_shop.url) as connection:
        with transaction.atomic("shop"), app.within(connection):
            app.send("later")
            assert app.jobs() == []
        assert len(app.jobs()) == 1


def test_a_store_of_another_kind_gets_the_job_after_the_commit(postgres_shop: Shop, sqlite_shop: Shop) -> None:
    with django_alias(sqlite_shop.url) as connection, transaction.atomic("shop"):
        postgres_shop.send_receipt.using(connection=connection).enqueue(1)
        assert postgres_shop.found() == ([], [])
    assert postgres_shop.found() == ([], [1])


def test_from_a_coroutine_it_is_used_in_a_thread(sqlite_shop: Shop) -> None:
    with django_alias(sqlite_shop.url):

        async def main() -> None:
            with pytest.raises(ConfigError, match="a Django connection would block the event loop: use enqueue in place"):
                await sqlite_shop.send_receipt.using(connection=connections["shop"]).aenqueue(1)

            def enqueue() -> None:
                sqlite_shop.send_receipt.using(connection=connections["shop"]).enqueue(2)
                connections["shop"].close()

            await sync_to_async(enqueue)()

        asyncio.run(main())
        assert sqlite_shop.found() == ([], [2])
