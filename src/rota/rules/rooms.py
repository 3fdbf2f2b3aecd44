"""A limit's room as people look at it: what is declared and set, who is in it, and whether one more may start."""

from __future__ import annotations

from msgspec import Struct

from rota.clock import Micros
from rota.model import LimitRow
from rota.rules.admission import Usage, opens_at
from rota.rules.sizes import Size


class Room(Struct, frozen=True):
    """A limit's room: what it lets through, and who is in it. Sizes are text as it is declared, such as `2` and `10/m`."""

    name: str
    key: str
    """The key as JSON; empty where the limit has no keys, or where it has and no job is under it."""
    tasks: list[str]
    """The tasks of this app that are under it; none where its code is not here."""
    declared: str | None
    """What the code of this app says; `None` where it says nothing."""
    set: str | None
    """What was set at run time, if anything."""
    size: str | None
    """What counts: the one set, or else the declared one. One that was set does not count for a limit of another kind."""
    running: int
    held: int
    full: bool
    """Whether no job may start now."""
    opens_at: Micros | None
    """From when one may start, where it is full and time alone opens it; else a running job must end."""
    started_at: Micros | None
    """When the last job started under it, where it is a rate."""
    closed_until: Micros | None
    """Until when it is closed, as a job reported."""


def look(row: LimitRow, tasks: list[str], declared: Size | None, override: Size | None, now: Micros) -> Room:
    """What the store knows of a room, with what code and users say of its limit."""
    size = declared if override is None or (declared is not None and type(override) is not type(declared)) else override
    closed = row.closed_until if row.closed_until is not None and row.closed_until > now else None
    opening: Micros | None = closed or now
    if size is not None:
        opening = opens_at(size, Usage(row.running, row.started_at, closed), now)
    return Room(
        name=row.name,
        key=row.key,
        tasks=tasks,
        declared=None if declared is None else str(declared),
        set=None if override is None else str(override),
        size=None if size is None else str(size),
        running=row.running,
        held=row.held,
        full=opening != now,
        opens_at=opening if opening != now else None,
        started_at=row.started_at,
        closed_until=closed,
    )
