"""Enqueueing many jobs at once: all or none, in bounded memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from rota import ArgumentsError, NotSupported, PayloadTooLarge, Rota

MANY = 100_000


def counting(app: Rota) -> Any:
    @app.task(name="count", keep_result=True)
    def count(number: int) -> int:
        return number

    return count


def test_a_hundred_thousand_jobs_come_from_a_generator(app: Rota) -> None:
    jobs = counting(app).enqueue_many((number,) for number in range(MANY))
    assert len({job.id for job in jobs}) == MANY
    assert [count.jobs for count in app.stats().counts] == [MANY]
    assert app.get(jobs[-1].id).row.args == f'{{"number":{MANY - 1}}}'


def test_the_answers_come_in_the_order_of_the_calls(app: Rota) -> None:
    jobs = counting(app).enqueue_many([(number,) for number in range(5_000)])
    found = {row.id: row.args for row in app.store.get([job.id for job in jobs])}
    assert [found[job.id] for job in jobs] == [f'{{"number":{number}}}' for number in range(5_000)]


@pytest.mark.parametrize("named", [False, True], ids=["declared", "named"])
def test_coroutines_enqueue_many_too(app: Rota, named: bool) -> None:
    task = app.named("count") if named else counting(app)
    jobs = asyncio.run(task.using(queue="bulk").aenqueue_many((number,) for number in range(3_000)))
    assert [(count.queue, count.jobs) for count in app.stats().counts] == [("bulk", len(jobs))] == [("bulk", 3_000)]


def test_one_call_that_does_not_fit_keeps_all_from_being_stored(app: Rota) -> None:
    task = counting(app)
    for wrong in (0, 1_999, 2_000, 4_321):
        calls = (("x" if number == wrong else number,) for number in range(5_000))
        with pytest.raises(ArgumentsError, match=rf"^call {wrong + 1}: .*number: expected `int`, got `str`"):
            task.enqueue_many(calls)
        assert app.jobs() == []
    assert app.send("count", 1).status == "queued"


def test_an_error_of_the_generators_own_keeps_all_from_being_stored(app: Rota) -> None:
    def calls() -> Iterator[tuple[int]]:
        for number in range(3_000):
            yield (number,)
        raise OSError("the file ended early")

    for task in (counting(app), app.named("elsewhere")):
        with pytest.raises(OSError, match="the file ended early"):
            task.enqueue_many(calls())
    assert app.jobs() == []


def test_one_payload_over_the_limit_is_named_by_its_call(store_url: str) -> None:
    with Rota(store_url, max_payload=50) as app:
        with pytest.raises(PayloadTooLarge, match=r"^call 2: "):
            app.named("t").enqueue_many([("short",), ("long" * 20,)])
        assert app.jobs() == []


def test_a_call_is_a_tuple_of_arguments(app: Rota) -> None:
    calls: list[Any] = ["ab", b"ab", 7, {"number": 1}, None, {1, 2}]
    for task in (counting(app), app.named("elsewhere")):
        for call in calls:
            with pytest.raises(ArgumentsError, match=r"^call 2 is .*: pass a tuple of arguments for each call"):
                task.enqueue_many([(1,), call])
    assert app.jobs() == []


def test_nothing_to_enqueue_is_no_error(app: Rota) -> None:
    assert counting(app).enqueue_many([]) == []
    assert asyncio.run(app.named("t").aenqueue_many(iter(()))) == []


def test_what_the_generator_looks_up_meanwhile_is_answered(app: Rota) -> None:
    first = app.send("first")
    jobs = app.named("t").enqueue_many((app.get(first.id).task if number % 100 == 99 else "",) for number in range(5_000))
    assert jobs[-1].row.args == '{"*":["first"]}'


@pytest.mark.parametrize("number", [1, 3_000])
def test_a_generator_that_changes_jobs_itself_is_refused_and_does_not_lock_up(app: Rota, number: int) -> None:
    other = app.send("other")
    for change in (lambda: app.send("other").id, lambda: app.cancel(other.id)):
        with pytest.raises(NotSupported, match=r"changes jobs itself, inside the transaction that it feeds: pass a list"):
            app.named("t").enqueue_many((str(change()),) for _ in range(number))
    assert [job.id for job in app.jobs()] == [other.id]


def test_jobs_with_one_key_become_one(app: Rota) -> None:
    jobs = counting(app).using(key="k").enqueue_many([(number,) for number in range(100)])
    assert {job.id for job in jobs} == {jobs[0].id}
    assert [job.existed for job in jobs] == [False] + [True] * 99


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_memory_does_not_grow_with_the_payloads(store_url: str) -> None:
    with Rota(store_url) as app:
        app.send("warm up")
        tracemalloc.start()
        try:
            jobs = app.named("t").enqueue_many(("x" * 10_000,) for _ in range(5_000))  # 50 MB in all
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(jobs) == 5_000
        assert peak < 40_000_000
