"""Rooms of limits in Redis, and the sizes that were set for limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import msgpack
from msgspec.structs import astuple

from rota.clock import Micros
from rota.errors import StoreError
from rota.model import LimitRow, RoomRow
from rota.stores import sealing
from rota.stores.redis import moving
from rota.stores.redis.client import MANY, Client

if TYPE_CHECKING:
    from rota.rules.sizes import Size

_Room = tuple[str, int | None, int | None, Micros | None, Micros | None, Micros | None]
_rooms = msgpack.Decoder(list[_Room]).decode
_changed = msgpack.Decoder(int | None).decode


def set_limit(client: Client, name: str, size: Size | None, now: Micros | None) -> None:
    client.run("set_limit", name, None if size is None else f"{size}", now=now)


def overrides(client: Client) -> dict[str, Size]:
    found = client.send(b"HGETALL", client.key("limits"))
    assert isinstance(found, list)
    if not found:
        return {}
    from rota.rules.sizes import read_size  # without limits nothing of them is loaded

    return {name: read_size(text) for name, text in by_name([each.decode() for each in found]).items()}


def rooms(client: Client) -> list[LimitRow]:
    """`Store.rooms`, read in steps: of each room what is told is of one moment."""
    told: list[LimitRow] = []
    for room, running, held, started_at, _, closed_until in _along(client, None):
        name, _, key = room.partition("\0")
        told.append(LimitRow(name, key, running or 0, held or 0, started_at, closed_until))
    return told


def prune_rooms(client: Client, now: Micros | None) -> None:
    """Forget the rooms that nothing holds on to. Those that remember nothing went with the last job in them."""
    while msgpack.decode(client.run("prune_rooms", MANY, now=now), type=int) == MANY:
        pass


def _along(client: Client, after: str | None) -> Iterator[_Room]:
    """All rooms behind this one by name and key, each as it is when it is read."""
    while True:
        page = _rooms(client.run("rooms", after, MANY))
        yield from page
        if len(page) < MANY:
            return
        after = page[-1][0]


def by_name(flat: Sequence[str]) -> dict[str, str]:
    """Names and texts in turn, as the server answers a hash."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


# -- moving to another store --------------------------------------------------------------------


def dump_rooms(client: Client, after: RoomRow | None, limit: int) -> list[RoomRow]:
    told: list[RoomRow] = []
    start = None if after is None else f"{after.name}\0{after.key}"
    for room, _, _, started_at, keep_until, closed_until in _along(client, start):
        if len(told) == limit:
            break
        if started_at is not None or closed_until is not None:
            name, _, key = room.partition("\0")
            told.append(RoomRow(name, key, started_at, keep_until, closed_until))
    return told


def load_rooms(client: Client, seal: str, rooms: Sequence[RoomRow]) -> int:
    sealing.check_there(moving.sealed(client), seal)
    changed = _changed(client.run("load_rooms", seal, [astuple(room) for room in rooms]))
    if changed is None:
        raise StoreError("this store is not sealed for these rooms any more: another `rota move` may have ended that move")
    return changed
