"""Assertions about what was enqueued find it, and otherwise say what is there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import aiosqlite
import psycopg
import pytest

from fresh import fresh_url
from rota import Rota
from rota.errors import ArgumentsError, ConfigError
from rota.testing import (
    aassert_enqueued,
    aassert_not_enqueued,
    assert_enqueued,
    assert_not_enqueued,
    assert_nothing_enqueued,
    enqueued,
)
from testkit.conftest import Shop


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


def test_jobs_are_listed_by_what_is_asked(shop: Shop) -> None:
    jobs = shop.send_receipt.enqueue_many([(1,), (2, "de"), (3, "de")])
    other = shop.close_order.enqueue(2)
    assert enqueued(shop.app, task=shop.send_receipt, args={"lang": "de"}) == jobs[1:]
    assert enqueued(shop.app, args={"order_id": 2}) == [jobs[1], other]
    assert enqueued(shop.app, queue="default") == [other]
    assert enqueued(shop.app, task="shop.close_order") == [other]


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
            with pytest.raises(ConfigError, match="await"):
                assert_enqueued(within, 42)
            await connection.rollback()

    asyncio.run(check())
    assert_nothing_enqueued(shop.app)
    shop.app.close()


def test_an_eager_app_says_that_it_keeps_no_jobs() -> None:
    app = Rota(eager=True)
    with pytest.raises(Exception, match="eager mode has no store"):
        assert_nothing_enqueued(app)
