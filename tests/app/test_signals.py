"""How a task speaks to whoever runs it, and when its next attempt is due, at chosen moments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from app.conftest import Clock
from rota import Abandon, Kind, Retry, Rota, Snooze, State
from rota.retries import ByError, Exponential, Fixed, Polynomial, Waits, never


def raising(app: Rota, *errors: BaseException | None, **options: Any) -> Any:
    """A job whose attempts raise these errors in turn; `None` returns."""
    left = list(errors)

    @app.task(name="t", **options)
    def body() -> None:
        if (error := left.pop(0)) is not None:
            raise error

    return body.enqueue()


def test_retry_fails_the_attempt_and_names_the_wait(clocked: Rota, clock: Clock) -> None:
    job = raising(clocked, Retry(after=30, reason="the partner is busy"), None)
    event = clocked.run_one()
    assert event is not None
    assert (str(event), event.kind) == ("failed t on attempt 1: the partner is busy", Kind.AGAIN)
    assert (job.refresh().status, job.attempt, job.run_at) == (State.SCHEDULED, 1, clock.now + timedelta(seconds=30))
    assert job.reason == "the partner is busy"
    clock.forward(30)
    assert str(clocked.run_one()) == "ran t"


def test_retry_outweighs_a_policy_of_none(clocked: Rota) -> None:
    job = raising(clocked, Retry(after=timedelta(minutes=1)), retry=None)
    clocked.run_one()
    assert job.status is State.SCHEDULED


def test_retry_on_the_last_attempt_fails_the_job_with_its_reason(clocked: Rota) -> None:
    job = raising(clocked, Retry(after=0), Retry(after=0, reason="still busy"), max_attempts=2)
    assert [event.kind for event in clocked.drain()] == [Kind.AGAIN, Kind.FAILED]
    assert (job.refresh().status, job.attempt, job.reason) == (State.FAILED, 2, "still busy")


def test_abandon_fails_the_job_whatever_attempts_are_left(clocked: Rota) -> None:
    job = raising(clocked, Abandon("order 42 was refunded"))
    assert str(clocked.run_one()) == "failed t on attempt 1: order 42 was refunded"
    assert (job.refresh().status, job.attempt, job.max_attempts) == (State.FAILED, 1, 5)


def test_snooze_uses_no_attempt(clocked: Rota, clock: Clock) -> None:
    job = raising(clocked, Snooze(60), Snooze(timedelta(minutes=1)), None, max_attempts=1)
    for _ in range(2):
        event = clocked.run_one()
        assert (str(event), event and event.kind) == ("snoozed t for 60 s", Kind.SNOOZED)
        assert (job.refresh().status, job.attempt, job.run_at) == (State.SCHEDULED, 0, clock.now + timedelta(minutes=1))
        clock.forward(60)
    assert str(clocked.run_one()) == "ran t"
    assert job.refresh().attempt == 1


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("signal", [Retry, Snooze])
def test_a_signal_with_an_impossible_wait_is_a_failure_that_says_so(clocked: Rota, signal: Any) -> None:
    clocked.task(name="t", max_attempts=1)(lambda: signal(-1))
    job = clocked.send("t")
    clocked.run_one()
    assert "=-1 is negative or not a number" in (job.refresh().reason or "")


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
def test_a_limit_that_is_neither_true_nor_a_name_is_a_failure_that_says_so(clocked: Rota) -> None:
    clocked.task(name="t", max_attempts=1)(lambda: Retry(5, limit=7))  # type: ignore[arg-type]
    job = clocked.send("t")
    clocked.run_one()
    assert job.refresh().reason == "limit=7: it is True, or the name of a limit of the task"


# -- retry policies -----------------------------------------------------------------------------

OSERROR, VALUE = OSError("disk"), ValueError("no")
POLICIES: dict[str, tuple[Any, Sequence[BaseException], Sequence[float | None]]] = {
    "the default": (Polynomial(), [VALUE] * 4, [3, 18, 83, 258]),
    "seconds": (7, [VALUE] * 4, [7, 7, 7, 7]),
    "a timedelta": (timedelta(minutes=2), [VALUE] * 4, [120] * 4),
    "a list": ([1, 5, 30], [VALUE] * 4, [1, 5, 30, 30]),
    "none": (None, [VALUE], [None]),
    "False": (False, [VALUE], [None]),
    "True": (True, [VALUE], [3]),
    "never": (never, [VALUE], [None]),
    "Fixed": (Fixed(5), [VALUE] * 4, [5, 5, 5, 5]),
    "Waits": (Waits((1, 2)), [VALUE] * 4, [1, 2, 2, 2]),
    "Exponential": (Exponential(2, factor=3, cap=20), [VALUE] * 4, [2, 6, 18, 20]),
    "Polynomial": (Polynomial(power=2, plus=0), [VALUE] * 4, [1, 4, 9, 16]),
    "ByError": (ByError({OSError: 60}, otherwise=5), [OSERROR, VALUE, OSERROR], [60, 5, 60]),
    "a dict": ({OSError: 60, ValueError: None}, [OSERROR, VALUE], [60, None]),
    "a function": (lambda attempt, error: 10 * attempt if error is VALUE else None, [VALUE, VALUE, OSERROR], [10, 20, None]),
    "an absurd wait": (1e18, [VALUE], [36_500 * 86_400]),
}


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("name", POLICIES)
def test_the_next_attempt_is_due_when_the_policy_says(clocked: Rota, clock: Clock, name: str) -> None:
    policy, errors, waits = POLICIES[name]
    job = raising(clocked, *errors, retry=policy)
    for wait in waits:
        assert clocked.run_one() is not None
        row = job.refresh()
        if wait is None:
            assert row.status is State.FAILED
            break
        assert row.run_at == clock.now + timedelta(seconds=wait)
        assert clocked.run_one(now=row.run_at - timedelta(microseconds=1)) is None
        clock.forward(wait)


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("answer", ["soon", float("nan"), -5, [], True], ids=repr)
def test_a_retry_function_that_answers_nonsense_costs_no_attempt_and_is_told(clocked: Rota, clock: Clock, answer: Any) -> None:
    job = raising(clocked, VALUE, None, retry=lambda attempt, error: answer)
    clocked.run_one()
    assert job.refresh().run_at == clock.now + timedelta(seconds=3)
    assert (job.reason or "").startswith("no (the retry function ")


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
def test_a_retry_function_that_raises_costs_no_attempt(clocked: Rota, clock: Clock) -> None:
    def wait(attempt: int, error: BaseException) -> float:
        raise KeyError("table")

    job = raising(clocked, VALUE, None, retry=wait)
    clocked.run_one()
    assert job.refresh().run_at == clock.now + timedelta(seconds=3)
    clock.forward(3)
    assert str(clocked.run_one()) == "ran t"


def test_the_attempts_end_where_they_were_said_to(clocked: Rota) -> None:
    job = raising(clocked, VALUE, VALUE, VALUE, retry=0, max_attempts=3)
    kinds = [event.kind for event in clocked.drain()]
    assert (kinds, job.refresh().attempt) == ([Kind.AGAIN, Kind.AGAIN, Kind.FAILED], 3)
