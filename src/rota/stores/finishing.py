"""A job finished within somebody else's transaction: the queries, and what it means when the attempt does not count."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rota.clock import Micros
from rota.errors import LeaseLost, MoveRefused
from rota.model import Ended, JobRow, Report, Settled, State
from rota.stores import rows
from rota.stores.base import Store
from rota.stores.database import Steps


def finish_steps(worker: str, end: Ended, progress: str | None, now: Micros | None) -> Steps[None]:
    """Write the end of an attempt and how far it came.

    Fenced as `Store.finish` is. It is kept in any case, for its worker is to see that it was committed. Rooms are left alone,
    for all claims under a limit would wait for their lock: from the commit on the job's places do not count, and its worker
    gives them back when the body has ended.
    Raises `LeaseLost` when the job is not this attempt's any more, and `MoveRefused` when it has finished it already.
    """
    if progress is not None:
        yield "progress", rows.report_params(worker, [Report(end.id, end.claim, progress)])
    for call in rows.end_calls(worker, [replace(end, keep=True)], now):
        if (yield call):
            return
    stands = yield from standing(worker, end.id, end.claim)
    _refuse(end, stands, (yield from _row(end.id)))


def standing(worker: str, id: str, claim: int) -> Steps[State | None]:
    """How an attempt stands whose body was to finish its job: it runs, it succeeded, or neither is so.

    Every end leaves a note of the attempt but a success. So one that is over and has none succeeded, also where its job was
    retried by hand since. A job that is gone tells nothing: it may have been another attempt that succeeded.
    """
    row = yield from _row(id)
    if not moved_on(claim, row):
        return at_sight(worker, claim, row)
    notes = yield "attempts", {"ids": [id]}
    if claim in (rows.attempt(note).claim for note in notes):
        return None
    still = yield from _row(id)  # else the notes may have gone with the job
    return State.SUCCEEDED if still is not None else None


def has_succeeded(store: Store, worker: str, id: str, claim: int) -> bool:
    """The same of any store: whether this attempt succeeded."""
    row = next(iter(store.get([id])), None)
    if not moved_on(claim, row):
        return at_sight(worker, claim, row) is State.SUCCEEDED
    return all(note.claim != claim for note in store.attempts(id)) and bool(store.get([id]))


def at_sight(worker: str, claim: int, row: JobRow | None) -> State | None:
    """Whether the attempt that a job is in, or that ended it, is this one, and runs or succeeded."""
    ours = row is not None and (row.worker, row.claim) == (worker, claim)
    return row.state if ours and row is not None and row.state in (State.RUNNING, State.SUCCEEDED) else None


def moved_on(claim: int, row: JobRow | None) -> bool:
    """Whether a job has waited again since this attempt, so that only notes of it tell how that ended."""
    return row is not None and (row.claim > claim or (row.claim == claim and row.worker is None))


def settle(store: Store, worker: str, ends: Sequence[Ended], now: Micros | None) -> Settled:
    """`finish_after`, also of a store of others that has none: it took part in no transaction, so these ended as any."""
    if not hasattr(store, "finish_after"):
        return Settled(frozenset(), store.finish(worker, ends, None, now).counted, frozenset())
    return store.finish_after(worker, ends, now)


def _row(id: str) -> Steps[JobRow | None]:
    found = yield "get", {"ids": [id]}
    return rows.job(found[0]) if found else None


def _refuse(end: Ended, stands: State | None, row: JobRow | None) -> None:
    if stands is State.SUCCEEDED:
        raise MoveRefused(
            f"job {end.id} has been finished by this attempt already, in this transaction or in one that was committed: "
            "roll back what was done a second time"
        )
    became = "gone" if row is None else f"{row.state} (claim {row.claim})"
    raise LeaseLost(
        f"job {end.id} is not this attempt's any more (claim {end.claim}): its lease was lost, and it is {became} now; "
        "roll back what was done"
    )
