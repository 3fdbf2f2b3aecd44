"""Jobs edited while they wait, one and many, and changes of many that are interrupted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.conftest import Clock
from app.words import claimed
from rota import ConfigError, JobNotFound, Move, MoveRefused, Rota, State
from rota.ids import new_id
from rota.model import NewJob
from rota.operate import STEP, Step, where


def test_a_job_gets_another_priority_queue_and_moment(clocked: Rota, clock: Clock) -> None:
    job = clocked.send("t")
    at = clock.now + timedelta(hours=1)
    assert job.edit(priority=5, queue="mail", run_at=at) is job
    assert (job.priority, job.queue, job.run_at, job.status) == (5, "mail", at, State.SCHEDULED)
    assert clocked.edit(job.id, delay=0).status is State.QUEUED
    assert (job.refresh().run_at, job.priority) == (clock.now, 5)


def test_an_edited_job_runs_when_and_where_it_is_to(clocked: Rota, clock: Clock) -> None:
    clocked.task(name="t")(lambda: None)
    first, second, third = (clocked.send("t") for _ in range(3))
    third.edit(priority=1)
    first.edit(delay=timedelta(minutes=1))
    second.edit(queue="other")
    assert [event.id for event in clocked.drain(["default"])] == [third.id]
    clock.forward(60)
    assert [event.id for event in clocked.drain()] == [second.id, first.id]


def test_a_held_job_that_is_edited_is_looked_at_by_its_limit_anew(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="t", rate="1/m")
    def limited() -> None: ...

    jobs = limited.enqueue_many([()] * 3)
    clocked.drain()
    assert jobs[2].refresh().status is State.HELD
    assert jobs[2].edit(priority=1).status is State.QUEUED
    assert clocked.drain() == []
    assert jobs[2].refresh().status is State.HELD
    clock.forward(60)
    assert [event.id for event in clocked.drain()] == [jobs[2].id]


def test_a_running_job_cannot_be_edited(app: Rota) -> None:
    job = app.send("t")
    claimed(app)
    with pytest.raises(MoveRefused, match=rf"^job {job.id} is running, so it cannot be edited: cancel it first, or wait"):
        job.edit(priority=1)


def test_a_finished_job_cannot_be_edited(app: Rota) -> None:
    job = app.send("t")
    job.cancel()
    with pytest.raises(MoveRefused, match=rf"^job {job.id} is cancelled, so it cannot be edited: retry it first"):
        app.edit(job.id, priority=1)


def test_an_unknown_job_cannot_be_edited(app: Rota) -> None:
    for id in (new_id(), "no id"):
        with pytest.raises(JobNotFound):
            app.edit(id, priority=1)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "nothing is given to change"),
        ({"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "both given"),
        ({"priority": "high"}, "priority='high'"),
        ({"queue": ""}, "queue=''"),
        ({"delay": -1}, "negative"),
        ({"run_at": datetime(2030, 1, 1)}, "no time zone"),  # noqa: DTZ001
    ],
    ids=lambda each: each if isinstance(each, str) else "-",
)
def test_what_no_job_can_be_is_refused(app: Rota, fields: dict[str, Any], said: str) -> None:
    job = app.send("t")
    for edit in (lambda: job.edit(**fields), lambda: app.edit_all(where(), **fields)):
        with pytest.raises(ConfigError, match=said):
            edit()
    assert job.refresh().status is State.QUEUED


def test_edits_can_be_awaited(app: Rota) -> None:
    async def main() -> None:
        job = await app.asend("t")
        assert (await job.aedit(priority=3)).priority == 3
        assert (await app.aedit(job.id, queue="mail")).queue == "mail"
        [changed] = await app.aedit_all(where(queue="mail"), delay=60)
        assert changed.after is State.SCHEDULED

    asyncio.run(main())


# -- many ---------------------------------------------------------------------------------------


def test_all_that_wait_are_edited_in_steps(app: Rota) -> None:
    many = STEP + 3
    app.named("t").enqueue_many(() for _ in range(many))
    app.send("another")
    done = app.send("t")
    done.cancel()
    told: list[Step] = []
    changed = app.edit_all(where(task="t"), told.append, queue="mail")
    assert [len(step.changed) for step in told] == [STEP - 1, 4]
    assert len(changed) == many
    assert [queue.states[State.QUEUED] for queue in app.queues() if queue.name == "mail"] == [many]
    assert done.refresh().queue == "default"


def test_a_change_that_was_interrupted_goes_on_where_it_was(app: Rota) -> None:
    jobs = app.named("t").enqueue_many(() for _ in range(2 * STEP + 1))
    seen: list[Step] = []

    def stop(step: Step) -> None:
        seen.append(step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.edit_all(where(), stop, priority=1)
    assert seen[0].last == jobs[STEP + 1].id
    rest = app.edit_all(where(), before=seen[0].last, priority=1)
    assert {each.id for each in rest} == {job.id for job in jobs[: STEP + 1]}
    assert {job.row.priority for job in app.jobs(limit=3 * STEP)} == {1}


def test_what_is_enqueued_after_a_change_began_stays_as_it_is(app: Rota) -> None:
    app.named("t").enqueue_many(() for _ in range(STEP + 1))
    late = NewJob("00000000-0000-7000-8000-000000000001", "t", "default", "[[],{}]")
    new = []

    def meanwhile(step: Step) -> None:
        if step.seen == STEP:
            new.append(app.send("t"))
            app.store.insert([late])  # by the id that a clock that is far behind gave it

    changed = app.change_all(Move.CANCEL, where(), meanwhile)
    assert len(changed) == STEP + 1
    assert (new[0].refresh().status, app.get(late.id).status) == (State.QUEUED, State.QUEUED)
