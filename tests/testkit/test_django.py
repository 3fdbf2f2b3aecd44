"""The tests of those who use Django: `TestCase` rolls back the transaction that each runs in, `TransactionTestCase` commits."""

from __future__ import annotations

import sqlite3
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.db import connections, transaction
from django.test import TestCase, TransactionTestCase

from rota.testing import assert_enqueued, assert_not_enqueued, assert_nothing_enqueued, emptied, enqueued, fresh_store
from testkit.conftest import Shop
from within.drivers import Undone, django_alias


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    """Django's, to a SQLite file with a table of its own."""
    with sqlite3.connect(tmp_path / "django.db") as own:
        own.execute("create table orders (item text)")
    own.close()
    with django_alias(f"sqlite:///{tmp_path / 'django.db'}") as connection:
        yield connection
        if hasattr(connections._connections, "default"):
            del connections["default"]  # Django's test cases look at every connection, which makes this one


def run(case: type[unittest.TestCase]) -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert [told for _, told in (*result.errors, *result.failures)] == []
    assert result.testsRun > 0


def order(connection: Any, item: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("insert into orders values (%s)", [item])


def ordered(connection: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("select item from orders order by rowid")
        return [item for (item,) in cursor.fetchall()]


def test_a_store_in_memory_goes_with_a_test_case_that_has_its_database_locked(shop: Shop, connection: Any) -> None:
    task = shop.send_receipt.using(connection=connection)

    @shop.app.task(name="shop.note")
    def note() -> None:
        order(connection, "by a job")

    class Orders(TestCase):
        databases: ClassVar = {"shop"}

        @classmethod
        def setUpTestData(cls) -> None:
            order(connection, "before")  # from here on nobody else can write

        def setUp(self) -> None:
            self.enterContext(fresh_store(shop.app))

        def test_what_waits_for_a_commit_is_seen_on_its_connection(self) -> None:
            task.using(delay=60).enqueue(42)
            job = assert_enqueued(task.using(delay=60), 42)
            assert job.row.state == "scheduled"
            assert_not_enqueued(task, 43)
            assert enqueued(shop.app, task=task) == [job]
            with shop.app.within(connection):
                assert enqueued(shop.app, status="scheduled") == [job]
                with pytest.raises(AssertionError, match="nothing was to be enqueued, and 1 job was"):
                    assert_nothing_enqueued(shop.app)
            assert enqueued(shop.app) == []

        def test_what_waits_for_a_commit_is_told_of_where_nobody_looks_at_the_connection(self) -> None:
            task.enqueue(42)
            assert_not_enqueued(shop.send_receipt, 43)
            for check in (
                lambda: assert_enqueued(shop.send_receipt, 42),
                lambda: assert_not_enqueued(shop.send_receipt, 42),
                lambda: assert_nothing_enqueued(shop.app),
            ):
                with pytest.raises(AssertionError, match="one job that the store gets once an open transaction of Django's"):
                    check()
            with pytest.raises(AssertionError) as error:
                assert_enqueued(shop.send_receipt, 43)
            assert "Django" not in str(error.value)

        def test_what_was_rolled_back_never_was(self) -> None:
            with pytest.raises(Undone), transaction.atomic("shop"):
                task.enqueue(42)
                raise Undone
            assert_nothing_enqueued(shop.app)
            assert_not_enqueued(task, 42)

        def test_its_commit_can_be_acted_out_and_the_jobs_be_run(self) -> None:
            with self.captureOnCommitCallbacks(using="shop", execute=True):
                note.using(connection=connection).enqueue()
            assert enqueued(shop.app) == enqueued(shop.app, task=note.using(connection=connection))
            assert [str(event) for event in shop.app.drain()] == ["ran shop.note"]
            assert ordered(connection) == ["before", "by a job"]

    run(Orders)
    assert ordered(connection) == []


def test_a_store_in_the_tests_own_database_goes_with_a_test_case_that_commits(
    shop: Shop, connection: Any, tmp_path: Path
) -> None:
    class Orders(TransactionTestCase):
        databases: ClassVar = {"shop"}

        def setUp(self) -> None:
            self.enterContext(fresh_store(shop.app, emptied(f"sqlite:///{tmp_path / 'django.db'}")))

        def test_one(self) -> None:
            assert_nothing_enqueued(shop.app)
            shop.close_order.using(connection=connection).enqueue(1)
            assert len(shop.app.drain()) == 2

        def test_another(self) -> None:
            self.test_one()

    run(Orders)
