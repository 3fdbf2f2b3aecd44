"""A job finished within somebody else's transaction: the queries, and what it means when the attempt does not count."""

from __future__ import annotations

from collections.abc import Sequence

from rota.clock import Micros
from rota.errors import LeaseLost, MoveRefused
from rota.model import Ended, JobRow, Report, Settled, State
from rota.stores import rows
from rota.stores.base import Store
from rota.stores.database import Steps


def finish_steps(worker: str, end: Ended, progress: str | None, before: bool, now: Micros | None) -> Steps[None]:
    """Write the end of an attempt and how far it came; `before` says that this was done once before, and perhaps undone.

    Fenced as `Store.finish` is. Rooms are left alone, for all claims under a limit would wait for their lock: from the commit
    on the job's places do not count, and its worker gives them back when the body has ended.
    Raises `LeaseLost` when the job is not this attempt's any more, and `MoveRefused` when it has finished it already.
    """
    if progress is not None:
        yield "progress", rows.report_params(worker, [Report(end.id, end.claim, progress)])
    for call in rows.end_calls(worker, [end], now):
        if (yield call):
            return
    found = yield "get", {"ids": [end.id]}
    _refuse(worker, end, rows.job(found[0]) if found else None, before)


def settle(store: Store, worker: str, ends: Sequence[Ended], now: Micros | None) -> Settled:
    """`finish_after`, also of a store of others that has none: it took part in no transaction, so these ended as any."""
    if not hasattr(store, "finish_after"):
        return Settled(frozenset(), store.finish(worker, ends, None, now).counted, frozenset())
    return store.finish_after(worker, ends, now)


def _refuse(worker: str, end: Ended, row: JobRow | None, before: bool) -> None:
    if row is None and before:
        done = True
    else:
        done = row is not None and row.state is State.SUCCEEDED and (row.worker, row.claim) == (worker, end.claim)
    if done:
        raise MoveRefused(
            f"job {end.id} has been finished by this attempt already, in this transaction or in one that was committed: "
            "roll back what was done a second time"
        )
    became = "gone" if row is None else f"{row.state} (claim {row.claim})"
    raise LeaseLost(
        f"job {end.id} is not this attempt's any more (claim {end.claim}): its lease was lost, and it is {became} now; "
        "roll back what was done"
    )
