"""Eager mode: each job runs at its enqueue, in the caller, and no store is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.conftest import Clock
from app.words import NOT_AWAITED, careless, nothing
from rota import (
    Abandon,
    ArgumentsError,
    ConfigError,
    JobFailed,
    JobNotFound,
    NotSupported,
    PayloadTooLarge,
    ResultNotKept,
    Retry,
    Rota,
    Snooze,
    State,
    current_job,
)


@pytest.fixture
def app(tmp_path: Path, clock: Clock) -> Iterator[Rota]:
    with Rota(f"sqlite:///{tmp_path}/none.db", eager=True, clock=clock, max_payload=1_000) as app:
        yield app
    assert list(tmp_path.iterdir()) == []


def test_a_job_is_finished_when_enqueue_returns(app: Rota, clock: Clock) -> None:
    @app.task(name="add", queue="q", priority=3, keep_result=True)
    def add(a: int, b: int) -> int:
        return a + b

    job = add.using(key="k", delay=60).enqueue(1, b=2)
    assert (job.status, job.result(), job.reason, job.existed) == (State.SUCCEEDED, 3, None, False)
    assert (job.task, job.queue, job.priority, job.key, job.attempt, job.created_at) == ("add", "q", 3, "k", 1, clock.now)
    assert job.row.args == '{"a":1,"b":2}'


def test_code_that_refreshes_and_waits_works_as_with_a_store(app: Rota) -> None:
    @app.task(keep_result=True)
    async def add(a: int, b: int) -> int:
        return a + b

    async def main() -> None:
        job = await add.aenqueue(1, 2)
        assert (await job.await_(timeout=1)).status is State.SUCCEEDED
        assert (await job.arefresh()).attempt == 1
        assert await job.aresult() == 3
        assert await job.aattempts() == []
        assert add.enqueue(3, 4).result() == 7

    job = add.enqueue(1, 2)
    assert job.refresh().wait(timeout=1).result() == 3
    asyncio.run(main())


def test_arguments_make_the_same_way_as_through_a_store(app: Rota) -> None:
    got: list[Any] = []
    app.task(name="take")(lambda value: got.append(value))
    given = ("a", {"b": [1]})
    app.send("take", given)
    assert got == [["a", {"b": [1]}]]


def test_a_body_that_fails_does_not_raise_in_the_caller(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="broken")
    def broken() -> None:
        raise OSError("no paper")

    job = broken.enqueue()
    assert (job.status, job.reason, job.attempt) == (State.FAILED, "no paper", 1)
    with pytest.raises(JobFailed, match="broken failed on attempt 1: no paper"):
        job.result()
    [attempt] = job.attempts()
    assert attempt.failure is not None
    assert 'raise OSError("no paper")' in attempt.failure.trace
    assert "failed broken on attempt 1: no paper" in caplog.text


@pytest.mark.parametrize(
    ("signal", "reason"),
    [(Retry(5, "busy"), "busy"), (Abandon("refunded"), "refunded"), (Snooze(60), "snoozed: eager mode runs a job once")],
)
def test_a_signal_ends_the_job_since_nothing_is_waited_for(app: Rota, signal: Exception, reason: str) -> None:
    def body() -> None:
        raise signal

    job = app.task(name="t")(body).enqueue()
    assert (job.status, job.reason, len(job.attempts())) == (State.FAILED, reason, 1)


def test_a_coroutine_function_behind_a_careless_decorator_fails_and_says_what_to_do(app: Rota) -> None:
    job = app.task(name="t")(careless(nothing)).enqueue()
    assert (job.status, job.reason) == (State.FAILED, NOT_AWAITED.format(task="t"))


def test_a_result_is_kept_only_where_the_task_says_so(app: Rota) -> None:
    with pytest.raises(ResultNotKept):
        app.task(name="t")(lambda: 5).enqueue().result()


def test_what_does_not_fit_is_refused_as_with_a_store(app: Rota) -> None:
    ran: list[int] = []

    @app.task
    def take(number: int, text: str = "") -> None:
        ran.append(number)

    with pytest.raises(ArgumentsError):
        take.enqueue("one")  # type: ignore[arg-type]
    with pytest.raises(PayloadTooLarge):
        take.enqueue(1, "x" * 2_000)
    with pytest.raises(ArgumentsError, match=r"^call 3: "):
        take.enqueue_many([(1,), (2,), ("three",)])
    assert ran == []
    assert [job.status for job in take.enqueue_many([(1,), (2,)])] == [State.SUCCEEDED] * 2
    assert ran == [1, 2]


def test_many_are_run_by_coroutines_too(app: Rota) -> None:
    ran: list[int] = []
    task = app.task(name="take")(lambda number: ran.append(number))
    asyncio.run(task.aenqueue_many([(1,), (2,)]))
    assert ran == [1, 2]


def test_a_body_may_enqueue_other_jobs(app: Rota) -> None:
    seen = []

    @app.task(name="count")
    def count(down: int) -> None:
        seen.append((down, current_job().attempt))
        if down % 2:
            count.enqueue(down - 1)
        elif down:
            asyncio.run(count.aenqueue(down - 1))

    count.enqueue(9)
    assert seen == [(down, 1) for down in range(9, -1, -1)]


def test_a_task_that_is_not_here_cannot_be_run(app: Rota) -> None:
    with pytest.raises(ConfigError, match="no task here is named elsewhere: import its module"):
        app.send("elsewhere")


def test_there_is_nothing_to_find_or_change(app: Rota) -> None:
    job = app.task(name="t")(lambda: None).enqueue()
    for change in (job.cancel, job.retry, job.delete, lambda: app.cancel(job.id)):
        with pytest.raises(NotSupported, match="eager mode keeps no jobs"):
            change()
    with pytest.raises(JobNotFound, match="eager mode keeps none; use the one that enqueue answered"):
        app.get(job.id)


def test_progress_is_in_the_row(app: Rota) -> None:
    job = app.task(name="t")(lambda: current_job().progress(1, 2)).enqueue()
    assert job.row.progress == '{"done":1,"total":2,"note":""}'


def test_a_job_takes_its_time(app: Rota, clock: Clock) -> None:
    job = app.task(name="t")(lambda: None).enqueue()
    assert job.finished_at is not None
    assert timedelta() <= job.finished_at - clock.now < timedelta(seconds=5)
