"""Queues as people look at them: who waits and runs there, and whether someone paused them; and pausing them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from rota.clock import Micros, at, moment, span
from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.model import UNFINISHED, PauseRow, State, Unfinished, WorkerRow
from rota.options import check_name
from rota.stores.base import Store

_DUE = (State.QUEUED, State.HELD)


class Queue(Struct, frozen=True):
    """A queue: how many unfinished jobs it has in each state, and its pause.

    >>> from rota import Rota
    >>> app = Rota("memory://")
    >>> job = app.named("shop.greet").using(queue="mail").enqueue("Ada")
    >>> app.pause("mail", by="Ada")
    >>> for queue in app.queues():
    ...     print(queue.name, "paused" if queue.paused else "open", queue.states["queued"])
    mail paused 1
    >>> app.resume("mail")
    True
    >>> app.close()
    """

    name: str
    states: dict[State, int]
    """How many jobs are `scheduled`, `queued`, `held` and `running`; each of these is there."""
    oldest: Micros | None = None
    """Since when the first of its due jobs waits; `None` where none waits."""
    pause: PauseRow | None = None
    """Since when it is paused, until when, and by whom; `None` where it is not."""

    @property
    def paused(self) -> bool:
        """Whether workers leave its jobs alone."""
        return self.pause is not None

    @property
    def jobs(self) -> int:
        """How many unfinished jobs it has."""
        return sum(self.states.values())

    @property
    def due(self) -> int:
        """How many jobs are due there and wait, `queued` or `held`."""
        return sum(self.states[state] for state in _DUE)


def queues(store: Store, known: Iterable[str], now: Micros | None) -> list[Queue]:
    """Each queue that has unfinished jobs, is paused, is served by name or is among the known ones; by name."""
    present = store.vitals().now if now is None else now
    return listed(store.unfinished(), store.pauses(), store.workers(), known, present)


def listed(
    unfinished: Iterable[Unfinished],
    pauses: Iterable[PauseRow],
    workers: Iterable[WorkerRow],
    known: Iterable[str],
    now: Micros,
) -> list[Queue]:
    """The same, of what was read from a store."""
    by_queue: dict[str, list[Unfinished]] = {name: [] for name in known}
    for each in unfinished:
        by_queue.setdefault(each.queue, []).append(each)
    paused = {pause.queue: pause for pause in in_force(pauses, now)}
    for name in (*paused, *(name for worker in workers for name in worker.queues or ())):
        by_queue.setdefault(name, [])
    return [queue_of(name, by_queue[name], paused.get(name), now) for name in sorted(by_queue)]


def queue_of(name: str, unfinished: Iterable[Unfinished], pause: PauseRow | None, now: Micros) -> Queue:
    """A queue by what is counted of it."""
    states = dict.fromkeys(UNFINISHED, 0)
    oldest: Micros | None = None
    for each in unfinished:
        states[each.state] += each.jobs
        # Where no worker promotes, what is due is still scheduled.
        if each.state in _DUE or (each.state is State.SCHEDULED and each.oldest <= now):
            oldest = each.oldest if oldest is None else min(oldest, each.oldest)
    return Queue(name, states, oldest, pause)


def in_force(pauses: Iterable[PauseRow], now: Micros) -> list[PauseRow]:
    """The pauses that are not over."""
    return [pause for pause in pauses if pause.until is None or pause.until > now]


def pause(store: Store, queue: str, until: datetime | timedelta | float | None, by: str | None, now: Micros | None) -> None:
    """Pause a queue from what users say. Raises `ConfigError` for what can be no name, no moment or is past."""
    check_name("queue", queue)
    by = "" if by in (None, "") else check_name("by", by)
    if until is None:
        store.pause(queue, by=by, now=now)
    elif isinstance(until, datetime):
        store.pause(queue, until=_to_come(until, store, now), by=by, now=now)
    else:
        length = span(until, "until")
        if not length:
            raise ConfigError(
                f"until={until!r}: such a pause would be over at once; leave it out to pause until someone resumes"
            )
        store.pause(queue, span=length, by=by, now=now)


def resume(store: Store, queue: str, now: Micros | None) -> bool:
    """End the pause of a queue, and answer whether there was one. Raises `ConfigError` for what can be no name."""
    return store.resume(check_name("queue", queue), now)


def _to_come(until: datetime, store: Store, now: Micros | None) -> Micros:
    end = moment(until, "until")
    present = store.vitals().now if now is None else now
    if end <= present:
        said = at(present).isoformat(sep=" ", timespec="seconds")
        raise ConfigError(
            f"until={brief(until.isoformat())}: that moment is past (it is {said}), so the pause would be over at once"
        )
    return end
