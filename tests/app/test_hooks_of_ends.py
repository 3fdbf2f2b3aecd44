"""Hooks of ends, where jobs are run in the caller: what is told to them, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import copy_context

from app.conftest import Clock
from app.hook_words import said
from app.words import claimed
from rota import CurrentJob, FailedAttempt, Limit, Rota, Snooze, State, current_job
from rota.aftermath import Aftermath
from rota.ids import new_id
from rota.model import Lost

# -- on_success ---------------------------------------------------------------------------------


def test_a_success_is_told_once_it_is_recorded_with_what_the_task_keeps(app: Rota) -> None:
    told: list[object] = []

    @app.on_success
    def success(job: CurrentJob, result: object) -> None:
        told.append((app.get(job.id).status, current_job().id == job.id, result))

    app.task(name="kept", keep_result=True)(lambda: [1, 2]).enqueue()
    app.task(name="dropped")(lambda: [1, 2]).enqueue()
    app.drain()
    assert told == [(State.SUCCEEDED, True, [1, 2]), (State.SUCCEEDED, True, None)]


def test_eager_jobs_have_one_attempt_whose_end_is_told() -> None:
    with Rota(eager=True) as app:
        told: list[object] = []
        app.on_success(lambda job, result: told.append(result))
        app.on_failure(lambda job, failure: told.append((failure.final, failure.wait, failure.reason)))
        app.task(name="good", keep_result=True)(lambda: "x").enqueue()
        app.task(name="bad")(lambda: 1 / 0).enqueue()
        assert told == ["x", (True, None, "division by zero")]


def test_hooks_see_the_context_variables_that_their_job_carries(store_url: str) -> None:
    told: list[tuple[str, str]] = []
    with Rota(store_url, context=[said]) as app:

        @app.around
        def around(job: CurrentJob) -> Iterator[None]:
            told.append(("around", said.get()))
            yield

        @app.on_success
        async def success(job: CurrentJob, result: object) -> None:
            told.append(("on_success", said.get()))

        @app.on_failure
        def failed(job: CurrentJob, failure: FailedAttempt) -> None:
            told.append(("on_failure", said.get()))

        def enqueue() -> None:
            said.set("carried")
            app.task(name="good")(lambda: None).enqueue()
            app.task(name="bad", max_attempts=1)(lambda: 1 / 0).enqueue()

        copy_context().run(enqueue)
        app.drain()
    assert told == [(when, "carried") for when in ("around", "on_success", "around", "on_failure")]


def test_what_does_not_count_is_told_to_no_hook(clocked: Rota, clock: Clock) -> None:
    told: list[str] = []
    clocked.on_success(lambda job, result: told.append("success"))

    @clocked.task(name="t")
    def t() -> None:
        clock.forward(400)
        clocked.store.lost(10, clocked.now())  # as another worker would find it

    t.enqueue()
    clocked.run_one()
    assert told == []


# -- on_failure ---------------------------------------------------------------------------------


def test_each_failed_attempt_is_told_and_the_last_one_is_final(clocked: Rota, clock: Clock) -> None:
    told: list[tuple[int, FailedAttempt]] = []
    clocked.on_failure(lambda job, failure: told.append((job.attempt, failure)))

    @clocked.task(name="t", max_attempts=2, retry=60)
    def t() -> None:
        raise KeyError("order")

    job = t.enqueue()
    clocked.drain()
    clock.forward(60)
    clocked.drain()
    assert [attempt for attempt, _ in told] == [1, 2]
    first, last = [failure for _, failure in told]
    assert (first.final, first.wait, first.type, first.message) == (False, 60_000_000, "KeyError", "'order'")
    assert (last.final, last.wait, last.lost) == (True, None, False)
    assert last.reason == job.refresh().reason
    assert isinstance(last.error, KeyError)
    assert last.error.__traceback__ is not None
    assert "in t" in last.trace


def test_failures_that_no_body_raised_are_told_too(clocked: Rota) -> None:
    told: dict[str, FailedAttempt] = {}

    def bad_key(number: int) -> str:
        raise ValueError("no key")

    @clocked.on_failure
    def failed(job: CurrentJob, failure: FailedAttempt) -> None:
        told[job.task] = failure

    @clocked.task(name="misfit", max_attempts=1)
    def misfit(number: int) -> None: ...

    @clocked.task(name="limited", max_attempts=1, concurrency=Limit(1, key=bad_key))
    def limited(number: int) -> None: ...

    @clocked.task(name="slow", max_attempts=1, timeout=0.05)
    async def slow() -> None:
        await asyncio.sleep(60)

    clocked.send("misfit", other=1)
    clocked.send("limited", 1)
    clocked.send("slow")
    clocked.named("missing").using(max_attempts=1).enqueue()
    clocked.drain()
    assert {task: failure.final for task, failure in told.items()} == dict.fromkeys(
        ["misfit", "limited", "slow", "missing"], True
    )
    assert told["missing"].reason == "no performer is named missing"
    assert isinstance(told["slow"].error, TimeoutError)


def test_a_lost_attempt_is_told_by_whoever_takes_its_job_back(clocked: Rota, clock: Clock) -> None:
    told: list[object] = []

    @clocked.on_failure
    def failed(job: CurrentJob, failure: FailedAttempt) -> None:
        told.append((job.id, job.attempt, job.max_attempts, job.arguments, job.key, failure.final, failure.lost, failure.type))
        assert failure.reason.startswith("worker lost")

    clocked.task(name="t", max_attempts=2)(lambda number: None)
    job = clocked.named("t").using(key="k").enqueue(number=7)
    for _ in range(2):
        claimed(clocked, seconds=30)
        clock.forward(30)
        clocked.run_one(queues=["other"])
    assert told == [(job.id, attempt, 2, {"number": 7}, "k", attempt == 2, True, "WorkerLost") for attempt in (1, 2)]


def test_who_hears_of_a_lost_attempt_or_an_unknown_task_sees_what_the_job_carries(store_url: str, clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    with Rota(store_url, clock=clock, context=[said]) as app:
        app.on_failure(lambda job, failure: told.append((failure.type, said.get())))

        def enqueue() -> None:
            said.set("carried")
            app.task(name="t")(lambda: None).enqueue()
            claimed(app, seconds=30)
            app.named("missing").using(max_attempts=1).enqueue()

        copy_context().run(enqueue)
        clock.forward(30)
        app.drain()
    assert told == [("WorkerLost", "carried"), ("UnknownTask", "carried")]


def test_a_lost_job_of_which_nothing_is_kept_is_told_with_its_arguments(store_url: str, clock: Clock) -> None:
    told: list[object] = []
    with Rota(store_url, clock=clock, keep_failed=0) as app:
        app.on_failure(lambda job, failure: told.append((job.arguments, failure.final)))
        app.task(name="t", max_attempts=1)(lambda number: None)
        app.send("t", number=7)
        claimed(app, seconds=30)
        clock.forward(30)
        app.drain()
    assert told == [({"number": 7}, True)]


def test_a_lost_job_that_is_gone_is_told_all_the_same(clocked: Rota) -> None:
    told: list[object] = []
    clocked.on_failure(lambda job, failure: told.append((job.task, job.attempt, job.max_attempts, job.arguments)))
    with Aftermath(clocked.hooks) as after:
        after.lost([Lost(new_id(), "t", "q", 3, "w", State.FAILED)], clocked.store.get)
    assert told == [("t", 3, 3, {})]


def test_what_is_no_failure_is_told_to_no_hook(clocked: Rota, clock: Clock) -> None:
    told: list[object] = []
    clocked.on_failure(lambda job, failure: told.append(failure))
    clocked.on_success(lambda job, result: told.append(result))

    @clocked.task(name="snoozed")
    def snoozed() -> None:
        raise Snooze(60)

    @clocked.task(name="cancelled")
    def cancelled() -> None: ...

    snoozed.enqueue()
    clocked.run_one()
    cancelled.enqueue().cancel()
    job = cancelled.enqueue()
    claimed(clocked, seconds=30)
    job.cancel()
    clock.forward(30)
    clocked.drain(queues=["other"])
    assert job.refresh().status is State.CANCELLED
    assert told == []
