"""Which of the waiting jobs may start: from what runs, what started last and what a partner said, to who is let in.

A claim asks this once, under a lock on the instances concerned, and writes what it decides before the lock is given up. The
moment `now` must be read after the lock was got: a moment from before may lie before the last start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency, Rate, Size

FLOOR: Micros = SECOND // 20
"""No rate makes an idle worker look more often than this."""

_SPARE = 100
"""So many places of an instance, or half of it where that is less, are for jobs that begin at once: what many workers start."""

_NOTED = 1_000
"""With more places noted than these they are counted, however large the limit: notes of places given back go only then."""

_SET_BACK = 60 * SECOND
"""A start that lies further ahead than this was written under another clock: before it was set right, or in a test."""


class Usage(Struct, frozen=True):
    """What is known of an instance. One that nothing is known of is as good as new."""

    running: int = 0
    """How many jobs run that fall under it."""
    started_at: Micros | None = None
    """When the last of them started; the interval that counts is the present one, so that a changed rate holds at once."""
    closed_until: Micros | None = None
    """Until when none may start, as a job reported that met the limit of somebody else."""


class Candidate(Struct, frozen=True):
    """A job that is due, and the instances that it falls under, in the order in which one of them may be said to hold it."""

    id: str
    instances: tuple[Instance, ...] = ()


class Admitted(Struct, frozen=True):
    """The job starts now."""

    id: str


class Held(Struct, frozen=True):
    """The job waits for room."""

    id: str
    by: Instance
    """The first of its instances that has none."""
    until: Micros | None = None
    """From when that one has room; `None` where only the end of a running job makes some."""


Decision = Admitted | Held


class Admission(Struct, frozen=True):
    """Who was let in, and how that leaves the instances."""

    decisions: tuple[Decision, ...]
    """One for each candidate, in their order, as far as they were looked at: up to the one that took the last slot, or to one
    that may not be let in ahead.
    """
    usage: Mapping[Instance, Usage]
    """Each instance that an admitted job falls under, as it is now."""
    again_at: Micros | None
    """When to look again: the first moment at which time alone makes room in an instance that holds a candidate or let one in.

    `None`: there is no such moment. What let one in counts because more may wait for it that were no candidates.
    """

    @property
    def admitted(self) -> list[str]:
        return [decision.id for decision in self.decisions if isinstance(decision, Admitted)]

    @property
    def held(self) -> list[Held]:
        return [decision for decision in self.decisions if isinstance(decision, Held)]


def admit(
    candidates: Sequence[Candidate],
    sizes: Mapping[str, Size],
    usage: Mapping[Instance, Usage],
    now: Micros,
    slots: int,
    at_once: int | None = None,
) -> Admission:
    """Decide on each candidate in turn, until so many `slots` are taken.

    So many of those let in begin `at_once` (`None`: all). The others are let in ahead, and only while they leave half of each
    of their instances, or a hundred places, to jobs that begin: one that would not stays as it is, and so do all after it.

    Candidates come in the order promised: larger priority, then earlier due, then id. `sizes` are those in force, by the names
    of the limits; a limit without one does not exist any more and holds nobody. A job takes a place of all its instances or of
    none, and a held one reserves nothing: jobs that need less may overtake it, those that need the same cannot.

    Takes time in proportion to the candidates and their instances.

    >>> jobs = [Candidate(id, (Instance("partner"),)) for id in "abc"]
    >>> admission = admit(jobs, {"partner": Concurrency(2)}, {Instance("partner"): Usage(running=1)}, now=0, slots=8)
    >>> admission.admitted, [held.id for held in admission.held]
    (['a'], ['b', 'c'])
    """
    decisions: list[Decision] = []
    moments: set[Micros | None] = set()
    rooms: dict[Instance, _Room] = {}
    instances: tuple[Instance, ...] | None = None
    needed: list[_Room] = []
    ahead_from = slots if at_once is None else at_once
    taken = 0
    for candidate in candidates:
        if taken >= slots:
            break
        if candidate.instances is not instances:  # most need the same as the one before
            instances = candidate.instances
            needed = [
                rooms.get(instance)
                or rooms.setdefault(instance, _Room(instance, sizes[instance.limit], usage.get(instance), now))
                for instance in instances
                if instance.limit in sizes
            ]
        full: _Room | None = None
        crowded = False
        for room in needed:  # plain loops, for this is done with every job
            if room.left <= 0:
                full = room
                break
            crowded |= room.left_ahead <= 0
        if full is not None:
            opening = opens_at(full.size, full.usage, now)
            decisions.append(Held(candidate.id, full.instance, opening))
            moments.add(opening)
            continue
        if crowded and taken >= ahead_from:
            break
        taken += 1
        decisions.append(Admitted(candidate.id))
        for room in needed:
            room.let_in()
    after = {instance: room.usage for instance, room in rooms.items() if room.let}
    moments |= {opens_at(sizes[instance.limit], used, now) for instance, used in after.items()}
    return Admission(tuple(decisions), after, min((at for at in moments if at is not None and at > now), default=None))


class _Room:
    """An instance while candidates are decided on."""

    def __init__(self, instance: Instance, size: Size, usage: Usage | None, now: Micros) -> None:
        self.instance = instance
        self.size = size
        self.let = 0
        """How many were let in."""
        self._before = usage or _NEW
        self._now = now
        opens_now = opens_at(size, self._before, now) == now
        match size:
            case Concurrency(most):
                self.left = most - self._before.running if opens_now else 0
                self.left_ahead = most_ahead(most) - self._before.running
            case Rate():  # the jobs under it are to start as they are let in
                self.left = 1 if opens_now else 0
                self.left_ahead = 0
            case _:
                assert_never(size)

    @property
    def usage(self) -> Usage:
        before = self._before
        return Usage(before.running + self.let, self._now, before.closed_until) if self.let else before

    def let_in(self) -> None:
        self.let += 1
        self.left -= 1
        self.left_ahead -= 1


def opens_at(size: Size, usage: Usage, now: Micros) -> Micros | None:
    """From when an instance has room: `now` where it has some; `None` where a running job must end first."""
    opening = now if usage.closed_until is None else max(now, usage.closed_until)
    match size:
        case Concurrency(most):
            return None if usage.running >= most else opening
        case Rate():
            return _spaced(size.interval, usage.started_at, opening)
        case _:
            assert_never(size)


def spare_for(many: int, size: Size | None) -> int:
    """How many places may be noted under a limit of this size before they are counted; -1: none may.

    With no more than these, so many more jobs can surely be let in, ahead too. A thousand at the most, for notes outlive jobs.

    >>> spare_for(100, Concurrency(1000)), spare_for(8, Concurrency(2)), spare_for(8, None), spare_for(8, Concurrency(100_000))
    (800, -1, -1, 1000)
    """
    return max(-1, min(_NOTED, most_ahead(size.most) - many)) if isinstance(size, Concurrency) else -1


def most_ahead(most: int) -> int:
    """How many of so many places may be taken by jobs that wait for a slot."""
    return max(most // 2, most - _SPARE)


def poll_within(poll: Micros, sizes: Iterable[Size], least: Micros = FLOOR) -> Micros:
    """How long a worker that would look for work each `poll` may sleep: no longer than the shortest interval of its rates.

    Not less than `least`, nor than the floor of 50 ms, whatever the rates. Who holds jobs itself looks at `again_at`, too.

    >>> poll_within(5_000_000, [Rate(1, 1_000_000), Rate(1, 60_000_000), Concurrency(2)])
    1000000
    >>> poll_within(5_000_000, [Rate(1_000, 1_000_000)])
    50000
    """
    shortest = min((size.interval for size in sizes if isinstance(size, Rate)), default=poll)
    return min(poll, max(shortest, least, FLOOR))


def _spaced(interval: Micros, started_at: Micros | None, at: Micros) -> Micros:
    """The first moment from `at` on that lies an interval after the last start. Nobody waits for a clock that was set back."""
    if started_at is None or started_at - at > max(interval, _SET_BACK):
        return at
    return max(at, started_at + interval)


_NEW = Usage()
