"""Why a job is not running, found out from each store."""

from __future__ import annotations

import asyncio

import pytest

from app.conftest import Clock
from app.words import joined
from rota import Abandon, JobNotFound, Rota, State


def test_a_queued_job_is_behind_those_with_more_priority_or_due_before_it(clocked: Rota, clock: Clock) -> None:
    joined(clocked, tasks=["t"])
    first = clocked.send("t")
    clock.forward(1)
    job = clocked.send("t")
    clock.forward(1)
    later, urgent = clocked.send("t"), clocked.named("t").using(priority=5).enqueue()
    clocked.named("t").using(queue="mail", priority=9).enqueue()
    assert [each.explain().ahead for each in (urgent, first, job, later)] == [0, 1, 2, 3]
    assert "behind 2 jobs of its queue" in str(job.explain())


def test_a_scheduled_job_says_when_it_is_due(clocked: Rota) -> None:
    joined(clocked, tasks=["t"])
    found = clocked.named("t").using(delay=90).enqueue().explain()
    assert (found.status, str(found)) == (State.SCHEDULED, "It is due at 2030-01-01 00:01:30+00:00, in 90 s.")


def test_a_job_that_nobody_serves_says_so(clocked: Rota) -> None:
    joined(clocked, queues=["mail"], tasks=["t"])
    assert "No live worker serves queue 'default'" in str(clocked.explain(clocked.send("t").id))


def test_a_finished_job_says_how_it_ended(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="t")
    def refuse() -> None:
        raise Abandon("order 42 was refunded")

    job = refuse.enqueue()
    clocked.drain()
    clock.forward(5)
    assert str(job.explain()).startswith("It failed 5.0 s ago, at 2030-01-01 00:00:00+00:00, on attempt 1 of 5, after ")
    reason, then = str(job.explain()).splitlines()
    assert reason.endswith(": order 42 was refunded.")
    assert then == f"With rota jobs retry {job.id} it runs again, once what was wrong is mended."


def test_an_unknown_job_is_not_found(app: Rota) -> None:
    for id in ("0198c0de-0000-7000-8000-000000000000", "none"):
        with pytest.raises(JobNotFound):
            app.explain(id)


def test_coroutines_may_ask_too(app: Rota) -> None:
    job = app.send("t")
    assert asyncio.run(app.aexplain(job.id)).sentences[-1] == asyncio.run(job.aexplain()).sentences[-1]


def test_an_eager_job_says_how_it_ended() -> None:
    app = Rota(eager=True)
    app.task(name="t", concurrency=1, rate="1/d")(lambda: None)
    assert [str(app.send("t").explain())[:12] for _ in range(3)] == ["It succeeded"] * 3
