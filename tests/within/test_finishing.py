"""On every driver's connection a body can finish its job: with its transaction, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncpg
import pytest

from rota import LeaseLost, State, current_job
from rota.clock import SECOND
from rota.stores.foreign import Elsewhere
from within.conftest import Shop
from within.drivers import Own, Undone, asyncpg_place

On = Callable[..., None]


async def finish(own: Own, **result: object) -> None:
    if own.blocking:
        current_job().finish_within(own.connection, **result)
    else:
        await current_job().afinish_within(own.connection, **result)


def test_the_commit_finishes_the_job_and_a_rollback_does_not(shop: Shop, on: On) -> None:
    @shop.app.task(name="pay", retry=0, keep_result=True)
    def pay(order_id: int) -> str:
        async def use(own: Own) -> None:
            async with own.transaction():
                await own.run(shop.order(current_job().attempt))
                await finish(own, result="paid")
                assert shop.app.get(job.id).status is State.RUNNING
                if current_job().attempt == 1:
                    raise Undone("no money")

        on(use)
        return "and went home"

    job = pay.enqueue(1)
    assert [str(event) for event in shop.app.drain()] == ["failed pay on attempt 1: no money", "ran pay"]
    assert (job.refresh().status, job.result(), job.attempt) == (State.SUCCEEDED, "paid", 2)
    assert shop.found()[0] == [2]


def test_a_savepoint_that_is_rolled_back_takes_the_finish_along(shop: Shop, on: On) -> None:
    @shop.app.task(name="pay", keep_result=True)
    def pay(order_id: int) -> str:
        async def use(own: Own) -> None:
            async with own.transaction():
                await own.run(shop.order(1))
                with pytest.raises(Undone):
                    async with own.savepoint():
                        await finish(own, result="paid")
                        raise Undone("no money")

        on(use)
        return "nothing paid"

    job = pay.enqueue(1)
    assert str(shop.app.run_one()) == "ran pay"
    assert (job.refresh().status, job.result()) == (State.SUCCEEDED, "nothing paid")
    assert shop.found()[0] == [1]


def test_who_lost_the_job_is_refused(shop: Shop, on: On) -> None:
    @shop.app.task(name="pay", max_attempts=2)
    def pay(order_id: int) -> None:
        async def use(own: Own) -> None:
            async with own.transaction():
                await own.run(shop.order(1))
                await finish(own)

        app = shop.app
        app.store.lost(10, now=app.store.vitals().now + 3600 * SECOND)
        with pytest.raises(LeaseLost, match="its lease was lost, and it is queued"):
            on(use)

    job = pay.enqueue(1)
    shop.app.run_one()
    assert job.refresh().status is State.QUEUED
    assert shop.found()[0] == []


def test_another_database_is_refused(shop: Shop, on: On) -> None:
    @shop.app.task(name="pay", max_attempts=1)
    def pay(order_id: int) -> None:
        async def use(own: Own) -> None:
            with pytest.raises(Elsewhere):
                async with own.transaction():
                    await finish(own)

        on(use, shop.elsewhere)

    job = pay.enqueue(1)
    assert str(shop.app.run_one()) == "ran pay"
    assert job.refresh().status is State.SUCCEEDED


def test_a_finish_takes_its_turn_with_what_is_enqueued_beside_it(postgres_shop: Shop) -> None:
    @postgres_shop.app.task(name="pay")
    async def pay(order_id: int) -> None:
        connection = await asyncpg.connect(**asyncpg_place(postgres_shop.url))
        async with connection.transaction(), postgres_shop.app.within(connection):
            receipts = [postgres_shop.send_receipt.aenqueue(number) for number in range(5)]
            await asyncio.gather(*receipts, current_job().afinish_within(connection))
        await connection.close()

    job = pay.enqueue(7)
    assert str(postgres_shop.app.run_one()) == "ran pay"
    assert (job.refresh().status, sorted(postgres_shop.found()[1])) == (State.SUCCEEDED, [0, 1, 2, 3, 4, 7])
