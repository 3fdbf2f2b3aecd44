"""Claims under limits: who of the queued jobs starts, who is held, and who is queued again because there may be room.

A claim is a few transactions, so that none waits for a room while it holds another out of order: those that open rooms take
what nobody has locked, those that claim lock the rooms of their candidates in one order and wait for them.
A job that a room had held counts on it once it is queued: whoever meets it and does not let it in there has the room looked
at again, for others may have been held behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.model import Ask, Claimed, Places, Round
from rota.rules.admission import Candidate, Usage, admit, opens_at
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency, Rate, Size
from rota.stores.base import Limits
from rota.stores.database import Call, Database, Row, Send
from rota.stores.measuring import AGAIN, Asked, Rooms, lock_rooms
from rota.stores.opening import open_rooms
from rota.stores.rows import as_json, claimed

_TURNS = 8
"""Claims in one round, at most, or openings of rooms in their place."""
_OPENINGS = 3
"""How many of them may open rooms."""
_BATCH = 200
"""Candidates that are looked at together once one was held."""
_WIDER = 8
"""So many times more are freed the next time by a room whose freed jobs turned out to wait for others."""
_KEEP: Micros = 3_600 * SECOND
"""The last start of a rate is remembered for so long beyond its interval, in case the rate becomes slower."""


class _Step(Struct, frozen=True):
    """What one transaction that claims did."""

    claimed: Sequence[Claimed] = ()
    places: Mapping[str, Places] = {}
    """What each took, of those that took any."""
    held: int = 0
    mixed: bool = False
    """Whether limits had a say in it."""
    reserved: bool = False
    """Whether it met a job that may not be claimed ahead."""
    over: bool = False
    """Whether there is nothing more to claim."""
    due: bool = False
    """Whether rooms are to be opened first; nothing was done then."""
    diverted: Sequence[Instance] = ()
    """Rooms with room that had held jobs which were not let in there."""
    next_in: Micros | None = None


def admit_jobs(database: Database, ask: Ask, limits: Limits, now: Micros | None) -> Round:
    """`Store.admit`. An error may come after a transaction that claimed: the worker gets to `reconcile` then, as after any."""
    asked = Asked(ask, limits, list(limits.sizes({})), now)
    if database.looks_first:
        opening = database.read(*asked.next_opening)  # before the look at what is due, so that no moment falls between them
        if not _anything(database, asked):
            return Round([], {}, 0, False, False, _until(opening))
    claims: list[Claimed] = []
    places: dict[str, Places] = {}
    held, opened, wider = 0, 0, dict[Instance, int]()
    more, mixed, reserved, elsewhere, next_in = True, False, False, False, None
    for _ in range(_TURNS):
        step = database.decide(partial(_claim, asked, len(claims), mixed, opened < _OPENINGS))
        if step.due:
            opened, next_in = opened + 1, 0
            elsewhere |= database.decide(partial(open_rooms, asked, wider))
            continue
        claims += step.claimed
        places.update(step.places)
        held += step.held
        mixed |= step.mixed
        reserved |= step.reserved
        next_in = step.next_in
        for room in step.diverted:
            wider[room] = wider.get(room, 1) * _WIDER
        if step.over and not (step.diverted and opened < _OPENINGS):
            more = elsewhere
            break
    claims.sort(key=lambda job: (-job.priority, job.due, job.id))  # a room that was opened in between may let greater ones in
    return Round(claims, places, held, reserved, more, next_in)


# -- claiming -----------------------------------------------------------------------------------


def _claim(asked: Asked, placed: int, mixed: bool, may_open: bool, send: Send, last: Send) -> _Step:
    """Claim behind so many that are claimed already; `mixed` says whether limits had a say so far.

    As many candidates are looked at as there are slots; then more where one was held, or where none has limits and they may
    wait in the worker.
    """
    ask = asked.ask
    slots, left = max(0, min(ask.slots, ask.limit) - placed), ask.limit - placed
    at_once = slots if ask.at_once is None else max(0, ask.at_once - placed)
    batch = _BATCH if mixed and slots else slots or left
    calls: list[Call] = [("me", {"worker": ask.worker}), asked.rooms_due]
    if batch > 0 and ask.queues:
        calls.append(("candidates", {"queues": list(dict.fromkeys(ask.queues)), "limit": batch}))
    me, due, *found = send(calls)
    if not me:
        return _Step(over=True)
    if due and may_open:
        return _Step(due=True)
    jobs, marks = _candidates(found[0] if found else [])
    if not jobs:
        return _Step(over=True, next_in=_until(*last([asked.next_opening, asked.rooms_due])))
    needs = _needs(asked, jobs)
    concerned = {*marks.values(), *(room for needed in set(needs.values()) for room in needed)}
    sizes, rooms = lock_rooms(asked, concerned, len(jobs), send)
    admitted, held, after = _decide(jobs, needs, sizes, rooms, slots, at_once, left)
    diverted = _diverted(marks, needs, sizes, rooms, admitted, held)
    looked = len(admitted) + len(held)
    mixed = mixed or bool(held) or any(map(needs.get, admitted))
    claims = [job for job in jobs if job.id in admitted]
    places = _places(claims, needs, sizes)
    calls = _writes(ask.worker, claims, places, rooms, held, asked.now)
    calls += _notes(rooms, sizes, after, held.values(), diverted)
    if looked < len(jobs) or diverted:
        calls.append(("ring", {}))  # another may take what was locked here and left, or wait for what is opened now
    *_, opening, due = last([*calls, asked.next_opening, asked.rooms_due])
    return _Step(
        claimed=claims,
        places=places,
        held=len(held),
        mixed=mixed,
        reserved=looked < len(jobs) and len(admitted) < slots,
        over=looked < len(jobs) or len(jobs) < batch or len(admitted) == left or (mixed and len(admitted) == slots),
        diverted=diverted,
        next_in=_until(opening, due),
    )


def _candidates(rows: Sequence[Row]) -> tuple[list[Claimed], dict[str, Instance]]:
    """The jobs in the order promised, each as it is once it is claimed; and which room held each last."""
    return claimed(row[:12] for row in rows), {row[0]: Instance(row[12], row[13]) for row in rows if row[12] is not None}


def _needs(asked: Asked, jobs: Iterable[Claimed]) -> dict[str, tuple[Instance, ...]]:
    """The rooms that each job needs, of the limits that the worker knows. Most need the same as another."""
    known: dict[tuple[Instance, ...], tuple[Instance, ...]] = {}
    needs = {}
    for job in jobs:
        rooms = asked.limits.instances(job.id, job.task, job.args)
        if rooms not in known:
            known[rooms] = tuple(room for room in rooms if room.limit in asked.names)
        needs[job.id] = known[rooms]
    return needs


def _decide(
    jobs: Sequence[Claimed],
    needs: Mapping[str, tuple[Instance, ...]],
    sizes: Mapping[str, Size],
    rooms: Rooms,
    slots: int,
    at_once: int,
    limit: int,
) -> tuple[dict[str, None], dict[str, Instance], Mapping[Instance, Usage]]:
    """Who is let in, in order, which room holds whom, and how rooms are after that.

    Once the slots are taken, those without limits come in up to the first that has some.
    """
    candidates = [Candidate(job.id, needs[job.id]) for job in jobs]
    admission = admit(candidates, sizes, rooms.usage, rooms.now, slots, at_once)
    admitted = dict.fromkeys(admission.admitted)
    if len(admitted) == slots:
        for candidate in candidates[len(admission.decisions) :]:
            if candidate.instances or len(admitted) == limit:
                break
            admitted[candidate.id] = None
    return admitted, {held.id: held.by for held in admission.held}, admission.usage


def _diverted(
    marks: Mapping[str, Instance],
    needs: Mapping[str, tuple[Instance, ...]],
    sizes: Mapping[str, Size],
    rooms: Rooms,
    admitted: Mapping[str, None],
    held: Mapping[str, Instance],
) -> list[Instance]:
    """The rooms whose freed jobs were looked at and not let in there, although they may have room."""
    elsewhere = {
        room for id, room in marks.items() if (id in admitted and room not in needs[id]) or (id in held and held[id] != room)
    }
    return [room for room in sorted(elsewhere) if rooms.known[room].look_at is not None]


def _places(
    claims: Iterable[Claimed], needs: Mapping[str, tuple[Instance, ...]], sizes: Mapping[str, Size]
) -> dict[str, Places]:
    """The places that jobs take and give back."""
    taken = {
        needed: tuple((room.limit, room.key) for room in needed if isinstance(sizes.get(room.limit), Concurrency))
        for needed in set(needs.values())
    }
    return {job.id: places for job in claims if (places := taken[needs[job.id]])}


def _writes(
    worker: str,
    claims: Sequence[Claimed],
    places: Mapping[str, Places],
    rooms: Rooms,
    held: Mapping[str, Instance],
    now: Micros | None,
) -> list[Call]:
    """The queries that write who was let in and who is held."""
    calls: list[Call] = [("drop_places", {"over": over}) for over in rooms.over]
    if claims:
        at = rooms.now if rooms.known else now
        calls.append(("take", {"ids": [job.id for job in claims], "worker": worker, "now": at}))
    if places:
        noted: dict[tuple[str, str], dict[str, int]] = {}
        for job in claims:
            for room in places.get(job.id, ()):
                noted.setdefault(room, {})[job.id] = job.claim
        calls.append(("occupy", {"places": as_json([(*room, len(taken), taken) for room, taken in noted.items()])}))
    if held:
        by = as_json({id: (room.limit, room.key) for id, room in held.items()})
        calls.append(("hold", {"ids": list(held), "held": by}))
    return calls


def _notes(
    rooms: Rooms,
    sizes: Mapping[str, Size],
    after: Mapping[Instance, Usage],
    holding: Iterable[Instance],
    diverted: Iterable[Instance],
) -> list[Call]:
    """The query that notes what became of the rooms, where anything did."""
    now, holding = rooms.now, set(holding)
    notes = []
    for room, was in rooms.known.items():
        size = sizes.get(room.limit)
        opening = now if size is None else opens_at(size, after.get(room, was.usage), now)
        opens = was.opens_at
        if room in holding or room in after:
            opens = opening if opening != now else None
        look = was.look_at
        if room in diverted and opening == now:
            look = now
        elif room in holding:
            look = min(at for at in (look, opening, now + AGAIN) if at is not None)
        elif look is not None and opening is not None and opening != now:
            look = min(look, opening)
        spaced = isinstance(size, Rate) and room in after
        if spaced or (opens, look) != (was.opens_at, was.look_at):
            keep = now + size.interval + _KEEP if isinstance(size, Rate) and spaced else None
            notes.append((room.limit, room.key, now if spaced else None, keep, opens, look))
    return [("note_rooms", {"rooms": as_json(notes)})] if notes else []


# -- looking ------------------------------------------------------------------------------------


def _anything(database: Database, asked: Asked) -> bool:
    """Whether there is anything to claim or to open, found without a lock."""
    queues = list(asked.ask.queues)
    return bool((queues and database.read("peek", {"queues": queues})) or database.read(*asked.rooms_due))


def _until(opening: Sequence[Row], due: Sequence[Row] = ()) -> Micros | None:
    """How long until time makes room; a room that is to be looked at may have some now."""
    at, now = opening[0]
    return 0 if due else None if at is None else max(0, at - now)
