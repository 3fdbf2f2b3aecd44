"""What became of a job, told: as a value, as the guide's line, and to the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.model import Again, Cancelled, Claimed, Ended, Failed, Lost, Outcome, Released, Snoozed, State, Succeeded

log = logging.getLogger("rota")


class Kind(StrEnum):
    """Every event there is. Each is logged once it is recorded, with the fields of `Event`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """The last attempt failed, or one that no retry can mend."""
    AGAIN = "again"
    """An attempt failed and another is due later."""
    SNOOZED = "snoozed"
    RELEASED = "released"
    """Handed back unfinished, for the `reason` given: no attempt was used."""
    CANCELLED = "cancelled"
    LOST = "lost"
    """The worker's lease ran out; the job was queued again, failed, or was cancelled."""


class Event(Struct, frozen=True):
    """What became of one attempt. Its `str` is a line for people."""

    kind: Kind
    id: str
    task: str
    queue: str
    attempt: int
    max_attempts: int
    took: Micros = 0
    wait: Micros | None = None
    """How long until the job is due again, where it is."""
    reason: str | None = None

    def __str__(self) -> str:
        match self.kind:
            case Kind.SUCCEEDED:
                return f"ran {self.task}"
            case Kind.FAILED | Kind.AGAIN:
                return f"failed {self.task} on attempt {self.attempt}: {self.reason}"
            case Kind.SNOOZED:
                return f"snoozed {self.task} for {(self.wait or 0) / SECOND:g} s"
            case Kind.RELEASED:
                return f"handed back {self.task}: {self.reason}"
            case Kind.CANCELLED:
                return f"cancelled {self.task} on attempt {self.attempt}"
            case Kind.LOST:
                return f"lost {self.task} on attempt {self.attempt}: {self.reason}"
            case _:
                assert_never(self.kind)


def ended(job: Claimed, end: Ended) -> Event:
    """The event of an attempt that ended."""
    kind, wait, reason = _parts(end.outcome)
    return Event(kind, job.id, job.task, job.queue, job.attempt, job.max_attempts, end.took, wait, reason)


def lost(job: Lost) -> Event:
    """The event of a job whose worker was lost."""
    then = "queued again" if job.state is State.QUEUED else f"now {job.state}"
    return Event(Kind.LOST, job.id, job.task, job.queue, job.attempt, 0, reason=f"worker {job.who} was lost; {then}")


def tell(events: Iterable[Event]) -> None:
    """Log each event: successes at INFO, what someone may have to look at above it."""
    for event in events:
        # What is handed back for later lacks something that someone may have to mend: its task's code, or a thread.
        level = logging.WARNING if event.kind is Kind.RELEASED and event.wait else _LEVELS[event.kind]
        log.log(level, "%s", event, extra={"rota": event})


def tell_overruled(job: Claimed, outcome: Outcome) -> None:
    """Log what a body came to after it had finished its job itself, where that is not a success too."""
    match outcome:
        case Failed(failure) | Again(failure):
            said = "%s failed after it had finished job %s in a transaction that was committed; the job stays succeeded: %s\n%s"
            log.error(said, job.task, job.id, failure.reason, failure.trace)
        case Snoozed():
            log.warning("%s asked to be snoozed after it had finished job %s, which stays so", job.task, job.id)
        case Succeeded() | Released() | Cancelled():
            pass
        case _:
            assert_never(outcome)


_LEVELS = {
    Kind.SUCCEEDED: logging.INFO,
    Kind.SNOOZED: logging.INFO,
    Kind.RELEASED: logging.INFO,
    Kind.CANCELLED: logging.INFO,
    Kind.AGAIN: logging.WARNING,
    Kind.LOST: logging.WARNING,
    Kind.FAILED: logging.ERROR,
}


def _parts(outcome: Outcome) -> tuple[Kind, Micros | None, str | None]:
    match outcome:
        case Succeeded():
            return Kind.SUCCEEDED, None, None
        case Failed(failure):
            return Kind.FAILED, None, failure.reason
        case Again(failure, wait):
            return Kind.AGAIN, wait, failure.reason
        case Snoozed(wait):
            return Kind.SNOOZED, wait, None
        case Released(reason, wait):
            return Kind.RELEASED, wait, reason
        case Cancelled(reason):
            return Kind.CANCELLED, None, reason
        case _:
            assert_never(outcome)
