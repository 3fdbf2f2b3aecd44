"""Opening rooms of limits: jobs that they hold are queued again where there may be room by now."""

from __future__ import annotations

from collections.abc import Mapping

from rota.rules.admission import opens_at
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency
from rota.stores.database import Call, Send
from rota.stores.measuring import AGAIN, Asked, as_list, count
from rota.stores.rows import as_json

_ROOMS = 100
"""Rooms that are opened together."""
_FREED = 200
"""Jobs that a room frees together, in each queue."""


def open_rooms(asked: Asked, wider: Mapping[Instance, int], send: Send, last: Send) -> bool:
    """Queue again as many jobs of each room to look at as it may have room for; say whether some are of other queues.

    A room of a limit that this worker does not know, although it knows the tasks, holds nobody any more.
    """
    due, overrides = send(
        [
            ("due_rooms", {"names": asked.names, "worker": asked.ask.worker, "limit": _ROOMS, "now": asked.now}),
            ("overrides", {}),
        ]
    )
    if not due:
        return False
    sizes = asked.sizes(overrides)
    rooms = count([Instance(*row) for row in due], asked.now, send)
    freeing: dict[int, list[Instance]] = {}
    gone: list[Instance] = []
    notes = []
    for room, known in rooms.known.items():
        size = sizes.get(room.limit)
        opening = rooms.now if size is None else opens_at(size, known.usage, rooms.now)
        look = rooms.now + AGAIN
        if size is None:
            gone.append(room)
            look = rooms.now
        elif opening == rooms.now:
            space = size.most - known.usage.running if isinstance(size, Concurrency) else 1
            many = min(space * wider.get(room, 1), _FREED)
            freeing.setdefault(many, []).append(room)
            if many < space:
                look = rooms.now
        elif opening is not None:
            look = min(look, opening)
        notes.append((room.limit, room.key, None, None, opening if opening != rooms.now else None, look))
    calls: list[Call] = [("free", {"rooms": as_list(freed), "many": many}) for many, freed in freeing.items()]
    if gone:
        calls.append(("free_ours", {"rooms": as_list(gone), "many": _FREED, "worker": asked.ask.worker}))
    freed = len(calls)
    calls.append(("note_rooms", {"rooms": as_json(notes)}))
    calls += [("drop_places", {"over": over}) for over in rooms.over]
    queues = [queue for answer in send(calls)[:freed] for (queue,) in answer]
    elsewhere = not set(asked.ask.queues).issuperset(queues)
    if elsewhere or len(queues) > min(asked.ask.slots, asked.ask.limit):
        last([("ring", {})])
    return elsewhere
