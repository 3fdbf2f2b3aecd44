"""An app on an empty store for a while, and a clock that stands still."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rota import Limit, Retry, Rota
from rota.clock import SECOND
from rota.errors import ConfigError, NotSupported
from rota.ids import new_id
from rota.model import Ask, WorkerRow
from rota.testing import (
    Clock,
    adrain_through,
    assert_enqueued,
    assert_not_enqueued,
    assert_nothing_enqueued,
    drain_through,
    emptied,
    enqueued,
    fresh_store,
)
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


def test_the_options_of_the_apps_own_store_are_left_aside(tmp_path: Path) -> None:
    app = Rota("postgresql://nobody@/none?host=/nowhere", schema="jobs")
    own = app.holding
    with fresh_store(app, f"sqlite:///{tmp_path / 'fresh.db'}"):
        connection = sqlite3.connect(tmp_path / "fresh.db")
        app.named("elsewhere").using(connection=connection).enqueue()  # which looks for itself whether it can be opened
        connection.commit()
        connection.close()
        assert len(enqueued(app)) == 1
    assert app.holding is own


def test_a_store_with_jobs_is_refused(shop: Shop, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    with fresh_store(shop.app, url):
        shop.send_receipt.enqueue(42)
    with pytest.raises(ConfigError, match="has jobs already"), fresh_store(shop.app, url):
        pass
    assert shop.app.url == "memory://"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda shop: fresh_store("memory://"), r"fresh_store\('memory://'\): pass the app"),
        (lambda shop: fresh_store(None), "pass the app"),
        (lambda shop: fresh_store(shop.app, None), "url=None: pass the URL of an empty store"),
        (lambda shop: fresh_store(shop.app, clock=START), r"clock=datetime.*: pass a rota\.testing\.Clock"),
    ],
)
def test_what_is_no_app_no_url_and_no_clock_is_refused_in_words(shop: Shop, given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said), given(shop):
        pass


def test_a_store_can_be_emptied_whatever_a_test_left_there(shared_url: str) -> None:
    app = Rota(shared_url)

    @app.task(name="rare", rate="1/h")
    def rare() -> None: ...

    with app:
        rare.enqueue_many([()] * 3)
        app.drain()
        app.send("shop.unknown")
        app.pause("mail")
        app.set_limit("rate of rare", "2/h")
        app.store.join(WorkerRow(worker := new_id(), "lost", "", 0, None, [], concurrency=1, lease=60 * SECOND, version=""))
        app.store.claim(Ask(worker, ("default",), 1))
        assert {job.status for job in app.jobs()} >= {"held", "succeeded", "running"}
    with fresh_store(app, emptied(shared_url)):
        assert_nothing_enqueued(app)
        assert (app.workers(), app.store.pauses(), app.store.overrides(), app.store.rooms()) == ([], [], {}, [])
        rare.enqueue()
        assert [str(event) for event in app.drain()] == ["ran rare"]


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


def test_jobs_that_the_app_deletes_as_they_finish_stay_meanwhile(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path / 'jobs.db'}", keep_succeeded=0)
    task = app.task(name="count")(lambda: None)
    with fresh_store(app):
        task.enqueue()
        app.drain()
        assert_enqueued(task)
        with pytest.raises(AssertionError):
            assert_not_enqueued(task)
    for check in (lambda: assert_not_enqueued(task), lambda: assert_nothing_enqueued(app), lambda: enqueued(app)):
        with pytest.raises(NotSupported, match=r"\(keep_succeeded=0\).*fresh_store\(app\)"):
            check()
    task.enqueue()
    assert_enqueued(task)
    app.drain()
    assert app.jobs() == []
    app.close()


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


def test_a_stretch_of_time_stops_where_limits_have_room_and_pauses_end(shop_anywhere: Shop) -> None:
    clock, app, moments = Clock(START), shop_anywhere.app, []

    def note(what: str) -> None:
        moments.append((what, (clock.now - START).total_seconds()))

    @app.task(name="spaced", rate="6/m")
    def spaced() -> None:
        note("spaced")

    @app.task(name="keyed", rate=Limit("1/m", key=lambda tenant: tenant))
    def keyed(tenant: str) -> None:
        note(tenant)

    @app.task(name="partner", concurrency=Limit(1, name="partner"))
    def partner() -> None:
        note("partner")
        if len(moments) < 5:
            raise Retry(after=45, limit=True)

    @app.task(name="paused", queue="slow")
    def paused() -> None:
        note("paused")

    app.clock = clock
    partner.enqueue_many([()] * 2)
    spaced.enqueue_many([()] * 2)
    keyed.enqueue_many([("a",), ("a",), ("b",)])
    app.pause("slow", 90)
    app.pause("mail")
    paused.enqueue()
    shop_anywhere.send_receipt.enqueue(1)
    drain_through(app, minutes=10)
    early = [("partner", 0), ("spaced", 0), ("a", 0), ("b", 0), ("spaced", 10)]
    assert moments == [*early, ("partner", 45), ("partner", 45), ("a", 60), ("paused", 90)]
    assert clock.now == START + timedelta(minutes=10)
    assert [job.task for job in app.jobs(status=["scheduled", "queued", "held"])] == ["shop.send_receipt"]


def test_a_stretch_of_time_stops_where_the_lease_of_a_lost_worker_runs_out(shop: Shop) -> None:
    clock = Clock(START)
    with fresh_store(shop.app, clock=clock) as app:
        shop.send_receipt.enqueue(1)
        app.store.join(WorkerRow(worker := new_id(), "lost", "", 0, None, [], 1, 60 * SECOND, ""), app.now())
        [claimed] = app.store.claim(Ask(worker, ("mail",), 1), app.now())
        [event] = drain_through(app, minutes=10)
        job = app.get(claimed.id)
        assert (event.attempt, job.finished_at) == (2, START + timedelta(seconds=60))


def test_a_stretch_of_time_ends_when_jobs_of_other_queues_wait(shop: Shop) -> None:
    @shop.app.task(name="spaced", rate="1/m")
    def spaced() -> None: ...

    with fresh_store(shop.app, clock=Clock(START)) as app:
        spaced.using(queue="other").enqueue_many([()] * 3)
        spaced.using(queue="other", delay=30).enqueue()
        assert drain_through(app, hours=1, queues=["mail"]) == []
        assert len(drain_through(app, hours=1)) == 4


def test_coroutines_work_through_a_stretch_of_time_beside_their_loop(shop: Shop) -> None:
    @shop.app.task(name="nap")
    async def nap() -> None:
        await asyncio.sleep(0)

    async def check() -> list[str]:
        await nap.using(delay=60).aenqueue()
        return [str(event) for event in await adrain_through(shop.app, minutes=1)]

    with fresh_store(shop.app, clock=Clock(START)):
        assert asyncio.run(check()) == ["ran nap"]


def test_only_a_clock_that_can_be_moved_is(shop: Shop) -> None:
    with pytest.raises(ConfigError, match=r"rota\.testing\.Clock"):
        drain_through(shop.app, 1)
    shop.app.clock = Clock(START)
    with pytest.raises(ConfigError, match="goes forward in time"):
        drain_through(shop.app, -1)
    with pytest.raises(NotSupported, match=r"fresh_store\(app\)"):
        drain_through(Rota(eager=True), 1)


@pytest.mark.parametrize(
    ("span", "units", "said"),
    [
        (0.0, {"months": 1}, r"\(months=1\) is no span of time: pass seconds, a timedelta, or weeks"),
        ("5", {}, r"\('5'\) is no span of time"),
        (float("nan"), {}, r"\(nan\) is no span of time"),
        (0.0, {"days": 1e12}, r"\(days=1000000000000\.0\) is longer than Python can count"),
        (timedelta(days=3_000_000), {}, "from 2030-01-01T00:00:00.00:00 lies outside of the years 1 to 9999"),
    ],
)
def test_a_span_that_is_none_is_refused_in_words(shop: Shop, span: Any, units: dict[str, float], said: str) -> None:
    shop.app.clock = clock = Clock(START)
    with pytest.raises(ConfigError, match=said):
        clock.move(span, **units)
    with pytest.raises(ConfigError, match=said):
        drain_through(shop.app, span, **units)
    assert clock.now == START
