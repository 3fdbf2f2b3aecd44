"""Limits over `run_one` and `drain` at chosen moments, on each store: who starts, who is held, and what that costs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app import isolated
from app.conftest import Clock
from app.words import joined
from rota import ConfigError, Job, Kind, Limit, NotSupported, Retry, Rota, Snooze, State
from rota.model import Ask, Round
from rota.rules.health import Trouble

MINUTE = 60.0


def states(*jobs: Job[Any]) -> list[str]:
    return [job.refresh().status.value for job in jobs]


def taken(app: Rota, queue: str = "default", slots: int = 1) -> tuple[str, Round]:
    """A worker that has just claimed under limits, and what it got."""
    worker = joined(app)
    assert app.limiting is not None
    return worker, app.store.admit(Ask(worker, (queue,), slots, slots), app.limiting, app.now())


# -- rates --------------------------------------------------------------------------------------


def test_a_drain_starts_one_job_of_a_rate_and_holds_the_others_until_the_clock_moves(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="10/m")
    def call(number: int) -> None: ...

    jobs = call.enqueue_many([(number,) for number in range(3)])
    assert [event.id for event in clocked.drain()] == [jobs[0].id]
    assert states(*jobs) == ["succeeded", "held", "held"]
    clock.forward(5.999999)
    assert clocked.drain() == []
    clock.forward(0.000001)
    assert [event.id for event in clocked.drain()] == [jobs[1].id]
    clock.forward(MINUTE)
    assert [event.id for event in clocked.drain()] == [jobs[2].id]


def test_ten_a_minute_drain_in_a_minute_however_often_one_looks(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="10/m")
    def call() -> None: ...

    call.enqueue_many([()] * 10)
    starts = []
    for second in range(61):
        starts += [second] * len(clocked.drain())
        clock.forward(1)
    assert starts == list(range(0, 60, 6))


def test_a_chosen_moment_counts_for_a_rate(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="1/m")
    def call() -> None: ...

    call.enqueue_many([()] * 2)
    assert clocked.run_one(now=clock.now) is not None
    assert clocked.run_one(now=clock.now + timedelta(seconds=59)) is None
    assert clocked.run_one(now=clock.now + timedelta(seconds=60)) is not None


def test_waiting_for_a_rate_costs_no_attempt(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="1/m", max_attempts=1)
    def call() -> None: ...

    jobs = call.enqueue_many([()] * 5)
    for _ in range(5):
        clocked.drain()
        clock.forward(MINUTE)
    assert [(job.refresh().status, job.attempt) for job in jobs] == [(State.SUCCEEDED, 1)] * 5


@pytest.mark.parametrize("signal", [Retry(0), Snooze(0.1)])
def test_each_further_run_is_one_more_start(clocked: Rota, clock: Clock, signal: Exception) -> None:
    left = [signal]

    @clocked.task(name="call", rate="1/m")
    def call() -> None:
        if left:
            raise left.pop()

    job = call.enqueue()
    assert len(clocked.drain()) == 1
    clock.forward(1)
    assert clocked.drain() == []
    assert states(job) == ["held"]
    clock.forward(MINUTE)
    assert [event.kind for event in clocked.drain()] == [Kind.SUCCEEDED]


# -- how many at once ---------------------------------------------------------------------------


def test_a_drain_runs_all_jobs_of_a_limit_one_after_the_other(clocked: Rota) -> None:
    @clocked.task(name="build", concurrency=1)
    def build(number: int) -> None: ...

    jobs = build.enqueue_many([(number,) for number in range(5)])
    assert [event.id for event in clocked.drain()] == [job.id for job in jobs]
    assert [(room.running, room.held) for room in clocked.limits()] == [(0, 0)]


def test_a_job_is_held_while_others_fill_the_room_and_starts_when_one_ends(clocked: Rota) -> None:
    @clocked.task(name="build", concurrency=2)
    def build() -> None: ...

    build.enqueue_many([()] * 2)
    worker, got = taken(clocked, slots=2)
    assert len(got.claimed) == 2
    held, free = build.enqueue(), clocked.named("free").enqueue()
    assert [event.task for event in clocked.drain()] == ["free"]
    assert states(held, free) == ["held", "scheduled"]
    clocked.store.leave(worker, clocked.now())
    assert len(clocked.drain()) == 3
    assert states(held) == ["succeeded"]


def test_a_place_of_a_lost_worker_is_free_when_its_lease_ran_out(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="build", concurrency=1)
    def build() -> None: ...

    jobs = build.enqueue_many([()] * 2)
    taken(clocked)
    assert clocked.drain() == []
    clock.forward(61)
    assert [event.id for event in clocked.drain()] == [jobs[0].id, jobs[1].id]
    assert jobs[0].refresh().attempt == 2


def test_a_nested_drain_counts_the_job_that_runs_it(clocked: Rota) -> None:
    inner: list[int] = []

    @clocked.task(name="build", concurrency=1)
    def build() -> None:
        inner.append(len(clocked.drain()))

    build.enqueue_many([()] * 2)
    assert len(clocked.drain()) == 2
    assert inner == [0, 0]


def test_the_next_place_goes_by_priority_and_then_by_age_over_held_and_queued_jobs(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="1/m")
    def call() -> None: ...

    first, second, third = call.enqueue_many([()] * 3)
    assert len(clocked.drain()) == 1
    clock.forward(MINUTE)
    urgent = call.using(priority=5).enqueue()
    order = []
    for _ in range(3):
        order += [event.id for event in clocked.drain()]
        clock.forward(MINUTE)
    assert order == [urgent.id, second.id, third.id]
    assert states(first) == ["succeeded"]


def test_of_jobs_held_on_several_queues_the_larger_priority_is_first(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate="1/m")
    def call() -> None: ...

    @clocked.task(name="other")
    def other() -> None: ...

    call.enqueue()
    assert len(clocked.drain()) == 1
    low = call.using(priority=1).enqueue()
    high = call.using(priority=9, queue="b").enqueue()
    assert clocked.drain() == []
    free = other.enqueue()
    order = []
    for _ in range(3):
        clock.forward(MINUTE)
        order += [event.id for event in clocked.drain()]
    assert [id for id in order if id != free.id] == [high.id, low.id]


# -- keys, names, several -----------------------------------------------------------------------


def test_each_key_has_a_room_of_its_own(clocked: Rota) -> None:
    @clocked.task(name="call", rate=Limit("1/m", key=lambda tenant: tenant))
    def call(tenant: str) -> None: ...

    jobs = call.enqueue_many([("a",), ("a",), ("b",), ("a",), ("c",)])
    assert [event.id for event in clocked.drain()] == [jobs[0].id, jobs[2].id, jobs[4].id]
    assert states(*jobs) == ["succeeded", "held", "succeeded", "held", "succeeded"]
    assert [(room.key, room.held) for room in clocked.limits()] == [('"a"', 2), ('"b"', 0), ('"c"', 0)]


def test_a_job_by_name_alone_is_limited_like_any_other(clocked: Rota) -> None:
    @clocked.task(name="call", rate=Limit("1/m", key=lambda tenant: tenant))
    def call(tenant: str) -> None: ...

    jobs = [clocked.send("call", "a"), call.enqueue("a")]
    assert len(clocked.drain()) == 1
    assert states(*jobs) == ["succeeded", "held"]


def test_tasks_that_share_a_name_share_a_room(clocked: Rota, clock: Clock) -> None:
    partner = Limit("1/m", name="partner")
    for name in ("one", "two"):
        clocked.task(name=name, rate=partner)(lambda: None)
    jobs = [clocked.send("one"), clocked.send("two")]
    assert [event.task for event in clocked.drain()] == ["one"]
    assert states(*jobs) == ["succeeded", "held"]
    clock.forward(MINUTE)
    assert [event.task for event in clocked.drain()] == ["two"]


def test_a_job_waits_for_all_of_its_limits(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="call", rate=[Limit("1/s", key=lambda tenant: tenant), "2/m"])
    def call(tenant: str) -> None: ...

    jobs = call.enqueue_many([("a",), ("b",)])
    assert len(clocked.drain()) == 1
    clock.forward(1)
    assert clocked.drain() == []
    clock.forward(29)
    assert len(clocked.drain()) == 1
    assert states(*jobs) == ["succeeded", "succeeded"]


def test_a_job_without_a_usable_key_fails_its_attempt_and_says_why(clocked: Rota) -> None:
    @clocked.task(name="call", rate=Limit("1/m", key=lambda tenant: {"a": 1}[tenant]), max_attempts=1)
    def call(tenant: str) -> None: ...

    job = call.enqueue("b")
    [event] = clocked.drain()
    assert (event.kind, job.refresh().attempt) == (Kind.FAILED, 1)
    assert (job.reason or "").startswith("the key of limit 'rate of call by tenant' raised KeyError: 'b'")


def test_a_job_whose_arguments_do_not_fit_fails_as_without_limits(clocked: Rota) -> None:
    @clocked.task(name="call", rate=Limit("1/m", key=lambda tenant: tenant), max_attempts=1)
    def call(tenant: str) -> None: ...

    job = clocked.send("call", 7)
    clocked.drain()
    assert "expected `str`" in (job.refresh().reason or "")


# -- held jobs ----------------------------------------------------------------------------------


@pytest.fixture
def held(clocked: Rota) -> Job[Any]:
    """A job that a rate holds."""

    @clocked.task(name="call", rate="1/m", concurrency=5)
    def call() -> None: ...

    _, job = call.enqueue(), call.using(key="k").enqueue()
    clocked.drain()
    assert states(job) == ["held"]
    return job


def test_a_held_job_keeps_its_key(clocked: Rota, held: Job[Any]) -> None:
    again = clocked.named("call").using(key="k").enqueue()
    assert (again.existed, again.id) == (True, held.id)


def test_a_held_job_is_cancelled_and_deleted_like_a_queued_one(clocked: Rota, held: Job[Any]) -> None:
    assert held.cancel() is State.CANCELLED
    assert [room.held for room in clocked.limits()] == [0, 0]
    held.delete()


def test_a_held_job_that_is_retried_is_queued_and_held_again(clocked: Rota, held: Job[Any]) -> None:
    assert held.retry().refresh().status is State.QUEUED
    assert clocked.drain() == []
    assert states(held) == ["held"]


def test_a_held_job_is_found_counted_and_shown(clocked: Rota, clock: Clock, held: Job[Any]) -> None:
    assert [job.id for job in clocked.jobs(status="held")] == [held.id]
    assert held.row.held_by == ("rate of call", "")
    assert clocked.stats().states[State.HELD] == 1
    clock.forward(30)
    assert clocked.stats().oldest_wait == 30_000_000


def test_a_held_job_that_waits_too_long_is_told_in_words_of_its_own(clocked: Rota, clock: Clock, held: Job[Any]) -> None:
    joined(clocked, seconds=3600)
    clock.forward(30)
    assert clocked.check(max_wait=30) == []
    [problem] = clocked.check(max_wait=29)
    assert (problem.trouble, problem.jobs) == (Trouble.WAITING, 1)
    assert "has been held for 30 s" in problem.text


def test_a_held_job_says_why_it_does_not_run(clocked: Rota, clock: Clock, held: Job[Any]) -> None:
    joined(clocked)
    clock.forward(20)
    found = held.explain()
    assert found.status is State.HELD
    due, why = found.sentences
    assert due == "It has been due for 20 s, since 2030-01-01 00:00:00+00:00."
    assert why.startswith("Limit 'rate of call' has no room until 2030-01-01 00:01:00+00:00, for another 40 s: ")
    clock.forward(40)
    assert "has some by now" in str(held.explain())


def test_a_held_job_names_those_that_fill_its_room(clocked: Rota) -> None:
    @clocked.task(name="build", concurrency=Limit(1, key=lambda tenant: tenant))
    def build(tenant: str) -> None: ...

    jobs = build.enqueue_many([("a",), ("b",), ("b",), ("b",)])
    taken(clocked, slots=2)
    assert clocked.drain() == []
    found = jobs[3].explain()
    assert found.holders == [jobs[1].id]
    assert found.room is not None
    assert (found.room.key, found.room.running, found.room.held) == ('"b"', 1, 2)
    assert f'has no room for key "b": 1 of 1 run, {jobs[1].id}.' in str(found)


def test_a_queued_job_says_that_its_limit_is_full_before_a_claim_meets_it(clocked: Rota) -> None:
    clocked.task(name="build", concurrency=[Limit(5, key=lambda tenant: tenant), 1])(lambda tenant: None)
    first, job = clocked.send("build", "a"), clocked.send("build", "b")
    assert job.explain().room is None
    taken(clocked)
    found = job.explain()
    assert found.status is State.QUEUED
    assert found.holders == [first.id]
    assert f"Limit 'concurrency of build' has no room: 1 of 1 run, {first.id}." in found.sentences


def test_without_the_code_those_are_named_that_fill_a_limit_of_the_task_itself(clocked: Rota, clock: Clock) -> None:
    clocked.task(name="build", concurrency=1)(lambda: None)
    jobs = [clocked.send("build") for _ in range(2)]
    taken(clocked)
    clocked.drain()
    if clocked.url == "memory://":
        return  # nobody else can look there
    with Rota(clocked.url, clock=clock) as other:
        found = other.explain(jobs[1].id)
        assert found.holders == [jobs[0].id]
        assert "Which size it has is known where the code of its task is." in str(found)


# -- at run time --------------------------------------------------------------------------------


def test_a_size_that_is_set_counts_at_once_and_until_it_is_cleared(clocked: Rota, clock: Clock) -> None:
    clocked.task(name="call", rate="1/h")(lambda: None)
    for _ in range(4):
        clocked.send("call")
    assert len(clocked.drain()) == 1
    clocked.set_limit("rate of call", "1/s")
    clock.forward(1)
    assert len(clocked.drain()) == 1
    [room] = clocked.limits()
    assert (room.size, room.declared, room.set, room.held, room.tasks) == ("1/s", "1/h", "1/s", 2, ["call"])
    clocked.set_limit("rate of call", None)
    clock.forward(1)
    assert clocked.drain() == []
    [room] = clocked.limits()
    assert (room.size, room.set, room.full) == ("1/h", None, True)


@pytest.mark.parametrize("size", [3, "3"])
def test_how_many_at_once_is_set_as_a_number_or_as_text(clocked: Rota, size: int | str) -> None:
    clocked.task(name="build", concurrency=1)(lambda: None)
    for _ in range(4):
        clocked.send("build")
    clocked.set_limit("concurrency of build", size)
    _, got = taken(clocked, slots=8)
    assert (len(got.claimed), got.held) == (3, 1)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("rate of call", 5, r"size 5: limit 'rate of call' is a rate \(10/m in the code of task call\)"),
        ("rate of call", "often", r"size 'often' is no rate"),
        ("rate of call", 0, r"size 0: from 1 to"),
        ("rate of call", True, r"size True: how many"),
        ("rate of cal", "5/m", r"no limit is named 'rate of cal': the limits of this app are 'rate of call'"),
        ("", "5/m", r"limit='': a limit is text"),
    ],
)
def test_what_cannot_be_set_is_refused(app: Rota, name: str, size: Any, said: str) -> None:
    app.task(name="call", rate="10/m")(lambda: None)
    with pytest.raises(ConfigError, match=said):
        app.set_limit(name, size)
    assert app.store.overrides() == {}


def test_an_app_without_limits_may_set_those_of_others(app: Rota) -> None:
    app.set_limit("partner", "5/m")
    [room] = app.limits()
    assert (room.name, room.size, room.declared, room.tasks, room.full) == ("partner", "5/m", None, [], False)
    app.set_limit("partner", None)
    assert app.limits() == []


def test_limits_are_listed_by_name_before_any_job_met_them(app: Rota) -> None:
    app.task(name="call", rate="10/m", concurrency=Limit(2, key=lambda tenant: tenant, name="a"))(lambda tenant: None)
    assert [(room.name, room.size, room.running, room.held) for room in app.limits()] == [
        ("a", "2", 0, 0),
        ("rate of call", "10/m", 0, 0),
    ]


def test_coroutines_may_look_and_set_too(app: Rota) -> None:
    app.task(name="call", rate="10/m")(lambda: None)

    async def change() -> str | None:
        await app.aset_limit("rate of call", "5/m")
        [room] = await app.alimits()
        return room.size

    assert asyncio.run(change()) == "5/m"


# -- a partner's own limit ----------------------------------------------------------------------


def test_a_reported_limit_holds_every_job_under_it_until_then(clocked: Rota, clock: Clock) -> None:
    partner = Limit("10/s", name="partner")
    answers = [429, 200, 200]

    @clocked.task(name="send", rate=partner)
    def send() -> None:
        if answers.pop(0) == 429:
            raise Retry(30, "busy", limit=True)

    clocked.task(name="ask", rate=partner)(lambda: None)
    job, other = send.enqueue(), clocked.send("ask")
    assert [event.kind for event in clocked.drain()] == [Kind.AGAIN]
    assert states(job, other) == ["scheduled", "held"]
    assert "a job reported that a limit of somebody else was met" in str(other.explain())
    clock.forward(29)
    assert clocked.drain() == []
    clock.forward(1)
    assert len(clocked.drain()) == 1
    clock.forward(0.1)
    assert len(clocked.drain()) == 1
    assert states(job, other) == ["succeeded", "succeeded"]


def test_a_limit_reported_by_the_last_attempt_holds_the_others_too(clocked: Rota) -> None:
    @clocked.task(name="send", concurrency=5, max_attempts=1)
    def send() -> None:
        raise Retry(30, "busy", limit=True)

    jobs = send.enqueue_many([()] * 2)
    assert [event.kind for event in clocked.drain()] == [Kind.FAILED]
    assert states(*jobs) == ["failed", "held"]


def test_only_the_key_of_the_reporting_job_is_closed(clocked: Rota) -> None:
    @clocked.task(name="send", rate=Limit("1000/s", key=lambda tenant: tenant), max_attempts=1)
    def send(tenant: str) -> None:
        if tenant == "a":
            raise Retry(30, "busy", limit="rate of send by tenant")

    jobs = send.enqueue_many([("a",), ("a",), ("b",)])
    assert len(clocked.drain()) == 2
    assert states(*jobs) == ["failed", "held", "succeeded"]
    assert [room.closed_until is not None for room in clocked.limits()] == [True, False]


def test_an_isolated_body_may_report_a_limit_too() -> None:
    with isolated.limited as app:
        jobs = isolated.busy.enqueue_many([()] * 2)
        assert [event.kind for event in app.drain()] == [Kind.FAILED]
        assert states(*jobs) == ["failed", "held"]


def test_a_shorter_report_does_not_shorten_a_longer_one(clocked: Rota, clock: Clock) -> None:
    waits = [60, 10]
    partner = Limit(5, name="partner")

    @clocked.task(name="send", concurrency=partner, max_attempts=1)
    def send() -> None:
        raise Retry(waits.pop(0), limit=True)

    jobs = send.enqueue_many([()] * 2)
    worker, got = taken(clocked, slots=1)
    assert len(got.claimed) == 1
    clocked.drain()  # the other one, which closes the room for a minute
    clocked.store.leave(worker, clocked.now())
    clock.forward(59)
    assert clocked.drain() == []
    clock.forward(1)
    assert len(clocked.drain()) == 1
    assert states(*jobs) == ["failed", "failed"]


@pytest.mark.parametrize("wait", [timedelta(days=30), 1e18])
def test_a_report_closes_a_limit_for_a_day_at_the_most(clocked: Rota, clock: Clock, wait: Any) -> None:
    """Nobody but time opens it again, and a partner may say anything."""
    said = [wait]

    @clocked.task(name="call", rate="1/s", max_attempts=2)
    def call() -> None:
        if said:
            raise Retry(said.pop(), limit=True)

    first, second = call.enqueue_many([()] * 2)
    assert [str(event) for event in clocked.drain()] == ["failed call on attempt 1: the task asked for another attempt"]
    clock.forward(24 * 3600 - 1)
    assert clocked.drain() == []
    clock.forward(1)
    assert [str(event) for event in clocked.drain()] == ["ran call"]
    assert states(first, second) == ["scheduled", "succeeded"]


# -- others -------------------------------------------------------------------------------------


def test_a_queue_whose_jobs_were_all_held_is_worked_on_without_being_named(clocked: Rota, clock: Clock) -> None:
    clocked.task(name="call", rate="1/m", queue="far away")(lambda: None)
    for _ in range(2):
        clocked.send("call")
    assert len(clocked.drain()) == 1
    clock.forward(MINUTE)
    assert clocked.run_one() is not None


def test_a_limit_that_the_code_dropped_holds_nobody(store_url: str, clock: Clock) -> None:
    if store_url == "memory://":
        return  # nobody else can look there
    with Rota(store_url, clock=clock) as old:
        old.task(name="call", rate="1/h")(lambda: None)
        jobs = [old.send("call") for _ in range(3)]
        assert len(old.drain()) == 1
    with Rota(store_url, clock=clock) as new:
        new.task(name="other")(lambda: None)
        assert new.drain() == []
        assert [new.get(job.id).status for job in jobs[1:]] == [State.HELD] * 2
        new.task(name="call")(lambda: None)
        assert len(new.drain()) == 2
        assert [new.get(job.id).status for job in jobs] == [State.SUCCEEDED] * 3


def test_one_of_several_limits_that_the_code_dropped_holds_nobody(store_url: str, clock: Clock) -> None:
    if store_url == "memory://":
        return  # nobody else can look there
    with Rota(store_url, clock=clock) as old:
        old.task(name="call", rate="1/h")(lambda: None)
        old.task(name="build", concurrency=1)(lambda: None)
        for _ in range(3):
            old.send("call")
        assert len(old.drain()) == 1
    with Rota(store_url, clock=clock) as new:
        new.task(name="call")(lambda: None)
        new.task(name="build", concurrency=1)(lambda: None)
        clock.forward(60)  # a room that holds jobs is looked at this often
        assert len(new.drain()) == 2


def test_a_store_that_knows_no_limits_is_refused(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    app.task(name="call", rate="1/h")(lambda: None)
    monkeypatch.setattr(type(app.store), "admit", None)
    for work in (app.run_one, app.drain):
        with pytest.raises(NotSupported, match=r"cannot hold jobs back, and tasks have limits \(call\)"):
            work()


def test_a_held_job_is_no_running_one(held: Job[Any]) -> None:
    held.delete()
    with pytest.raises(LookupError):
        held.refresh()
