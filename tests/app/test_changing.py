"""Cancelling, retrying and deleting jobs, one and many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.conftest import Clock
from app.words import claimed
from rota import ConfigError, JobNotFound, Move, MoveRefused, Rota, State, operate
from rota.model import JobRow
from rota.operate import STEP, Step, where


def test_a_cancelled_job_does_not_run(app: Rota) -> None:
    waiting, later = app.send("t"), app.named("t").using(delay=3600).enqueue()
    assert [waiting.cancel(), app.cancel(later.id)] == [State.CANCELLED, State.CANCELLED]
    assert app.drain() == []
    assert (waiting.status, waiting.reason, later.refresh().status) == (State.CANCELLED, "cancelled", State.CANCELLED)


def test_a_change_by_the_handle_itself_is_seen_at_the_next_look(app: Rota) -> None:
    job = app.send("t")
    assert job.status is State.QUEUED
    job.cancel()
    assert job.status is State.CANCELLED
    assert job.retry().status is State.QUEUED
    job.delete()
    with pytest.raises(JobNotFound):
        job.status


def test_the_cancel_of_a_running_job_asks_its_worker(app: Rota) -> None:
    job = app.send("t")
    claimed(app)
    assert job.cancel() is State.RUNNING
    assert job.row.cancelling


def test_a_finished_job_is_cancelled_too_late(app: Rota) -> None:
    app.task(name="t")(lambda: None)
    job = app.send("t")
    app.drain()
    assert job.cancel() is State.SUCCEEDED
    assert job.status is State.SUCCEEDED


def test_a_retry_starts_over_with_all_attempts(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="t", max_attempts=1)
    def broken() -> None:
        raise ValueError("no")

    job = broken.enqueue()
    clocked.drain()
    clock.forward(60)
    assert job.retry() is job
    assert (job.status, job.attempt, job.run_at) == (State.QUEUED, 0, clock.now)
    assert str(clocked.run_one()) == "failed t on attempt 1: no"
    assert len(job.attempts()) == 2


def test_a_retry_of_a_scheduled_job_runs_it_now(clocked: Rota, clock: Clock) -> None:
    job = clocked.named("t").using(delay=3600).enqueue()
    assert clocked.retry(job.id).run_at == clock.now
    assert clocked.run_one() is not None


@pytest.mark.parametrize(("change", "done"), [(Rota.retry, "retried"), (Rota.delete, "deleted")])
def test_a_running_job_is_neither_retried_nor_deleted(app: Rota, change: Any, done: str) -> None:
    job = app.send("t")
    claimed(app)
    with pytest.raises(MoveRefused, match=rf"^job {job.id} is running, so it cannot be {done}: cancel it first, or wait"):
        change(app, job.id)
    assert job.status is State.RUNNING


def test_a_deleted_job_is_gone_with_its_attempts(app: Rota) -> None:
    job = app.named("unknown").using(max_attempts=1).enqueue()
    app.drain()
    assert len(job.attempts()) == 1
    app.delete(job.id)
    assert job.attempts() == []
    with pytest.raises(JobNotFound):
        job.delete()


def test_every_change_can_be_awaited(app: Rota) -> None:
    async def main() -> None:
        job = await app.asend("t")
        assert await job.acancel() is State.CANCELLED
        assert (await job.aretry()).id == job.id
        await job.adelete()
        for change in (app.acancel, app.aretry, app.adelete, app.aget):
            with pytest.raises(JobNotFound):
                await change(job.id)

    asyncio.run(main())


# -- many ---------------------------------------------------------------------------------------


def test_a_change_of_many_goes_in_steps_and_tells_how_far_it_is(app: Rota) -> None:
    many = 2 * STEP + 7
    app.named("t").enqueue_many(() for _ in range(many))
    other = app.send("other")
    told: list[Step] = []
    changed = app.change_all(Move.CANCEL, where("queued", task="t"), told.append)
    assert [step.seen for step in told] == [STEP, 2 * STEP, many]
    assert [len(step.changed) for step in told] == [STEP, STEP, 7]
    assert {each.after for each in changed} == {State.CANCELLED}
    assert len({each.id for each in changed}) == many
    assert (app.stats().states[State.CANCELLED], other.refresh().status) == (many, State.QUEUED)


def test_many_are_retried_then_deleted(app: Rota) -> None:
    app.named("unknown").using(max_attempts=1).enqueue_many(() for _ in range(5))
    app.drain()
    assert len(app.change_all(Move.RETRY, where("failed"))) == 5
    assert app.stats().states[State.QUEUED] == 5
    assert [each.after for each in asyncio.run(app.achange_all(Move.DELETE, where()))] == [None] * 5
    assert app.jobs() == []


def test_only_what_changed_is_answered(app: Rota) -> None:
    app.send("first")
    claimed(app)
    waiting = app.send("second")
    app.cancel(app.send("third").id)
    told: list[Step] = []
    changed = app.change_all(Move.DELETE, where(status=["queued", "running"]), told.append)
    assert ([each.id for each in changed], [step.seen for step in told]) == ([waiting.id], [2])


def test_a_job_that_left_its_state_since_it_was_found_stays_as_it_is(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = app.named("t").enqueue_many([()] * 4)
    for job in jobs[:2]:
        job.cancel()
    find = operate.find

    def find_late(*asked: Any) -> list[JobRow]:
        """Before their turn comes somebody else retries one that was cancelled, and cancels one that waited."""
        if rows := find(*asked):
            jobs[0].retry()
            jobs[2].cancel()
        return rows

    monkeypatch.setattr(operate, "find", find_late)
    assert {each.id for each in app.change_all(Move.DELETE, where("cancelled"))} == {jobs[1].id}
    monkeypatch.undo()
    assert [app.get(job.id).status for job in (jobs[0], jobs[2], jobs[3])] == [State.QUEUED, State.CANCELLED, State.QUEUED]


def test_a_cancel_of_many_answers_those_that_were_asked_to_stop(app: Rota) -> None:
    app.send("first")
    claimed(app)
    [changed] = app.change_all(Move.CANCEL, where())
    assert (changed.before, changed.after) == (State.RUNNING, State.RUNNING)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("move", [Move.CLAIM, Move.SUCCEED, "explode", None])
def test_jobs_are_not_changed_in_other_ways(app: Rota, move: Any) -> None:
    with pytest.raises(ConfigError, match=r"^move=.*: jobs are changed by Move\.CANCEL, Move\.RETRY or Move\.DELETE"):
        app.change_all(move, where())


def test_a_change_of_many_on_an_unknown_queue_is_refused(app: Rota) -> None:
    with pytest.raises(ConfigError, match="no queue is named 'mial'"):
        app.change_all(Move.DELETE, where(queue="mial"))
