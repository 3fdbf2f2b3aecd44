"""Claims under limits in Redis.

A claim is up to a few rounds of two scripts: one frees what may have room by now and tells the first jobs, whose rooms are told
here; the other decides by `rota.rules.admission` and claims at once, and passes over what has moved since. How many run in a
room is exact, since every end of a job goes through a script that gives its places back.
A job that a room had held counts on it once it is queued: whoever meets it and does not let it in there has the room looked
at again, for others may have been held behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct, msgpack

from rota.clock import Micros
from rota.model import Ask, Claimed, Places, Round
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency, Size, read_size
from rota.stores.base import Limits
from rota.stores.redis import records
from rota.stores.redis.client import MANY, Client
from rota.stores.redis.records import Told
from rota.stores.redis.rooms import by_name

_ROUNDS = 8
"""Rounds in one claim, at most, or openings of rooms in their place."""
_OPENINGS = 3
"""How many openings there are in one claim, at most."""
_BATCH = 200
"""Candidates that are looked at together once one was held."""
_WIDER = 8
"""So many times more are freed the next time by a room whose freed jobs turned out to wait for others."""


class Found(Struct, array_like=True, frozen=True):
    """What `scripts/candidates.lua` answers."""

    opened: int
    elsewhere: bool
    next_in: Micros | None
    due: bool
    jobs: list[tuple[str, str, str]]


class Decided(Struct, array_like=True, frozen=True):
    """What `scripts/admit.lua` answers."""

    claimed: list[Told]
    held: int
    looked: int
    there: int
    diverted: list[tuple[str, str]]
    next_in: Micros | None


_candidates = msgpack.Decoder(tuple[list[str] | None, Found | None] | None).decode
_decided = msgpack.Decoder(Decided | bool | None).decode


class Admitting:
    """Claims under limits. Any thread may claim."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._overrides: dict[str, str] = {}
        """The sizes that were set, as they were seen last: scripts say when there are others."""

    def admit(self, ask: Ask, limits: Limits, now: Micros | None) -> Round:
        """`Store.admit`. An error may come after a script that claimed: the worker gets to `reconcile` then, as after any."""
        claims = _Claims()
        for _ in range(_ROUNDS):
            overrides = self._overrides
            sizes = limits.sizes({name: read_size(text) for name, text in overrides.items()})
            if not self._round(ask, limits, sizes, overrides, claims, now):
                break
        return claims.round()

    def _round(
        self,
        ask: Ask,
        limits: Limits,
        sizes: Mapping[str, Size],
        overrides: Mapping[str, str],
        claims: _Claims,
        now: Micros | None,
    ) -> bool:
        """Claim behind what is claimed already, and say whether to go on.

        As many candidates are looked at as there are slots; then more where one was held, or where none has limits and they may
        wait in the worker.
        """
        placed = len(claims.jobs)
        slots, left = max(0, min(ask.slots, ask.limit) - placed), ask.limit - placed
        at_once = slots if ask.at_once is None else max(0, ask.at_once - placed)
        batch = min(_BATCH if claims.mixed and slots else slots or left, MANY) if ask.queues else 0
        shown = {name: _shown(size) for name, size in sizes.items()}
        names = list(sizes)
        wider = [(room.limit, room.key, factor) for room, factor in claims.wider.items()]
        openings = _OPENINGS - claims.opened
        queues = list(dict.fromkeys(ask.queues))
        asked = (ask.worker, queues, batch, names, shown, overrides, openings, min(ask.slots, ask.limit), wider)
        answer = _candidates(self._client.run("candidates", *asked, now=now))
        if answer is None:
            return claims.over(None)
        present, found = answer
        if found is None:
            self._overrides = by_name(present or ())
            return True
        claims.opened += found.opened
        claims.elsewhere |= found.elsewhere
        claims.next_in = found.next_in
        if found.due and claims.opened < _OPENINGS:
            return True
        if not found.jobs:
            return claims.over(found.next_in)
        needs = _needs(limits, sizes, found.jobs)
        kinds = {needed: number for number, needed in enumerate(dict.fromkeys(filter(None, needs.values())), 1)}
        decided = _decided(
            self._client.run(
                "admit",
                ask.worker,
                [id for id, _, _ in found.jobs],
                [kinds.get(needs[id], 0) for id, _, _ in found.jobs],
                [[(room.limit, room.key) for room in needed] for needed in kinds],
                shown,
                overrides,
                names,
                slots,
                at_once,
                left,
                now=now,
            )
        )
        if isinstance(decided, bool):
            return True  # a size was set meanwhile
        if decided is None:
            return claims.over(None)
        claims.add(decided, needs, sizes)
        if found.next_in == 0:  # rooms were left that are to be looked at
            claims.next_in = 0
        admitted = len(decided.claimed)
        claims.reserved |= decided.looked < decided.there and admitted < slots
        if (
            decided.looked < decided.there
            or len(found.jobs) < batch
            or admitted == left
            or (claims.mixed and admitted == slots)
        ) and not (decided.diverted and claims.opened < _OPENINGS):
            return claims.over(claims.next_in)
        return True


@dataclass
class _Claims:
    """What one claim did so far."""

    jobs: list[Claimed] = field(default_factory=list)
    places: dict[str, Places] = field(default_factory=dict)
    held: int = 0
    opened: int = 0
    """How many openings were made."""
    mixed: bool = False
    """Whether limits had a say in it."""
    reserved: bool = False
    """Whether it met a job that may not be claimed ahead."""
    elsewhere: bool = False
    """Whether jobs of other queues were freed."""
    wider: dict[Instance, int] = field(default_factory=dict)
    """Rooms that are to free more than they have room for."""
    more: bool = True
    next_in: Micros | None = None

    def add(self, decided: Decided, needs: Mapping[str, tuple[Instance, ...]], sizes: Mapping[str, Size]) -> None:
        for told in decided.claimed:
            job = records.claimed(told)
            needed = needs[told.id]
            self.jobs.append(job)
            if places := tuple((room.limit, room.key) for room in needed if isinstance(sizes[room.limit], Concurrency)):
                self.places[job.id] = places
            self.mixed |= bool(needed)
        self.held += decided.held
        self.mixed |= decided.held > 0
        self.next_in = decided.next_in
        for name, key in decided.diverted:
            room = Instance(name, key)
            self.wider[room] = self.wider.get(room, 1) * _WIDER

    def over(self, next_in: Micros | None) -> bool:
        """There is nothing more to claim."""
        self.next_in = next_in
        self.more = self.elsewhere
        return False

    def round(self) -> Round:
        # a room that was opened in between may let greater ones in
        jobs = sorted(self.jobs, key=lambda job: (-job.priority, job.due, job.id))
        return Round(jobs, self.places, self.held, self.reserved, self.more, self.next_in)


def _shown(size: Size) -> tuple[int | None, Micros | None]:
    """A size as scripts take it: [most at once] or [nil, spacing of starts]."""
    return (size.most, None) if isinstance(size, Concurrency) else (None, size.interval)


def _needs(limits: Limits, sizes: Mapping[str, Size], jobs: Iterable[tuple[str, str, str]]) -> dict[str, tuple[Instance, ...]]:
    """The rooms that each job needs, of the limits that the worker knows."""
    return {
        id: tuple(room for room in limits.instances(records.dashed(id), task, args) if room.limit in sizes)
        for id, task, args in jobs
    }
