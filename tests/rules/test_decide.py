"""From how an attempt ended to what becomes of its job."""

from __future__ import annotations

import pytest

from rota.model import Again, Cancelled, Claimed, Closing, Failed, Failure, Outcome, Released, Snoozed, Succeeded
from rota.rules.decide import Interrupted, Raised, Returned, Stopped, decide
from rota.rules.limits import Declared, Limit, limits_of
from rota.rules.retry import Asked, Fixed, Never
from rota.signals import Abandon, Retry, Snooze

NO = Failure("ValueError", "no")


def job(claim: int = 1, excused: int = 0, max_attempts: int = 3) -> Claimed:
    return Claimed("id", "ship", "goods", "{}", claim, excused, max_attempts)


def raised(error: BaseException, claimed: Claimed, policy: object = None) -> Outcome:
    return decide(Raised(error, NO), claimed, policy or Fixed(5), 0.5)  # type: ignore[arg-type]


def test_a_body_that_returned_succeeded_on_any_attempt() -> None:
    assert decide(Returned("7"), job(claim=3), Never(), 0.5) == Succeeded("7")


def test_a_body_that_raised_is_tried_again_while_attempts_remain() -> None:
    assert raised(ValueError(), job(claim=2)) == Again(NO, 5_000_000)
    assert raised(ValueError(), job(claim=3)) == Failed(NO)


def test_claims_that_were_excused_are_no_attempts() -> None:
    assert raised(ValueError(), job(claim=7, excused=5)) == Again(NO, 5_000_000)


def test_a_policy_may_end_it_earlier() -> None:
    assert raised(ValueError(), job(), Never()) == Failed(NO)


def test_the_tasks_own_word_outweighs_the_policy() -> None:
    assert raised(Retry(9), job(), Never()) == Again(NO, 9_000_000)
    assert raised(Abandon("off"), job()) == Failed(NO)
    assert raised(Snooze(9), job(claim=3), Never()) == Snoozed(9_000_000)


def test_a_task_cannot_ask_for_more_attempts_than_it_has() -> None:
    assert raised(Retry(9), job(claim=3)) == Failed(NO)


LIMITS = limits_of("ship", concurrency=2, rate=["10/m", Limit("1/s", name="partner")])


@pytest.mark.parametrize(
    ("limit", "closed"),
    [
        (True, ("rate of ship", "partner")),
        ("partner", ("partner",)),
        ("concurrency of ship", ("concurrency of ship",)),
    ],
)
def test_a_body_may_report_a_limit_of_somebody_else(limit: bool | str, closed: tuple[str, ...]) -> None:
    closing = Closing(closed, 9_000_000)
    end = Raised(Retry(9, limit=limit), NO)
    assert decide(end, job(), Never(), 0.5, LIMITS) == Again(NO, 9_000_000, closing)
    assert decide(end, job(claim=3), Never(), 0.5, LIMITS) == Failed(NO, closing)


def test_without_a_rate_all_limits_of_the_task_are_meant() -> None:
    outcome = decide(Raised(Retry(9, limit=True), NO), job(), Never(), 0.5, limits_of("ship", [2, Limit(3, name="dock")]))
    assert outcome == Again(NO, 9_000_000, Closing(("concurrency of ship", "dock"), 9_000_000))


@pytest.mark.parametrize(
    ("limit", "limits", "said"),
    [
        ("partnr", limits_of("ship", rate=Limit("1/s", name="partner")), "limit='partnr' closes nothing: {}'partner'"),
        (True, (), "limit=True closes nothing: {}none"),
    ],
)
def test_a_limit_that_the_task_does_not_have_is_told(limit: bool | str, limits: tuple[Declared, ...], said: str) -> None:
    for claim, kind in ((1, Again), (3, Failed)):
        outcome = decide(Raised(Retry(9, limit=limit), NO), job(claim), Never(), 0.5, limits)
        assert isinstance(outcome, kind)
        assert (outcome.failure.message, outcome.closing) == (f"no ({said.format('the limits of ship are ')})", None)


def test_a_faulty_policy_costs_no_attempt_and_is_told() -> None:
    outcome = raised(ValueError(), job(), Asked(lambda attempt, error: "soon"))  # type: ignore[arg-type, return-value]
    assert isinstance(outcome, Again)
    assert outcome.wait == 3_000_000
    assert outcome.failure.message.startswith("no (the retry function ")


def test_a_cancel_and_an_interruption_are_no_failures() -> None:
    assert decide(Stopped(), job(claim=3), Fixed(5), 0.5) == Cancelled()
    assert decide(Interrupted("the worker was shut down"), job(claim=3), Fixed(5), 0.5) == Released("the worker was shut down")
