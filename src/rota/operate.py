"""Looking at and changing many jobs: filters, statistics, health, bulk changes and purges, over any store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from rota.clock import Micros
from rota.errors import ConfigError
from rota.model import Changed, Count, Filter, JobRow, Move, State, WorkerRow
from rota.rules.health import Problem, problems
from rota.stores.base import Store

STEP = 500
"""How many jobs one transaction of a bulk change touches."""

Where = Filter


class Stats(Struct, frozen=True):
    """A deployment at a glance."""

    states: dict[State, int]
    """How many jobs are in each state; every state is there."""
    counts: list[Count]
    """The same by queue, task and state."""
    oldest_wait: Micros | None
    """How long the oldest due job has waited (microseconds); `None` when none waits."""
    workers: list[WorkerRow]
    facts: dict[str, str | int | float]
    """What the store says of itself."""


def where(status: str | Sequence[str] = (), queue: str | None = None, task: str | None = None, key: str | None = None) -> Where:
    """A filter from what users say. Raises `ConfigError` for a status that does not exist.

    >>> where("failed", queue="mail").states
    (<State.FAILED: 'failed'>,)
    """
    names = (status,) if isinstance(status, str) else tuple(status)
    return Filter(tuple(_state(name) for name in names), queue, task, key)


def find(store: Store, which: Where, limit: int, before: str | None = None) -> list[JobRow]:
    """Jobs, newest first. Raises `ConfigError` when none is found because the queue is unknown."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"limit={limit!r}: ask for one job or more")
    rows = store.find(which, limit, before)
    if not rows and which.queue is not None and before is None:
        _check_queue(store, which.queue)
    return rows


def stats(store: Store, now: Micros | None) -> Stats:
    counts = store.counts()
    vitals = store.vitals()
    states = dict.fromkeys(State, 0)
    for count in counts:
        states[count.state] += count.jobs
    waiting = [count.oldest for count in counts if count.state in (State.QUEUED, State.HELD)]
    moment = vitals.now if now is None else now
    oldest = max(0, moment - min(waiting)) if waiting else None
    return Stats(states, counts, oldest, store.workers(), vitals.facts)


def check(store: Store, max_wait: Micros | None, now: Micros | None) -> list[Problem]:
    vitals = store.vitals()
    return problems(store.counts(), store.workers(), vitals.warnings, max_wait, vitals.now if now is None else now)


def change_all(
    store: Store, move: Move, which: Where, now: Micros | None, tell: Callable[[int], object] = lambda _: None
) -> list[Changed]:
    """Change every job that the filter names, the newest first, in steps; each step is one transaction."""
    changed: list[Changed] = []
    seen = 0
    before: str | None = None
    while rows := find(store, which, STEP, before):
        answers = store.change(move, [row.id for row in rows], now)
        changed += [answer for answer in answers if answer.after != answer.before or _asked(move, answer)]
        before = rows[-1].id
        seen += len(rows)
        tell(seen)
    return changed


def purge(store: Store, ages: Mapping[State, Micros], now: Micros | None) -> dict[State, int]:
    """Delete what is older than its state's age, in steps."""
    total = dict.fromkeys(ages, 0)
    while True:
        step = store.prune(ages, STEP * 10, now)
        for state, number in step.items():
            total[state] = total.get(state, 0) + number
        if sum(step.values()) < STEP * 10:
            return total


def _state(name: str) -> State:
    try:
        return State(name)
    except ValueError:
        raise ConfigError(f"no status is named {name!r}: the statuses are {', '.join(State)}") from None


def _asked(move: Move, answer: Changed) -> bool:
    return move is Move.CANCEL and answer.before is State.RUNNING


def _check_queue(store: Store, queue: str) -> None:
    known = {count.queue for count in store.counts()}
    for worker in store.workers():
        known |= set(worker.queues or ())
    if queue not in known:
        names = ", ".join(sorted(known)) or "none yet"
        raise ConfigError(f"no queue is named {queue!r}: nothing was ever enqueued on it; the queues are {names}")
