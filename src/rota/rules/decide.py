"""What becomes of a job when an attempt ends: from how it ended and what attempts are left to an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct

from rota.model import Again, Cancelled, Claimed, Closing, Failed, Failure, Outcome, Released, Snoozed, State, Succeeded
from rota.rules.retry import BadWait, RetryPolicy
from rota.rules.unknown import look_again
from rota.signals import Abandon, Retry, Snooze

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.rules.limits import Declared


class Returned(Struct, frozen=True):
    """The body returned; `result` is its value as JSON where it is kept."""

    result: str | None = None


class Raised(Struct, frozen=True):
    """The body raised, or its arguments could not be read, or its time was up."""

    error: BaseException
    failure: Failure


class Stopped(Struct, frozen=True):
    """The body ended because someone asked to cancel the job."""


class Interrupted(Struct, frozen=True):
    """The worker had to give the job up before it ended."""

    reason: str


End = Returned | Raised | Stopped | Interrupted
"""How an attempt ended."""


def decide(end: End, job: Claimed, policy: RetryPolicy, dice: float, limits: Sequence[Declared] = ()) -> Outcome:
    """The outcome of an attempt. `dice` is a chance from 0 up to 1, for policies with jitter; `limits` are the task's own."""
    match end:
        case Returned(result):
            return Succeeded(result)
        case Stopped():
            return Cancelled()
        case Interrupted(reason):
            return Released(reason)
        case Raised(Snooze() as snooze, _):
            return Snoozed(snooze.wait)
        case Raised(Abandon(), failure):
            return Failed(failure)
        case Raised(Retry() as retry, failure) if retry.limit:
            return _reported(retry, failure, job, limits)
        case Raised(_, failure) if job.attempt >= job.max_attempts:
            return Failed(failure)
        case Raised(Retry() as retry, failure):
            return Again(failure, retry.wait)
        case Raised(error, failure):
            return _by_policy(error, failure, job, policy, dice)
        case _:
            assert_never(end)


def unknown(job: Claimed) -> Outcome:
    """The outcome of a job whose task the worker does not know: handed back with growing waits, and failed in the end.

    Another worker may know it, since a deployment may be half done.
    """
    reason = no_performer(job.task)
    wait = look_again(job.looks)
    if wait is None:
        return Failed(Failure("UnknownTask", reason))
    return Released(reason, wait, job.looks + 1)


def no_performer(task: str) -> str:
    """The reason given for a job whose task nobody registers, in the guide's words."""
    return f"no performer is named {task}"


def keeps(outcome: Outcome, kept: frozenset[State]) -> bool:
    """Whether a job with this outcome stays in the history."""
    match outcome:
        case Succeeded():
            return State.SUCCEEDED in kept
        case Failed():
            return State.FAILED in kept
        case Cancelled():
            return State.CANCELLED in kept
        case Again() | Snoozed() | Released():
            return True
        case _:
            assert_never(outcome)


def _reported(retry: Retry, failure: Failure, job: Claimed, limits: Sequence[Declared]) -> Outcome:
    """Another attempt, or the last one's failure, with a word for all jobs under that limit. A missing limit is told."""
    names: tuple[str, ...] = ()
    if limits:
        from rota.rules.limits import reported

        names = reported(retry.limit, limits)
    if not names:
        there = ", ".join(repr(limit.name) for limit in limits) or "none"
        said = f"{failure.message} (limit={retry.limit!r} closes nothing: the limits of {job.task} are {there})"
        failure = Failure(failure.type, said, failure.trace)
    closing = Closing(names, retry.wait) if names else None
    return Failed(failure, closing) if job.attempt >= job.max_attempts else Again(failure, retry.wait, closing)


def _by_policy(error: BaseException, failure: Failure, job: Claimed, policy: RetryPolicy, dice: float) -> Outcome:
    try:
        wait = policy.wait(job.attempt, error, dice)
    except BadWait as bad:
        # A faulty policy must not cost the job its retries: the default's wait is used, and the reason says so.
        wait = bad.fallback
        failure = Failure(failure.type, f"{failure.message} ({bad})", failure.trace)
    return Failed(failure) if wait is None else Again(failure, wait)
