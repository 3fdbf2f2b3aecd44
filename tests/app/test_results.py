"""Waiting for a job and reading what it returned."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from rota import ConfigError, JobFailed, JobNotFound, ResultError, ResultNotKept, Rota, WaitTimeout


@dataclass
class Receipt:
    number: int
    at: datetime
    lines: list[tuple[str, Decimal]]


class Colour(Enum):
    RED = "red"


RECEIPT = Receipt(7, datetime(2030, 1, 1, tzinfo=UTC), [("tea", Decimal("1.10"))])
RESULTS: list[tuple[Any, Any]] = [
    (None, None),
    (int, 2**60),
    (float, -0.5),
    (str, "tea \0 'n\" 🎉"),
    (bool, False),
    (bytes, b"\0\xff"),
    (datetime, datetime(2030, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)),
    (date, date(2030, 1, 1)),
    (timedelta, timedelta(days=1, microseconds=5)),
    (UUID, UUID(int=5)),
    (Decimal, Decimal("1.00")),
    (Colour, Colour.RED),
    (Receipt, RECEIPT),
    (list[Receipt], [RECEIPT, RECEIPT]),
    (dict[int, set[str]], {1: {"a", "b"}}),
    (tuple[int, ...], (1, 2, 3)),
    (Any, {"a": [1, None, {"b": "c"}]}),
]


def returning(app: Rota, value: Any, kind: Any = Any, **options: Any) -> Any:
    """A job, finished, of a task that returned this value."""

    def body():
        return value

    body.__annotations__["return"] = kind
    job = app.task(name="body", **{"keep_result": True, **options})(body).enqueue()
    app.drain()
    return job


def test_a_result_comes_back_as_it_was(app: Rota) -> None:
    for kind, value in RESULTS:
        result = returning(app, value, kind).result()
        assert (result, type(result)) == (value, type(value))
        assert asyncio.run(app.jobs()[0].aresult()) == value
        app.tasks.clear()


def test_a_result_is_plain_data_where_the_tasks_code_is_not(app: Rota) -> None:
    job = returning(app, RECEIPT, Receipt)
    app.tasks.clear()
    assert job.result() == {"number": 7, "at": "2030-01-01T00:00:00Z", "lines": [["tea", "1.10"]]}


def test_a_result_that_no_longer_fits_its_annotation_is_told(app: Rota) -> None:
    job = returning(app, "seven", str)
    app.tasks.clear()

    def body() -> int: ...  # type: ignore[empty-body]

    app.task(name="body")(body)
    with pytest.raises(ResultError, match=r"^the result of body cannot be read: .*int"):
        job.result()


def test_a_result_that_was_not_asked_for_is_not_kept(app: Rota) -> None:
    with pytest.raises(ResultNotKept, match=r"^no result of body is kept: declare it with @app.task\(keep_result=True\)"):
        returning(app, 5, keep_result=False).result()


def test_a_result_that_cannot_be_stored_does_not_undo_the_work(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    job = returning(app, threading.Lock())
    with pytest.raises(ResultNotKept, match="see the worker's log if it was and the value could not be stored"):
        job.result()
    assert job.status == "succeeded"
    assert "the result of body" in caplog.text


def test_a_job_that_failed_has_its_reason_for_a_result(app: Rota) -> None:
    @app.task(name="broken", max_attempts=1)
    def broken() -> None:
        raise OSError("no paper")

    job = broken.enqueue()
    app.drain()
    with pytest.raises(JobFailed, match=r"^broken failed on attempt 1: no paper$"):
        job.result()


def test_a_job_that_was_cancelled_has_no_result(app: Rota) -> None:
    job = app.send("t")
    job.cancel()
    with pytest.raises(JobFailed, match=r"^t cancelled: cancelled$"):
        job.result()


def test_a_job_that_is_not_finished_has_no_result_yet(app: Rota) -> None:
    job = app.send("t")
    with pytest.raises(WaitTimeout, match=rf"^job {job.id} is queued, so it has no result yet: wait\(\) for it first"):
        job.result()


# -- waiting ------------------------------------------------------------------------------------


def test_wait_ends_when_the_job_does(app: Rota) -> None:
    job = app.named("noop").enqueue()
    app.task(name="noop")(lambda: None)
    runner = threading.Thread(target=app.drain)
    runner.start()
    assert job.wait(timeout=30) is job
    runner.join()
    assert job.status == "succeeded"


def test_a_coroutine_waits_without_blocking_its_loop(app: Rota) -> None:
    app.task(name="noop")(lambda: None)

    async def main() -> None:
        job = await app.asend("noop")
        waiting = asyncio.create_task(job.await_(timeout=30))
        await app.adrain()
        assert (await waiting).status == "succeeded"

    asyncio.run(main())


def test_wait_gives_up_at_its_timeout(app: Rota) -> None:
    job = app.send("t")
    begun = time.monotonic()
    for timeout in (0, 0.05, timedelta(milliseconds=50)):
        with pytest.raises(WaitTimeout, match=rf"^job {job.id} was still queued after 0(\.05)? s$"):
            job.wait(timeout)
        with pytest.raises(WaitTimeout):
            asyncio.run(job.await_(timeout))
    assert 0.2 <= time.monotonic() - begun < 10


def test_the_timeout_of_wait_is_a_span(app: Rota) -> None:
    job = app.send("t")
    for timeout in (-1, float("nan"), "1"):
        with pytest.raises(ConfigError, match=r"^timeout="):
            job.wait(timeout)  # type: ignore[arg-type]


def test_waiting_for_a_finished_job_answers_at_once(app: Rota) -> None:
    job = app.send("t")
    job.cancel()
    assert job.wait(timeout=0).status == "cancelled"


def test_waiting_for_a_job_that_goes_is_told(app: Rota) -> None:
    job = app.send("t")
    app.delete(job.id)
    with pytest.raises(JobNotFound):
        job.wait(timeout=30)


# -- attempts -----------------------------------------------------------------------------------


def test_attempts_that_did_not_succeed_are_remembered_with_their_traces(app: Rota) -> None:
    said = iter(["first", "second"])

    @app.task(name="shaky", retry=0)
    def shaky() -> None:
        for word in said:
            raise ValueError(word)

    job = shaky.enqueue()
    assert job.attempts() == []
    app.drain()
    first, second = job.attempts()
    assert [(row.attempt, row.outcome, row.failure and row.failure.message) for row in (first, second)] == [
        (1, "again", "first"),
        (2, "again", "second"),
    ]
    assert first.failure is not None
    assert "raise ValueError(word)" in first.failure.trace
    assert (job.refresh().status, job.attempt) == ("succeeded", 3)
    assert asyncio.run(job.aattempts()) == [first, second]
