"""An attempt that failed is followed by another, when and where the policy or the body says."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from rota import Abandon, Retry, Rota, Snooze
from rota.model import State
from working import eventually, working

PATIENCE = 30.0


def test_the_policy_says_how_long_the_next_attempt_waits(app: Rota) -> None:
    @app.task(retry=[100, 200])
    def bad() -> None:
        raise ValueError("no")

    with working(app):
        job = bad.enqueue()
        eventually(lambda: job.refresh().status is State.SCHEDULED)
        wait = job.run_at - datetime.now(UTC)
    assert timedelta(seconds=80) < wait <= timedelta(seconds=100)
    assert (job.attempt, job.reason) == (1, "no")


def test_a_job_that_is_out_of_attempts_stays_failed_with_each_attempt_remembered(app: Rota) -> None:
    @app.task(retry=0, max_attempts=3)
    def bad() -> None:
        raise ValueError("no")

    with working(app):
        job = bad.enqueue().wait(PATIENCE)
    assert (job.status, job.attempt, job.reason) == (State.FAILED, 3, "no")
    assert [(attempt.outcome, attempt.attempt) for attempt in job.attempts()] == [("again", 1), ("again", 2), ("failed", 3)]


def test_a_body_may_ask_for_its_own_wait(app: Rota) -> None:
    @app.task(retry=None)
    def bad() -> None:
        raise Retry(after=100, reason="the partner is busy")

    with working(app):
        job = bad.enqueue()
        eventually(lambda: job.refresh().status is State.SCHEDULED)
    assert (job.attempt, job.reason) == (1, "the partner is busy")


def test_a_body_may_give_up(app: Rota) -> None:
    @app.task
    def bad() -> None:
        raise Abandon("order 42 was refunded")

    with working(app):
        job = bad.enqueue().wait(PATIENCE)
    assert (job.status, job.attempt, job.reason) == (State.FAILED, 1, "order 42 was refunded")


def test_a_snooze_uses_no_attempt(app: Rota) -> None:
    naps = []

    @app.task(max_attempts=1, keep_result=True)
    def sleepy() -> int:
        naps.append(1)
        if len(naps) < 4:
            raise Snooze(0.1)
        return len(naps)

    with working(app):
        job = sleepy.enqueue().wait(PATIENCE)
    assert (job.result(), job.attempt) == (4, 1)


@pytest.mark.parametrize("answer", [None, "abc", float("nan"), -5, 1e18])
def test_an_absurd_wait_hurts_nobody_else(app: Rota, answer: object) -> None:
    @app.task(retry=lambda attempt, error: answer)
    def bad() -> None:
        raise ValueError("no")

    @app.task
    def good() -> None: ...

    with working(app):
        odd, fine = bad.enqueue(), good.enqueue()
        assert fine.wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: odd.refresh().status in (State.SCHEDULED, State.FAILED))


def test_a_retry_function_that_exits_fails_its_own_job_only(app: Rota) -> None:
    def leave(attempt: int, error: BaseException) -> float:
        raise SystemExit(3)

    @app.task(retry=leave)
    def bad() -> None:
        raise ValueError("no")

    @app.task
    def good() -> None: ...

    with working(app, concurrency=1):
        assert bad.enqueue().wait(PATIENCE).status is State.FAILED
        assert good.enqueue().wait(PATIENCE).status is State.SUCCEEDED


def test_a_delayed_retry_is_picked_up_by_another_worker(app: Rota) -> None:
    tried = []

    @app.task(retry=1)
    def bad() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise ValueError("no")

    with working(app):
        job = bad.enqueue()
        eventually(lambda: job.refresh().status is State.SCHEDULED)
    with working(app):
        assert job.wait(PATIENCE).status is State.SUCCEEDED


def test_a_job_due_later_starts_when_it_is_due(app: Rota) -> None:
    began: list[datetime] = []

    @app.task
    def later() -> None:
        began.append(datetime.now(UTC))

    with working(app, poll=30):
        job = later.using(delay=0.7).enqueue().wait(PATIENCE)
    assert timedelta(0) <= began[0] - job.run_at < timedelta(seconds=3)


def test_what_a_stranger_enqueued_is_looked_at_again_with_growing_waits_and_fails_in_words(store_url: str) -> None:
    at = [datetime.now(UTC)]
    ticking = threading.Lock()

    def clock() -> datetime:
        with ticking:
            return at[0]

    def skip(seconds: float) -> None:
        with ticking:
            at[0] += timedelta(seconds=seconds)

    with Rota(store_url, clock=clock) as app:

        @app.task
        def good() -> None: ...

        before, odd, after = good.enqueue(), app.send("no.such.task", 1), good.enqueue()
        waits = []
        with working(app, lease=timedelta(days=30), poll=0.05):
            for job in (before, after):
                assert job.wait(PATIENCE).status is State.SUCCEEDED
            while not odd.refresh().status.final:
                if odd.status is State.SCHEDULED and odd.run_at > clock():
                    waits.append((odd.run_at - clock()).total_seconds())
                    skip(waits[-1])
                eventually(lambda: odd.refresh().status is not State.SCHEDULED or odd.run_at > clock())
                eventually(lambda: odd.refresh().status not in (State.QUEUED, State.RUNNING))
        assert (odd.status, odd.reason) == (State.FAILED, "no performer is named no.such.task")
        assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
        assert odd.attempt == 1
