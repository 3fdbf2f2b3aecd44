"""Looking at and changing many jobs: filters, statistics, health, bulk changes and purges, over any store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.clock import Micros
from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.ids import is_id
from rota.model import MOVES, Ask, Changed, Count, Edit, Filter, JobRow, Move, State, WorkerRow
from rota.options import LARGEST, check_name
from rota.stores.base import Store

if TYPE_CHECKING:  # a worker does not look after its health
    from rota.rules.health import Problem

STEP = 500
"""How many jobs one transaction of a bulk change touches."""

Where = Filter


class Step(Struct, frozen=True):
    """How far a bulk change is, after one of its steps."""

    seen: int
    """How many jobs were looked at so far."""
    last: str
    """The id of the last of them: `before=` this, a change that was interrupted goes on."""
    changed: list[Changed]
    """What this step changed."""


Tell = Callable[[Step], object]
Do = Callable[[Sequence[str]], list[Changed]]


def untold(step: Step) -> None:
    """Hears how far a bulk change is where nobody else wants to."""


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
    """A filter from what users say. Raises `ConfigError` for a status that does not exist and for what can be no name.

    >>> where("failed", queue="mail").states
    (<State.FAILED: 'failed'>,)
    """
    for kind, name in (("queue", queue), ("task", task), ("key", key)):
        if name is not None:
            check_name(kind, name)
    names = (status,) if isinstance(status, str) else tuple(status)
    return Filter(tuple(_state(name) for name in names), queue, task, key)


def find(store: Store, which: Where, limit: int, before: str | None = None, queues: Iterable[str] = ()) -> list[JobRow]:
    """Jobs, newest first. Raises `ConfigError` when none is found because the queue is unknown; `queues` are known besides."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LARGEST:
        raise ConfigError(f"limit={brief(limit)}: ask for one job or more, {LARGEST} at the most")
    if before is not None and not is_id(before):
        raise ConfigError(f"before={brief(before)}: pass the id of the last job of the page before")
    rows = store.find(which, limit, before)
    if not rows and before is None and which.queue is not None and which.queue not in queues:
        _check_queue(store, which.queue, queues)
    return rows


def stats(store: Store, now: Micros | None) -> Stats:
    """What the store has now, by a few reads that are not of one moment."""
    from rota.rules.health import due

    counts = store.counts()
    vitals = store.vitals()
    states = dict.fromkeys(State, 0)
    for count in counts:
        states[count.state] += count.jobs
    moment = vitals.now if now is None else now
    waiting = [count.oldest for count in due(counts, moment)]
    oldest = max(0, moment - min(waiting)) if waiting else None
    return Stats(states, counts, oldest, store.workers(), vitals.facts)


def check(store: Store, max_wait: Micros | None, now: Micros | None, max_pause: Micros | None = None) -> list[Problem]:
    """What is wrong, by `rota.rules.health`; nothing waits or is paused for too long where there is no `max_…`."""
    from rota.rules.health import late, problems

    vitals = store.vitals()
    moment = vitals.now if now is None else now
    workers = store.workers()
    running = {worker.id: len(store.find(Filter((State.RUNNING,), worker=worker.id), STEP)) for worker in late(workers, moment)}
    return problems(store.counts(), workers, running, vitals.warnings, max_wait, moment, store.pauses(), max_pause)


def change(
    store: Store,
    move: Move,
    ids: Sequence[str],
    kept: Container[State],
    now: Micros | None,
    only: Collection[State] = (),
) -> list[Changed]:
    """Cancel, retry or delete these jobs and say what became of each, in the order asked. Nothing is known of what is no id.

    Where states are given as `only`, jobs that are in another one by then stay as they are.
    """
    answers = iter(store.change(move, [id for id in ids if is_id(id)], now, only))
    changed = [next(answers) if is_id(id) else Changed(id, None, None) for id in ids]
    if move is Move.CANCEL and State.CANCELLED not in kept:
        # As a worker does that ends a job of a state that is not kept. Should this not come about, the next purge sees to it.
        store.change(Move.DELETE, [each.id for each in changed if each.after is State.CANCELLED], now)
    return changed


def edit(store: Store, wanted: Edit, ids: Sequence[str], now: Micros | None, only: Collection[State] = ()) -> list[Changed]:
    """Edit those of these jobs that wait and say what became of each, in the order asked. `only` is what it is to `change`."""
    answers = iter(store.edit(wanted, [id for id in ids if is_id(id)], now, only))
    return [next(answers) if is_id(id) else Changed(id, None, None) for id in ids]


def change_all(
    store: Store,
    move: Move,
    which: Where,
    kept: Container[State],
    now: Micros | None,
    tell: Tell = untold,
    queues: Iterable[str] = (),
    before: str | None = None,
    began: Micros | None = None,
) -> list[Changed]:
    """Change every job that the filter names, the newest first, in steps; each step is one transaction.

    A job that has left the states that the filter names since it was found stays as it is: it may have succeeded meanwhile.
    """
    if move not in (Move.CANCEL, Move.RETRY, Move.DELETE):
        raise ConfigError(f"move={brief(move)}: jobs are changed by Move.CANCEL, Move.RETRY or Move.DELETE")
    move = Move(move)
    do: Do = lambda ids: _moved(move, change(store, move, ids, kept, now, which.states), which)  # noqa: E731
    return _in_steps(store, do, which, now, tell, queues, before, began)


def edit_all(
    store: Store,
    wanted: Edit,
    which: Where,
    now: Micros | None,
    tell: Tell = untold,
    queues: Iterable[str] = (),
    before: str | None = None,
    began: Micros | None = None,
) -> list[Changed]:
    """Edit every waiting job that the filter names, in the same way."""
    do: Do = lambda ids: _moved(Move.EDIT, edit(store, wanted, ids, now, which.states), which)  # noqa: E731
    return _in_steps(store, do, which, now, tell, queues, before, began)


def _in_steps(
    store: Store,
    do: Do,
    which: Where,
    now: Micros | None,
    tell: Tell,
    queues: Iterable[str],
    before: str | None,
    began: Micros | None,
) -> list[Changed]:
    """Ids sort by when they were made, so what comes in meanwhile is met by no step; a clock that is late makes exceptions."""
    began = began or now or store.vitals().now
    changed: list[Changed] = []
    seen = 0
    while rows := find(store, which, STEP, before, queues):
        ids = [row.id for row in rows if row.created_at <= began]
        done = do(ids)
        changed += done
        before = rows[-1].id
        seen += len(ids)
        tell(Step(seen, before, done))
    return changed


def _moved(move: Move, changed: Iterable[Changed], which: Where) -> list[Changed]:
    return [each for each in changed if moved(move, each) and (not which.states or each.before in which.states)]


def moved(move: Move, changed: Changed) -> bool:
    """Whether a change of this kind was made, or, of a job that runs, asked for."""
    if move is Move.EDIT:
        return changed.before in MOVES[Move.EDIT]
    return changed.after != changed.before or (move is Move.CANCEL and changed.before is State.RUNNING)


def free_held(store: Store, worker: str, now: Micros | None) -> None:
    """Queue again what limits hold that are no more, for a worker of an app that has none, after its code dropped the last one.

    Only jobs of tasks that the worker knows. Where limits hold nothing, this is one read and loads nothing of them.
    """
    if not callable(getattr(store, "rooms", None)) or not any(row.held for row in store.rooms()):
        return
    from rota.limiting import Limiting

    rounds = 0
    while store.admit(Ask(worker, (), 0), Limiting(), now).more and rounds < STEP:
        rounds += 1


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
        raise ConfigError(f"no status is named {brief(name)}: the statuses are {', '.join(State)}") from None


def _check_queue(store: Store, queue: str, queues: Iterable[str]) -> None:
    if store.find(Filter(queue=queue), 1):
        return  # it is known, and quickly found: to count all jobs takes long where there are millions
    known = {*queues, *(count.queue for count in store.counts())}
    for worker in store.workers():
        known |= set(worker.queues or ())
    if queue not in known:
        names = ", ".join(repr(name) for name in sorted(known)) or "none yet"
        raise ConfigError(f"no queue is named {queue!r}: no job is on it and nobody here serves it; the queues are {names}")
