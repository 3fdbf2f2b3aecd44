"""The words that the contract's tests are written in: short ways to a job in some state, and to what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rota.clock import SECOND, Micros
from rota.ids import new_id
from rota.model import (
    Again,
    Ask,
    Cancelled,
    Changed,
    Claimed,
    Ended,
    Failed,
    Failure,
    Filter,
    Inserted,
    JobRow,
    Move,
    NewJob,
    Outcome,
    Released,
    Snoozed,
    State,
    Succeeded,
    WorkerRow,
)
from rota.stores.base import Store

NOW: Micros = 1_750_000_000 * SECOND
"""The moment at which the tests begin."""
MINUTE: Micros = 60 * SECOND
LEASE: Micros = MINUTE

BROKEN = Failure(type="ValueError", message="it broke", trace="Traceback: line 1")

OUTCOMES: Mapping[str, Outcome] = {
    "succeeded": Succeeded(),
    "failed": Failed(BROKEN),
    "again": Again(BROKEN, wait=SECOND),
    "snoozed": Snoozed(wait=SECOND),
    "released": Released("shutting down"),
    "cancelled": Cancelled("not wanted"),
}
"""One outcome of each kind."""


def new(task: str = "tests.task", queue: str = "default", args: str = "[[],{}]", **options: Any) -> NewJob:
    """A job that was not inserted yet."""
    return NewJob(id=new_id(), task=task, queue=queue, args=args, **options)


def put(store: Store, *jobs: NewJob, now: Micros = NOW) -> list[Inserted]:
    return store.insert(jobs, now=now)


def queued(store: Store, now: Micros = NOW, **options: Any) -> str:
    """The id of a job that was just inserted."""
    job = new(**options)
    put(store, job, now=now)
    return job.id


def worker_row(**fields: Any) -> WorkerRow:
    usual: dict[str, Any] = {"id": new_id(), "name": "w", "host": "here", "pid": 7, "version": "1", "lease": LEASE}
    usual |= {"queues": None, "tasks": ["tests.task"], "concurrency": 8}
    return WorkerRow(**usual | fields)


def join(store: Store, now: Micros = NOW, **fields: Any) -> str:
    """The id of a worker that has just joined."""
    worker = worker_row(**fields)
    store.join(worker, now=now)
    return worker.id


def ask(worker: str, limit: int = 100, queues: Sequence[str] = ("default",)) -> Ask:
    return Ask(worker=worker, queues=tuple(queues), limit=limit)


def claim(
    store: Store, worker: str, limit: int = 100, queues: Sequence[str] = ("default",), now: Micros = NOW
) -> list[Claimed]:
    return store.claim(ask(worker, limit, queues), now=now)


def running(store: Store, worker: str, now: Micros = NOW, **options: Any) -> Claimed:
    """A new job that this worker has claimed; no other job may be queued."""
    id = queued(store, now=now, **options)
    claims = claim(store, worker, queues=(options.get("queue", "default"),), now=now)
    assert [claimed.id for claimed in claims] == [id]
    return claims[0]


def finish(
    store: Store, worker: str, claimed: Claimed, outcome: Outcome, now: Micros = NOW, took: Micros = 0, keep: bool = True
) -> bool:
    """Write one outcome and say whether it counted."""
    end = Ended(id=claimed.id, claim=claimed.claim, outcome=outcome, took=took, keep=keep)
    turn = store.finish(worker, [end], now=now)
    assert turn.claimed == []
    assert turn.counted <= {claimed.id}
    return claimed.id in turn.counted


def change(store: Store, move: Move, id: str, now: Micros = NOW) -> Changed:
    (changed,) = store.change(move, [id], now=now)
    assert changed.id == id
    return changed


def row(store: Store, id: str) -> JobRow:
    (found,) = store.get([id])
    assert found.id == id
    return found


def state(store: Store, id: str) -> State | None:
    """The state of a job; `None` for one that is not there."""
    rows = store.get([id])
    return rows[0].state if rows else None


def ids(rows: Sequence[JobRow | Claimed | Inserted]) -> list[str]:
    return [each.id for each in rows]


def found(store: Store, limit: int = 1000, before: str | None = None, **which: Any) -> list[str]:
    return ids(store.find(Filter(**which), limit, before))


def everything(store: Store) -> list[JobRow]:
    """Every job that the store knows, oldest first."""
    return store.find(Filter(), 1_000_000)[::-1]


# -- a job in each state ------------------------------------------------------------------------

STATES = tuple(state for state in State if state is not State.HELD)
"""The states that a job reaches without limits."""


CLAIMED_FIRST = STATES[::-1]
"""The states in an order in which jobs can be brought into them: what is queued would be claimed by the next."""


def job_in(store: Store, wanted: State, worker: str, now: Micros = NOW, **options: Any) -> Claimed:
    """A new job in this state, as `worker` claimed it; where it was not claimed yet, with the claim number 0."""
    match wanted:
        case State.SCHEDULED:
            return _unclaimed(store, now, delay=MINUTE, **options)
        case State.QUEUED:
            return _unclaimed(store, now, **options)
        case State.RUNNING:
            return running(store, worker, now, **options)
        case State.SUCCEEDED | State.FAILED | State.CANCELLED:
            claimed = running(store, worker, now, **options)
            assert finish(store, worker, claimed, OUTCOMES[wanted.value], now)
            return claimed
        case State.HELD:
            raise AssertionError("only a limit holds a job")


def _unclaimed(store: Store, now: Micros, **options: Any) -> Claimed:
    job = new(**options)
    put(store, job, now=now)
    return Claimed(
        id=job.id, task=job.task, queue=job.queue, args=job.args, claim=0, excused=0, max_attempts=job.max_attempts, key=job.key
    )
