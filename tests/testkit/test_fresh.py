"""An app on an empty store for a while, and a clock that stands still."""

from __future__ import annotations

import asyncio
import doctest
import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota
from rota.errors import ConfigError
from rota.testing import Clock, assert_enqueued, assert_nothing_enqueued, drain_through, enqueued, fresh_store
from testkit.conftest import Shop

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("module", ["asserting", "clock", "draining", "fresh"])
def test_the_examples_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"rota.testing.{module}"))
    assert (result.failed, result.attempted > 0) == (0, True)


def test_the_app_is_on_an_empty_store_and_then_what_it_was(shop_anywhere: Shop) -> None:
    before = shop_anywhere.send_receipt.enqueue(1)
    url = shop_anywhere.app.url
    with fresh_store(shop_anywhere.app) as app:
        assert app is shop_anywhere.app
        assert_nothing_enqueued(app)
        shop_anywhere.send_receipt.enqueue(2)
        assert [str(event) for event in app.drain()] == ["ran shop.send_receipt"]
    assert enqueued(shop_anywhere.app) == [before]
    assert (shop_anywhere.app.url, shop_anywhere.app.clock) == (url, None)


def test_the_store_need_not_be_there_that_the_app_was_declared_on() -> None:
    app = Rota("postgresql://nobody@/none?host=/nowhere")
    with fresh_store(app):
        app.send("elsewhere")
        assert len(enqueued(app)) == 1


def test_jobs_stay_although_the_app_is_closed_meanwhile(shop: Shop) -> None:
    async def serve() -> None:
        async with shop.app.lifespan()(None):
            await shop.send_receipt.aenqueue(42)

    with fresh_store(shop.app):
        asyncio.run(serve())
        assert_enqueued(shop.send_receipt, 42)


def test_it_may_be_a_file(shop: Shop, tmp_path: Path) -> None:
    with fresh_store(shop.app, f"sqlite:///{tmp_path / 'fresh.db'}"):
        shop.send_receipt.enqueue(42)
    with Rota(f"sqlite:///{tmp_path / 'fresh.db'}") as other:
        assert len(enqueued(other)) == 1


def test_blocks_nest(shop: Shop) -> None:
    with fresh_store(shop.app):
        outer = shop.send_receipt.enqueue(1)
        with fresh_store(shop.app):
            assert_nothing_enqueued(shop.app)
        assert enqueued(shop.app) == [outer]


def test_an_eager_app_keeps_its_jobs_meanwhile() -> None:
    app = Rota(eager=True)
    ran = []
    task = app.task(name="count")(lambda: ran.append(1))
    with fresh_store(app):
        task.enqueue()
        assert ran == []
        assert_enqueued(task)
    task.enqueue()
    assert ran == [1]


def test_a_worker_may_work_it(shop: Shop) -> None:
    with fresh_store(shop.app), shop.app.beside():
        shop.close_order.enqueue(7).wait(30)


# -- the clock ----------------------------------------------------------------------------------


def test_all_goes_by_the_clock(shop_anywhere: Shop) -> None:
    clock = Clock(START)
    with fresh_store(shop_anywhere.app, clock=clock) as app:
        job = shop_anywhere.send_receipt.using(delay=3600).enqueue(1)
        assert job.created_at == START
        assert app.run_one() is None
        clock.move(hours=1)
        assert str(app.run_one()) == "ran shop.send_receipt"


def test_a_clock_moves_by_whatever_a_span_is_given_in() -> None:
    clock = Clock(START)
    clock.move(1)
    clock.move(timedelta(minutes=1))
    clock.move(days=1, hours=2)
    assert clock() == START + timedelta(days=1, hours=2, minutes=1, seconds=1)
    clock.set(START)
    assert clock.now == START
    with pytest.raises(ConfigError, match="time zone"):
        clock.set(datetime(2030, 1, 1))  # noqa: DTZ001
    assert abs(Clock().now - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_stretch_of_time_is_worked_through_each_job_at_its_moment(shop: Shop) -> None:
    clock, moments = Clock(START), []

    @shop.app.task(name="flaky", max_attempts=3)
    def flaky() -> None:
        moments.append((clock.now - START).total_seconds())
        raise ConnectionError("no answer")

    with fresh_store(shop.app, clock=clock):
        flaky.enqueue()
        shop.send_receipt.using(delay=timedelta(days=2)).enqueue(1)
        events = drain_through(shop.app, days=1)
        assert (moments, len(events), clock.now) == ([0.0, 3.0, 21.0], 3, START + timedelta(days=1))
        assert [str(event) for event in drain_through(shop.app, timedelta(days=1))] == ["ran shop.send_receipt"]


def test_only_a_clock_that_can_be_moved_is(shop: Shop) -> None:
    with pytest.raises(ConfigError, match=r"rota\.testing\.Clock"):
        drain_through(shop.app, 1)
