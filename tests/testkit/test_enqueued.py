"""Assertions about what was enqueued find it, and otherwise say what is there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest

from fresh import fresh_url
from rota import Rota
from rota.errors import ArgumentsError, ConfigError, NotSupported
from rota.testing import (
    Clock,
    aassert_enqueued,
    aassert_not_enqueued,
    aassert_nothing_enqueued,
    aenqueued,
    assert_enqueued,
    assert_not_enqueued,
    assert_nothing_enqueued,
    drain_through,
    enqueued,
)
from rota.testing.expected import Target
from testkit.conftest import Shop


@dataclass(eq=False)
class Item:
    sku: str
    number: int = 1


def said(error: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    return str(error.value).splitlines()


# -- what is found ------------------------------------------------------------------------------


def test_a_job_is_found_by_its_arguments_however_they_were_given(shop_anywhere: Shop) -> None:
    job = shop_anywhere.send_receipt.enqueue(order_id=42)
    assert assert_enqueued(shop_anywhere.send_receipt, 42) == job
    assert assert_enqueued(shop_anywhere.send_receipt, 42, "en") == job
    assert assert_enqueued(shop_anywhere.send_receipt, lang="en", order_id=42) == job
    assert assert_enqueued(shop_anywhere.send_receipt) == job
    assert assert_enqueued(shop_anywhere.app.named("shop.send_receipt"), 42) == job
    assert_not_enqueued(shop_anywhere.send_receipt, 43)
    assert_not_enqueued(shop_anywhere.send_receipt, 42, "de")
    assert_not_enqueued(shop_anywhere.close_order)


def test_a_job_that_has_run_was_enqueued(shop_anywhere: Shop) -> None:
    shop_anywhere.close_order.enqueue(7)
    shop_anywhere.app.drain()
    assert_enqueued(shop_anywhere.close_order, 7)
    assert_enqueued(shop_anywhere.send_receipt, 7)
    assert [job.task for job in enqueued(shop_anywhere.app, status="queued")] == []
    assert [job.task for job in enqueued(shop_anywhere.app)] == ["shop.close_order", "shop.send_receipt"]


def test_options_count_where_they_are_given(shop: Shop) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)
    shop.send_receipt.using(queue="slow", priority=3, key="k", max_attempts=2, delay=60).enqueue(1)
    shop.send_receipt.using(run_at=moment).enqueue(2)
    assert_enqueued(shop.send_receipt, 1)
    assert_enqueued(shop.send_receipt.using(queue="slow", priority=3, key="k", max_attempts=2, delay=60), 1)
    assert_enqueued(shop.send_receipt.using(run_at=moment), 2)
    assert_enqueued(shop.app.named("shop.send_receipt").using(queue="slow"), 1)
    # What the declaration says counts too, once it is said.
    assert_not_enqueued(shop.send_receipt.using(queue="mail"), 1)
    assert_not_enqueued(shop.send_receipt.using(delay=61), 1)
    assert_not_enqueued(shop.send_receipt.using(delay=0), 1)
    assert_not_enqueued(shop.send_receipt.using(priority=0), 1)


def test_of_a_delay_and_a_moment_the_later_one_counts(shop: Shop) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)
    named = shop.app.named("shop.send_receipt")
    job = shop.send_receipt.using(delay=60).using(run_at=moment).enqueue(1)
    for task in (shop.send_receipt, named):
        assert assert_enqueued(task.using(delay=60).using(run_at=moment), 1) == job
        assert_not_enqueued(task.using(run_at=moment).using(delay=60), 1)
    job = shop.send_receipt.using(run_at=moment).using(delay=60).enqueue(2)
    for task in (shop.send_receipt, named):
        assert assert_enqueued(task.using(run_at=moment).using(delay=60), 2) == job


def test_until_when_a_key_counts_is_an_option_like_others(shop_anywhere: Shop) -> None:
    task = shop_anywhere.send_receipt
    task.using(key="a", key_until="started").enqueue(1)
    task.using(key="b").enqueue(2)
    for _ in range(2):
        assert_enqueued(task.using(key_until="started"), 1)
        assert_not_enqueued(task.using(key_until="finished"), 1)
        assert_enqueued(task.using(key_until="finished", key="b"), 2)
        with pytest.raises(AssertionError, match="key_until: 'finished', expected 'started'"):
            assert_enqueued(task.using(key_until="started"), 2)
        shop_anywhere.app.drain()


# -- what is no longer known --------------------------------------------------------------------


@pytest.fixture
def clock(shop_anywhere: Shop) -> Clock:
    shop_anywhere.app.clock = Clock()
    return shop_anywhere.app.clock


def in_doubt(task: Target, option: str) -> None:
    """No assertion about this option of the task's one job passes, and none has it differ."""
    for check in (assert_enqueued, assert_not_enqueued):
        with pytest.raises(AssertionError, match=f"{option}: no longer known"):
            check(task)


def test_what_ran_once_still_tells_when_it_was_to_be_due(shop_anywhere: Shop, clock: Clock) -> None:
    task = shop_anywhere.send_receipt
    task.using(delay=60).enqueue(1)
    clock.move(minutes=2)
    shop_anywhere.app.drain()
    assert_enqueued(task.using(delay=60))
    assert_not_enqueued(task.using(delay=61))


@pytest.mark.parametrize("since", ["waits", "cancelled", "failed", "retried"])
def test_what_was_put_back_does_not_tell_any_more_when_it_was_to_be_due(shop_anywhere: Shop, clock: Clock, since: str) -> None:
    app = shop_anywhere.app

    @app.task(name="flaky", max_attempts=1 if since == "retried" else 2)
    def flaky() -> None:
        raise ConnectionError

    job = flaky.using(delay=60).enqueue()
    clock.move(minutes=1)
    app.run_one()
    match since:
        case "cancelled":
            job.cancel()
        case "failed":
            drain_through(app, hours=1)
        case "retried":
            job.retry()
    in_doubt(flaky.using(delay=60), "delay")
    in_doubt(flaky.using(delay=61), "delay")
    in_doubt(flaky.using(run_at=clock.now), "run_at")
    assert_not_enqueued(flaky.using(delay=60, queue="other"))  # which is known
    with pytest.raises(NotSupported, match="look before it runs, or leave out delay"):
        enqueued(app, task=flaky.using(delay=60))
    assert enqueued(app, task=flaky.using(delay=60, queue="other")) == []


def test_a_key_that_counted_until_the_start_is_no_longer_known(shop_anywhere: Shop) -> None:
    task = shop_anywhere.send_receipt
    task.using(key="a", key_until="started").enqueue(1)
    assert_not_enqueued(task.using(key="b"))
    shop_anywhere.app.drain()
    in_doubt(task.using(key="a"), "key")
    in_doubt(task.using(key="b"), "key")
    task.enqueue(2)
    assert_not_enqueued(task.using(key="b"), 2)


# -- what is listed -----------------------------------------------------------------------------


def test_jobs_are_listed_by_what_is_asked(shop: Shop) -> None:
    jobs = shop.send_receipt.enqueue_many([(1,), (2, "de"), (3, "de")])
    other = shop.close_order.enqueue(2)
    assert enqueued(shop.app, task=shop.send_receipt, args={"lang": "de"}) == jobs[1:]
    assert enqueued(shop.app, args={"order_id": 2}) == [jobs[1], other]
    assert enqueued(shop.app, queue="default") == [other]
    assert enqueued(shop.app, task="shop.close_order") == [other]


def test_jobs_are_listed_by_the_options_of_the_task(shop: Shop) -> None:
    jobs = [shop.send_receipt.enqueue(1), shop.send_receipt.using(queue="slow", delay=60).enqueue(1)]
    assert enqueued(shop.app, task=shop.send_receipt) == jobs
    assert enqueued(shop.app, task=shop.send_receipt.using(queue="slow")) == jobs[1:]
    assert enqueued(shop.app, task=shop.app.named("shop.send_receipt").using(delay=60), args={"order_id": 1}) == jobs[1:]
    assert enqueued(shop.app, task=shop.send_receipt.using(queue="slow", delay=0)) == []


@pytest.mark.parametrize(
    ("named", "args", "said"),
    [
        (
            "shop.send_receipt",
            {"oder_id": 1},
            "has no parameter 'oder_id': its parameters are order_id, lang",
        ),
        ("shop.send_receipt", {"order_id": "one"}, "shop.send_receipt takes no order_id='one': Expected `int`, got `str`"),
        (None, {"oder_id": 1}, "no task of this app has a parameter 'oder_id'"),
        (None, [1], "args=[1]: pass arguments by name"),
    ],
)
def test_arguments_that_no_job_can_have_are_refused(shop: Shop, named: str | None, args: Any, said: str) -> None:
    shop.send_receipt.enqueue(1)
    with pytest.raises(ArgumentsError, match=re.escape(said)):
        enqueued(shop.app, task=named, args=args)


def test_arguments_by_other_names_are_found_where_jobs_have_them(shop: Shop) -> None:
    @shop.app.task(name="tagged")
    def tagged(number: int, **tags: str) -> None: ...

    job, sent = tagged.enqueue(1, colour="red"), shop.app.send("elsewhere", size=2)
    assert enqueued(shop.app, task=tagged, args={"colour": "red"}) == [job]
    assert enqueued(shop.app, task=tagged, args={"colour": "blue"}) == []
    assert enqueued(shop.app, args={"size": 2}) == [sent]


def test_a_task_of_another_app_is_refused_rather_than_never_found(shop: Shop) -> None:
    other = Rota("memory://")
    with pytest.raises(ConfigError, match=r"shop\.send_receipt is a task of another app"):
        enqueued(other, task=shop.send_receipt)
    for check in (enqueued, assert_nothing_enqueued):
        with pytest.raises(ConfigError, match=r"<Task shop\.send_receipt> is no app: pass the Rota"):
            check(shop.send_receipt)


def test_arguments_whose_classes_know_no_equality_are_compared_by_what_is_stored(shop: Shop) -> None:
    @shop.app.task(name="pack")
    def pack(items: list[Item], first: Item = Item("box")) -> None: ...  # noqa: B008

    job = pack.enqueue([Item("a")])
    assert assert_enqueued(pack, [Item("a")]) == job
    assert enqueued(shop.app, task=pack, args={"items": [Item("a")]}) == [job]
    assert_not_enqueued(pack, [Item("a", 2)])
    assert_not_enqueued(pack, [Item("a")], Item("bag"))


def test_a_task_whose_code_is_elsewhere_is_told_by_position(shop: Shop) -> None:
    job = shop.app.send("elsewhere.count", 1, 2, by="day")
    assert assert_enqueued(shop.app.named("elsewhere.count"), 1, 2, by="day") == job
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.app.named("elsewhere.count"), 1, 3, by="day")
    assert "argument 2: 2, expected 3" in str(error.value)


def test_what_no_job_could_be_is_refused(shop: Shop) -> None:
    with pytest.raises(ArgumentsError, match="order_id"):
        assert_not_enqueued(shop.send_receipt, "forty-two")
    with pytest.raises(ConfigError, match="is no task"):
        assert_enqueued(print)  # type: ignore[arg-type]


# -- what a failure says ------------------------------------------------------------------------


def test_a_failure_shows_in_what_the_jobs_differ(shop: Shop) -> None:
    shop.send_receipt.enqueue(41)
    shop.send_receipt.using(queue="slow").enqueue(42, "de")
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.send_receipt.using(queue="mail"), 42)
    assert said(error) == [
        "no such job was enqueued: shop.send_receipt(order_id=42, lang='en') with queue='mail'",
        "of this task there are 2 jobs:",
        "  shop.send_receipt(order_id=41, lang='en') on queue 'mail', queued",
        "      order_id: 41, expected 42",
        "  shop.send_receipt(order_id=42, lang='de') on queue 'slow', queued",
        "      lang: 'de', expected 'en'",
        "      queue: 'slow', expected 'mail'",
    ]


def test_a_failure_shows_the_lines_of_long_arguments_that_differ(shop: Shop) -> None:
    shop.index.enqueue({"words": list(range(40)), "pages": [1]})
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.index, {"words": list(range(40)), "pages": [2]})
    lines = said(error)
    assert "      document, expected (-) and there (+):" in lines
    assert "        - {'pages': [2]," in lines
    assert "        + {'pages': [1]," in lines


def test_a_failure_shows_where_long_texts_differ(shop: Shop) -> None:
    @shop.app.task(name="write")
    def write(text: str, note: str = "") -> None: ...

    write.enqueue(f"{'x' * 500}y{'z' * 500}", "n" * 500)
    with pytest.raises(AssertionError) as error:
        assert_enqueued(write, f"{'x' * 500}w{'z' * 500}")
    [expected] = [line for line in said(error) if line.startswith("        - ")]
    [found] = [line for line in said(error) if line.startswith("        + ")]
    assert ("w" in expected, found) == (True, expected.replace("-", "+").replace("w", "y"))
    assert f"      note: '{'n' * 58}…, expected ''" in said(error)


def test_of_many_jobs_the_nearest_alone_show_how_long_arguments_differ(shop: Shop) -> None:
    words = list(range(400))
    shop.index.enqueue_many([({"words": words, "year": [number]},) for number in range(1_000)])
    nearest = shop.index.using(queue="default").enqueue({"words": words, "year": [1_000]})
    nearest.edit(queue="other")
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.index.using(queue="other"), {"words": words, "year": [-1]})
    lines = said(error)
    assert lines[1] == "of this task there are 1001 jobs:"
    assert lines[2].endswith("on queue 'other', queued")
    assert [line for line in lines if "'year'" in line] == [
        line for page in (1_000, 0, 1) for line in ("        -  'year': [-1]}", f"        +  'year': [{page}]}}")
    ]
    assert sum("document: other than {" in line for line in lines) == 7


def test_a_failure_without_such_a_task_shows_the_others(shop: Shop) -> None:
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.send_receipt, 42)
    assert said(error)[1:] == ["nothing was enqueued at all"]
    shop.close_order.enqueue(42)
    with pytest.raises(AssertionError) as error:
        assert_enqueued(shop.send_receipt)
    assert said(error) == [
        "no such job was enqueued: shop.send_receipt(…)",
        "of this task there is none, but:",
        "  shop.close_order(order_id=42) on queue 'default', queued",
    ]


def test_a_failure_shows_what_was_not_to_be(shop: Shop) -> None:
    shop.send_receipt.enqueue_many([(number,) for number in range(12)])
    with pytest.raises(AssertionError) as error:
        assert_not_enqueued(shop.send_receipt, 3)
    assert said(error)[1:] == ["there is one job:", "  shop.send_receipt(order_id=3, lang='en') on queue 'mail', queued"]
    with pytest.raises(AssertionError) as error:
        assert_nothing_enqueued(shop.app)
    lines = said(error)
    assert (lines[0], len(lines), lines[-1]) == ("nothing was to be enqueued, and 12 jobs were:", 12, "  … and 2 more")


def test_one_job_that_was_not_to_be_is_told_of_as_one(shop: Shop) -> None:
    shop.send_receipt.enqueue(1)
    with pytest.raises(AssertionError) as error:
        assert_nothing_enqueued(shop.app)
    assert said(error)[0] == "nothing was to be enqueued, and 1 job was:"


# -- in transactions ----------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Shop, sqlite3.Connection | psycopg.Connection]]:
    """A shop, and a connection of the test's own to its store's database."""
    with fresh_url(request.param, request, tmp_path) as url:
        shop = Shop(url)
        shop.app.migrate()
        connection = sqlite3.connect(tmp_path / "jobs.db") if request.param == "sqlite" else psycopg.connect(_plain(url))
        yield shop, connection
        connection.close()
        shop.app.close()


def _plain(url: str) -> str:
    """The URL without what is Rota's own."""
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "schema"])))


def test_a_job_of_an_open_transaction_is_seen_on_its_connection_alone(
    own: tuple[Shop, sqlite3.Connection | psycopg.Connection],
) -> None:
    shop, connection = own
    within = shop.send_receipt.using(connection=connection)
    within.enqueue(42)
    assert_enqueued(within, 42)
    with shop.app.within(connection):
        job = assert_enqueued(shop.send_receipt, 42)
        assert enqueued(shop.app, task=shop.send_receipt, status="queued") == [job]
        assert enqueued(shop.app, status="failed") == []
        with pytest.raises(AssertionError, match="nothing was to be enqueued, and 1 job was"):
            assert_nothing_enqueued(shop.app)
    assert_not_enqueued(shop.send_receipt, 42)
    connection.rollback()
    assert_not_enqueued(within, 42)
    assert_nothing_enqueued(shop.app)
    within.enqueue(43)
    connection.commit()
    assert_enqueued(shop.send_receipt, 43)


def test_connections_that_are_awaited_see_theirs(tmp_path: Path) -> None:
    shop = Shop(f"sqlite:///{tmp_path / 'jobs.db'}")
    shop.app.migrate()

    async def check() -> None:
        async with aiosqlite.connect(tmp_path / "jobs.db") as connection:
            within = shop.send_receipt.using(connection=connection)
            await within.aenqueue(42)
            await aassert_enqueued(within, 42)
            await aassert_not_enqueued(shop.send_receipt, 42)
            await aassert_nothing_enqueued(shop.app)
            async with shop.app.within(connection):
                assert await aenqueued(shop.app) == await aenqueued(shop.app, task=within) != []
                with pytest.raises(AssertionError, match="nothing was to be enqueued, and 1 job was"):
                    await aassert_nothing_enqueued(shop.app)
            with pytest.raises(ConfigError, match="await"):
                assert_enqueued(within, 42)
            await connection.rollback()

    asyncio.run(check())
    assert_nothing_enqueued(shop.app)
    shop.app.close()


def test_an_eager_app_says_that_it_keeps_no_jobs() -> None:
    app = Rota(eager=True)
    with pytest.raises(NotSupported, match=r"eager mode has no store.*fresh_store\(app\)"):
        assert_nothing_enqueued(app)
