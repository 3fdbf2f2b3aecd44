"""Pausing and resuming queues from Python, looking at queues, and what the other looks say of a pause."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.conftest import Clock
from app.words import claimed
from rota import ConfigError, Rota, State
from rota.rules.health import Trouble


@pytest.fixture
def mailed(clocked: Rota) -> Rota:
    """An app whose clock stands still, with a task on the queue `mail` and one on the queue `default`."""
    clocked.task(name="send", queue="mail")(lambda: None)
    clocked.task(name="clean")(lambda: None)
    return clocked


def ran(app: Rota, **options: Any) -> list[str]:
    return [event.task for event in app.drain(**options)]


# -- jobs run in the caller ---------------------------------------------------------------------


@pytest.mark.parametrize("queues", [None, ["mail", "default"]], ids=["all", "named"])
def test_run_one_and_drain_leave_a_paused_queue_alone(mailed: Rota, queues: list[str] | None) -> None:
    mailed.send("send")
    mailed.send("clean")
    mailed.pause("mail")
    assert str(mailed.run_one(queues)) == "ran clean"
    assert mailed.run_one(queues) is None
    assert ran(mailed, queues=queues) == []
    assert mailed.resume("mail")
    assert ran(mailed, queues=queues) == ["send"]


def test_a_body_that_pauses_its_queue_is_the_last_of_it(app: Rota) -> None:
    @app.task(name="stop", queue="mail")
    def stop() -> None:
        app.pause("mail")

    stop.enqueue_many([(), ()])
    assert ran(app) == ["stop"]


def test_a_pause_until_a_moment_is_over_at_it(mailed: Rota, clock: Clock) -> None:
    mailed.send("send")
    mailed.pause("mail", until=clock.now + timedelta(minutes=5))
    clock.forward(299)
    assert ran(mailed) == []
    clock.forward(1)
    assert ran(mailed) == ["send"]


def test_a_chosen_moment_may_lie_behind_the_pause(mailed: Rota, clock: Clock) -> None:
    mailed.send("send")
    mailed.pause("mail", until=60)
    assert ran(mailed, now=clock.now + timedelta(seconds=59)) == []
    assert ran(mailed, now=clock.now + timedelta(seconds=60)) == ["send"]


def test_under_a_limit_a_paused_queue_is_left_alone_too(clocked: Rota) -> None:
    @clocked.task(name="a", queue="mail", concurrency=1)
    def limited() -> None: ...

    @clocked.task(name="b", queue="post")
    def free() -> None: ...

    limited.enqueue_many([(), ()])
    free.enqueue()
    clocked.pause("mail")
    assert ran(clocked) == ["b"]
    clocked.resume("mail")
    assert ran(clocked) == ["a", "a"]


def test_a_running_job_goes_on_and_is_recorded(app: Rota) -> None:
    job = app.send("t")
    claimed(app)
    app.pause("default")
    assert job.refresh().status is State.RUNNING


# -- what may be said ---------------------------------------------------------------------------


@pytest.mark.parametrize("until", [60, 60.0, timedelta(minutes=1)], ids=["int", "float", "timedelta"])
def test_a_span_counts_from_now(mailed: Rota, clock: Clock, until: Any) -> None:
    mailed.pause("mail", until=until, by="Ada")
    [queue] = [each for each in mailed.queues() if each.paused]
    assert queue.pause is not None
    assert (queue.pause.until or 0) - queue.pause.at == 60_000_000
    assert queue.pause.by == "Ada"


@pytest.mark.parametrize("by", [None, ""])
def test_nobody_need_be_named(mailed: Rota, by: str | None) -> None:
    mailed.pause("mail", by=by)
    assert [queue.pause.by for queue in mailed.queues() if queue.pause] == [""]


@pytest.mark.parametrize("by", [0, b"Ada", "x" * 300, "two\nlines"])
def test_what_can_be_no_name_is_refused(mailed: Rota, by: Any) -> None:
    with pytest.raises(ConfigError, match=r"^by="):
        mailed.pause("mail", by=by)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        (0, "would be over at once"),
        (-1, "negative"),
        ("tomorrow", "no span of time"),
        (datetime(2030, 1, 1), "no time zone"),  # noqa: DTZ001
        (True, "no span of time"),
    ],
)
def test_what_is_no_end_of_a_pause_is_refused(mailed: Rota, until: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mailed.pause("mail", until=until)
    assert not [each for each in mailed.queues() if each.paused]


def test_a_moment_that_is_past_is_refused(mailed: Rota, clock: Clock) -> None:
    with pytest.raises(
        ConfigError, match=r"that moment is past \(it is 2030-01-01 00:00:00\+00:00\), so the pause would be over at once"
    ):
        mailed.pause("mail", until=clock.now)


@pytest.mark.parametrize("name", ["", "a\nb", "q" * 201, 5])
def test_what_is_no_name_is_refused(mailed: Rota, name: Any) -> None:
    for do in (mailed.pause, mailed.resume):
        with pytest.raises(ConfigError, match="queue="):
            do(name)


def test_a_resume_says_whether_there_was_a_pause(mailed: Rota) -> None:
    assert not mailed.resume("mail")
    mailed.pause("mail")
    assert (mailed.resume("mail"), mailed.resume("mail")) == (True, False)


def test_pauses_can_be_awaited(app: Rota) -> None:
    async def main() -> None:
        await app.apause("mail", until=60)
        assert [queue.name for queue in await app.aqueues() if queue.paused] == ["mail"]
        assert await app.aresume("mail")

    asyncio.run(main())


# -- queues -------------------------------------------------------------------------------------


def test_queues_are_listed_with_what_is_unfinished(mailed: Rota, clock: Clock) -> None:
    mailed.send("clean")
    ran(mailed)
    start = clock.now
    mailed.named("other").using(queue="post").enqueue()
    clock.forward(5)
    mailed.named("other").using(queue="post").enqueue()
    mailed.named("other").using(queue="post", delay=60).enqueue()
    mailed.pause("not yet known")
    by_name = {queue.name: queue for queue in mailed.queues()}
    assert list(by_name) == ["default", "mail", "not yet known", "post"]
    post = by_name["post"]
    assert post.states == {State.SCHEDULED: 1, State.QUEUED: 2, State.HELD: 0, State.RUNNING: 0}
    assert (post.jobs, post.oldest, post.paused) == (3, int(start.timestamp()) * 1_000_000, False)
    assert (by_name["default"].jobs, by_name["default"].oldest) == (0, None)
    assert by_name["not yet known"].paused


def test_what_is_due_and_was_not_promoted_waits_too(mailed: Rota, clock: Clock) -> None:
    mailed.named("other").using(queue="post", delay=60).enqueue()
    clock.forward(60)
    [post] = [queue for queue in mailed.queues() if queue.name == "post"]
    assert post.oldest == int(clock.now.timestamp()) * 1_000_000


def test_a_pause_that_is_over_is_not_told(mailed: Rota, clock: Clock) -> None:
    mailed.pause("mail", until=5)
    mailed.pause("gone", until=5)
    clock.forward(5)
    assert [(queue.name, queue.paused) for queue in mailed.queues()] == [("default", False), ("mail", False)]


# -- other looks --------------------------------------------------------------------------------


def test_a_job_says_that_its_queue_is_paused(mailed: Rota, clock: Clock) -> None:
    job, later = mailed.send("send"), mailed.named("send").using(delay=60).enqueue()
    mailed.pause("mail", by="Ada")
    clock.forward(5)
    for each in (job, later):
        said = str(each.explain())
        assert "Queue 'mail' has been paused by Ada for 5.0 s: let it go on with rota queues resume mail." in said
        assert "free slot" not in said
    found = job.explain()
    assert found.pause is not None
    assert found.pause.by == "Ada"
    mailed.pause("mail", until=60)
    assert "has been paused for 5.0 s, until 2030-01-01 00:01:05+00:00, for another 60 s." in str(job.explain())
    mailed.resume("mail")
    assert "paused" not in str(job.explain())


def test_a_held_job_says_it_too(clocked: Rota) -> None:
    @clocked.task(name="a", queue="mail", rate="1/h")
    def limited() -> None: ...

    jobs = limited.enqueue_many([(), ()])
    ran(clocked)
    clocked.pause("mail")
    held = jobs[1].refresh()
    assert held.status is State.HELD
    assert "Queue 'mail' has been paused" in str(held.explain())


def test_jobs_that_wait_in_a_paused_queue_are_no_problem(mailed: Rota, clock: Clock) -> None:
    mailed.send("send")
    mailed.send("clean")
    clock.forward(3600)
    mailed.pause("mail")
    for problem in mailed.check(max_wait=60):
        assert "'default'" in problem.text
        assert "mail" not in problem.text
    mailed.pause("default")
    assert mailed.check(max_wait=60) == []


def test_a_pause_that_lasts_too_long_is_a_problem(mailed: Rota, clock: Clock) -> None:
    mailed.send("send")
    mailed.pause("mail", by="Ada")
    clock.forward(3600)
    assert mailed.check(max_wait=60, max_pause=3600) == []
    [problem] = mailed.check(max_wait=60, max_pause=3599)
    assert (problem.trouble, problem.jobs) == (Trouble.PAUSED, 1)
    assert problem.text == (
        "queue 'mail' was paused by Ada 3600 s ago, longer than 3599 s: let it go on with rota queues resume mail"
    )
