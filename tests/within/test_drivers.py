"""What every driver's connection keeps: the job is part of the caller's transaction, whatever becomes of that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from app.words import WORDS
from rota import ArgumentsError, ConfigError, State
from within.conftest import Shop, argument
from within.drivers import Own, Undone
from working import eventually, working

On = Callable[..., None]

LONG_POLL = 20.0
PROMPT = 5.0
"""Seconds that are far below the poll, and far above what a busy machine needs to start a job."""


def test_after_the_commit_the_job_is_there_with_what_belongs_to_it(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        async with own.transaction():
            await own.run(shop.order(7))
            job = await own.enqueue(shop.send_receipt.using(connection=own.connection), 7)
            assert (job.existed, shop.found()) == (False, ([], []))
        assert shop.found() == ([7], [7])
        assert (job.status, job.priority) == (State.QUEUED, 1)

    on(use)


def test_after_a_rollback_it_never_was(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        with pytest.raises(Undone):
            async with own.transaction():
                await own.run(shop.order(7))
                await own.enqueue(shop.send_receipt.using(connection=own.connection), 7)
                raise Undone
        assert shop.found() == ([], [])
        async with own.transaction():
            await own.enqueue(shop.send_receipt.using(connection=own.connection), 8)
        assert shop.found() == ([], [8])

    on(use)


def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        to_send = shop.send_receipt.using(connection=own.connection)
        async with own.transaction():
            await own.enqueue(to_send, 1)
            with pytest.raises(Undone):
                async with own.savepoint():
                    await own.run(shop.order(2))
                    await own.enqueue(to_send, 2)
                    raise Undone
            async with own.savepoint():
                await own.run(shop.order(3))
                await own.enqueue(to_send, 3)
        assert shop.found() == ([3], [1, 3])

    on(use)


def test_a_savepoint_comes_before_all_else_in_a_transaction(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        to_send = shop.send_receipt.using(connection=own.connection)
        async with own.transaction():
            with pytest.raises(Undone):
                async with own.savepoint():
                    await own.enqueue(to_send, 1)
                    raise Undone
            await own.run(shop.order(2))
        assert shop.found() == ([2], [])

    on(use)


def test_a_key_is_held_by_jobs_outside_and_inside_of_the_transaction(shop: Shop, on: On) -> None:
    outside = shop.send_receipt.using(key="receipt:1").enqueue(1)

    async def use(own: Own) -> None:
        own_task = shop.send_receipt.using(connection=own.connection)
        async with own.transaction():
            first = await own.enqueue(own_task.using(key="receipt:1"), 1)
            second = await own.enqueue(own_task.using(key="receipt:2"), 2)
            third = await own.enqueue(own_task.using(key="receipt:2"), 3)
        assert (first, second.existed, third) == (outside, False, second)
        assert (first.existed, third.existed) == (True, True)
        assert shop.found() == ([], [1, 2])

    on(use)


def test_many_come_in_together_with_their_options(shop: Shop, on: On) -> None:
    outside = shop.send_receipt.using(key="one").enqueue(0)

    async def use(own: Own) -> None:
        to_send = shop.send_receipt.using(connection=own.connection, priority=9, queue="mail", delay=3600, max_attempts=2)
        async with own.transaction():
            jobs = await own.enqueue_many(to_send, ((number,) for number in range(1, 4)))
            keyed = await own.enqueue_many(shop.send_receipt.using(connection=own.connection, key="one"), [(4,), (5,)])
        assert [argument(job) for job in jobs] == [1, 2, 3]
        assert {(job.priority, job.queue, job.status, job.max_attempts) for job in jobs} == {(9, "mail", State.SCHEDULED, 2)}
        assert [(job, job.existed) for job in keyed] == [(outside, True), (outside, True)]
        assert await own.enqueue_many(to_send, []) == []

    on(use)


def test_many_are_all_or_none_though_the_transaction_goes_on(shop: Shop, on: On) -> None:
    def calls() -> Iterator[tuple[object, ...]]:
        yield from ((number,) for number in range(2_100))  # more than go into one statement
        yield ("no number",)

    async def use(own: Own) -> None:
        async with own.transaction():
            with pytest.raises(ArgumentsError, match="call 2101"):
                await own.enqueue_many(shop.send_receipt.using(connection=own.connection), calls())
            await own.run(shop.order(1))
        assert shop.found() == ([1], [])
        async with own.transaction():
            many = ((number,) for number in range(2_100))
            await own.enqueue_many(shop.send_receipt.using(connection=own.connection), many)
        assert shop.found() == ([1], list(range(2_100)))

    on(use)


def test_in_a_block_every_job_of_the_app_goes_over_the_connection(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        with pytest.raises(Undone):
            async with own.transaction():
                with shop.app.within(own.connection):
                    await own.enqueue(shop.send_receipt, 1)
                    await own.enqueue(shop.app.named("other").using(priority=3), 2)
                    await own.enqueue_many(shop.app.named("other"), [(3,)])
                raise Undone
        assert shop.found() == ([], [])
        async with own.transaction(), shop.app.within(own.connection):
            await own.enqueue(shop.send_receipt, 1)
            await own.enqueue(shop.app.named("other"), 2)
            assert shop.found() == ([], [])
        assert shop.found() == ([], [1, 2])

    on(use)


def test_a_sleeping_worker_starts_the_job_promptly_once_it_is_committed(shop: Shop, on: On) -> None:
    with working(shop.app, poll=LONG_POLL):
        eventually(lambda: shop.app.workers()[0].asleep)

        async def use(own: Own) -> None:
            async with own.transaction():
                job = await own.enqueue(shop.send_receipt.using(connection=own.connection), 7)
                assert shop.found() == ([], [])
                before = time.monotonic()
            eventually(lambda: job.refresh().status is State.SUCCEEDED)
            assert time.monotonic() - before < PROMPT

        on(use)


def test_a_connection_to_another_database_is_refused_and_goes_on_working(shop: Shop, on: On, driver: tuple[str, str]) -> None:
    if "Django" in driver[1]:  # it has the store wait for its commit: see test_django.py
        return
    both = r"the connection leads to .*(elsewhere\.db|template1).*, and the store is in .*(shop\.db|database db)"

    async def use(own: Own) -> None:
        async with own.transaction():
            with pytest.raises(ConfigError, match=both):
                await own.enqueue(shop.send_receipt.using(connection=own.connection), 7)
            await own.run("create temporary table still_working (number integer)")
        assert shop.found() == ([], [])

    on(use, shop.elsewhere)


def test_the_other_method_is_named_where_the_wrong_one_is_called(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        task = shop.send_receipt.using(connection=own.connection)
        if own.blocking:
            with pytest.raises(ConfigError, match="would block the event loop: use enqueue in place of aenqueue"):
                await task.aenqueue(1)
            with pytest.raises(ConfigError, match="use enqueue_many in place of aenqueue_many"):
                await task.aenqueue_many([(1,)])
        else:
            with pytest.raises(ConfigError, match=r"has to be awaited: use `await .*aenqueue\(.*\)` in place of enqueue"):
                task.enqueue(1)
            with pytest.raises(ConfigError, match="in place of enqueue_many"), shop.app.within(own.connection):
                shop.send_receipt.enqueue_many([(1,)])
        assert shop.found() == ([], [])

    on(use)


def test_queues_keys_and_arguments_arrive_as_they_are(shop: Shop, on: On) -> None:
    async def use(own: Own) -> None:
        async with own.transaction():
            task = shop.app.named("odd").using(connection=own.connection)
            jobs = [await own.enqueue(task.using(queue=word, key=word), word) for word in WORDS]
            jobs += await own.enqueue_many(task.using(queue="many"), [(word,) for word in WORDS])
            again = [await own.enqueue(task.using(queue=word, key=word), word) for word in WORDS]
        assert again == jobs[: len(WORDS)]
        assert [argument(job) for job in jobs] == [*WORDS, *WORDS]
        assert [(job.queue, job.key) for job in jobs[: len(WORDS)]] == [(word, word) for word in WORDS]

    on(use)
