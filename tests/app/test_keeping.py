"""How long finished jobs stay: the `keep_…` settings, `purge` and what it would delete."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.conftest import Clock
from app.words import joined
from rota import ConfigError, JobNotFound, Move, Rota, State
from rota.model import Ask, Ended, Failed, Failure
from rota.operate import STEP, where

DAY = 86_400
MANY = 20_000


def finish_one_each(app: Rota) -> None:
    """Leave one succeeded, one failed and one cancelled job."""
    if "good" not in app.tasks:
        app.task(name="good")(lambda: None)
    app.send("good")
    app.named("unknown").using(max_attempts=1).enqueue()
    app.drain()
    app.cancel(app.send("good").id)


def left(app: Rota) -> set[State]:
    return {state for state, number in app.stats().states.items() if number}


ALL = {State.SUCCEEDED, State.FAILED, State.CANCELLED}


def test_by_default_successes_stay_a_day_cancellations_a_week_and_failures_for_ever(clocked: Rota, clock: Clock) -> None:
    finish_one_each(clocked)
    clock.forward(DAY)
    assert clocked.purge() == {State.SUCCEEDED: 0, State.CANCELLED: 0}
    clock.forward(1)
    assert clocked.purge() == {State.SUCCEEDED: 1, State.CANCELLED: 0}
    clock.forward(6 * DAY)
    assert clocked.purge() == {State.SUCCEEDED: 0, State.CANCELLED: 1}
    clock.forward(36_000 * DAY)
    clocked.purge()
    assert left(clocked) == {State.FAILED}


@pytest.mark.parametrize("state", sorted(ALL))
def test_a_state_kept_for_no_time_is_gone_as_its_jobs_finish(store_url: str, state: State) -> None:
    keep: dict[str, Any] = {f"keep_{state}": 0}
    with Rota(store_url, **keep) as app:
        finish_one_each(app)
        assert left(app) == ALL - {state}


def test_a_job_that_is_not_kept_is_not_found_when_it_ended(store_url: str) -> None:
    with Rota(store_url, keep_cancelled=0) as app:
        job = app.send("t")
        assert job.cancel() is State.CANCELLED
        with pytest.raises(JobNotFound):
            job.refresh()


def test_a_state_kept_for_ever_is_never_purged(store_url: str, clock: Clock) -> None:
    with Rota(store_url, clock=clock, keep_succeeded=None, keep_failed=timedelta(hours=1), keep_cancelled=None) as app:
        finish_one_each(app)
        clock.forward(36_000 * DAY)
        assert app.purge() == {State.FAILED: 1}
        assert left(app) == {State.SUCCEEDED, State.CANCELLED}


def test_a_purge_may_name_other_ages(clocked: Rota, clock: Clock) -> None:
    finish_one_each(clocked)
    clock.forward(60)
    assert clocked.purgeable(failed=30, succeeded=timedelta(minutes=2)) == {State.FAILED: 1, State.SUCCEEDED: 0}
    assert clocked.purge(failed=30, succeeded=timedelta(minutes=2)) == {State.FAILED: 1, State.SUCCEEDED: 0}
    assert left(clocked) == {State.SUCCEEDED, State.CANCELLED}
    assert clocked.purge(succeeded=None, cancelled=0) == {State.CANCELLED: 1}


def test_what_would_be_purged_is_told_and_stays(clocked: Rota, clock: Clock) -> None:
    finish_one_each(clocked)
    clock.forward(8 * DAY)
    assert clocked.purgeable() == asyncio.run(clocked.apurgeable()) == {State.SUCCEEDED: 1, State.CANCELLED: 1}
    assert left(clocked) == ALL
    assert asyncio.run(clocked.apurge()) == {State.SUCCEEDED: 1, State.CANCELLED: 1}


def test_a_purge_leaves_unfinished_jobs_alone(clocked: Rota, clock: Clock) -> None:
    clocked.named("t").using(delay=36_000 * DAY).enqueue()
    clocked.send("t")
    clock.forward(1_000 * DAY)
    clocked.purge(succeeded=0, failed=0, cancelled=0)
    assert left(clocked) == {State.SCHEDULED, State.QUEUED}


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("state", ["running", "queued", "done"])
def test_only_finished_jobs_are_purged(app: Rota, state: str) -> None:
    for look in (app.purge, app.purgeable):
        with pytest.raises(ConfigError, match=rf"^no finished job is '{state}': name cancelled, failed, succeeded"):
            look(**{state: 5})


def test_the_ages_of_a_purge_are_spans(app: Rota) -> None:
    with pytest.raises(ConfigError, match=r"^failed=-1 is negative"):
        app.purge(failed=-1)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
def test_a_purge_goes_on_until_all_is_gone(clocked: Rota, clock: Clock) -> None:
    clocked.named("t").enqueue_many(() for _ in range(STEP * 10 + 1))
    clocked.change_all(Move.CANCEL, where())
    clock.forward(1)
    assert clocked.purge(cancelled=0) == {State.CANCELLED: STEP * 10 + 1}
    assert clocked.jobs() == []


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_of_many_failures_none_is_dropped_before_its_time(store_url: str, clock: Clock) -> None:
    """What is kept is limited by age, never by number."""
    with Rota(store_url, clock=clock) as app:
        jobs = app.named("unknown").using(max_attempts=1).enqueue_many(() for _ in range(MANY))
        worker = joined(app)
        broken = Failed(Failure("E", "m"))
        while claims := app.store.claim(Ask(worker, ("default",), 2_000), app.now()):
            ends = [Ended(claim.id, claim.claim, broken) for claim in claims]
            assert len(app.store.finish(worker, ends, None, app.now()).counted) == len(claims)
        clock.forward(36_000 * DAY)
        app.purge()
        assert app.stats().states[State.FAILED] == MANY
        assert app.purge(failed=36_000 * DAY) == {State.FAILED: 0}
        assert {len(jobs[number].attempts()) for number in (0, MANY - 1)} == {1}
        clock.forward(1)
        assert app.purge(failed=36_000 * DAY) == {State.FAILED: MANY}
