"""Rooms of limits as a claim finds them: locked, and measured after that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.model import Ask
from rota.rules.admission import Usage, spare_for
from rota.rules.instances import Instance
from rota.rules.sizes import Size, read_size
from rota.stores.base import Limits
from rota.stores.database import Call, Row, Send
from rota.stores.rows import as_json

AGAIN: Micros = 60 * SECOND
"""A room that holds jobs is looked at after so long, whatever else happens."""

_NONE = -1
"""However few places are noted, they are counted."""


class Asked(Struct, frozen=True):
    """What stays the same in one round."""

    ask: Ask
    limits: Limits
    names: Sequence[str]
    """Of the limits that the worker knows."""
    now: Micros | None

    def sizes(self, overrides: Iterable[Row]) -> Mapping[str, Size]:
        return self.limits.sizes({name: read_size(size) for name, size in overrides})

    @property
    def rooms_due(self) -> Call:
        return "rooms_due", {"names": self.names, "worker": self.ask.worker, "now": self.now}

    @property
    def next_opening(self) -> Call:
        return "next_opening", {"names": self.names, "now": self.now}


class Measured(Struct, frozen=True):
    """A locked room as it is."""

    usage: Usage
    opens_at: Micros | None
    look_at: Micros | None


class Rooms(Struct, frozen=True):
    """Locked rooms, and the moment after that."""

    known: Mapping[Instance, Measured]
    over: Sequence[str]
    """The notes of places of which none counts, as JSON by room."""
    now: Micros

    @property
    def usage(self) -> Mapping[Instance, Usage]:
        return {room: known.usage for room, known in self.known.items()}


def lock_rooms(asked: Asked, concerned: Iterable[Instance], many: int, send: Send) -> tuple[Mapping[str, Size], Rooms]:
    """Lock rooms, all claims in the same order, and only then see what is so: sizes, what runs, and what time it is.

    Nothing is counted in rooms that surely have places for so many jobs, as they are declared; a smaller size may be set.
    """
    if not (rooms := sorted(concerned)):
        return {}, Rooms({}, (), 0)
    declared = asked.limits.sizes({})
    wanted = {room: spare_for(many, declared.get(room.limit)) for room in rooms}
    _, overrides, found = send([("lock_rooms", {"rooms": as_list(rooms)}), ("overrides", {}), _measure(wanted, asked.now)])
    sizes = asked.sizes(overrides)
    if any(spare_for(many, sizes.get(room.limit)) < enough for room, enough in wanted.items()):
        wanted = {room: spare_for(many, sizes.get(room.limit)) for room in rooms}
        [found] = send([_measure(wanted, asked.now)])
    return sizes, _measured(found)


def count(rooms: Iterable[Instance], now: Micros | None, send: Send) -> Rooms:
    """What is so of these rooms, which are locked."""
    [found] = send([_measure(dict.fromkeys(rooms, _NONE), now)])
    return _measured(found)


def _measure(enough: Mapping[Instance, int], now: Micros | None) -> Call:
    """Rooms, and how many places may be noted in each before they are counted."""
    return "measure", {"rooms": as_json([(room.limit, room.key, many) for room, many in enough.items()]), "now": now}


def _measured(rows: Sequence[Row]) -> Rooms:
    known = {
        Instance(name, key): Measured(Usage(taken if running is None else running, started_at, closed_until), opens_at, look_at)
        for name, key, started_at, closed_until, opens_at, look_at, taken, running, _, _ in rows
    }
    over = [row[8] for row in rows if row[8] is not None and row[8] != "[]"]
    return Rooms(known, over, max((row[9] for row in rows), default=0))


def as_list(rooms: Iterable[Instance]) -> str:
    """Rooms as a parameter of queries."""
    return as_json([(room.limit, room.key) for room in rooms])
