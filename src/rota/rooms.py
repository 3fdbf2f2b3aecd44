"""Looking at the rooms of limits and setting sizes, over any store."""

from __future__ import annotations

from collections.abc import Mapping

from rota.clock import Micros
from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.limiting import Limiting
from rota.model import LimitRow
from rota.options import check_name
from rota.rules.limits import Declared
from rota.rules.rooms import Room, look
from rota.rules.sizes import Rate, Size, read_concurrency, read_size
from rota.stores.base import Store


def rooms(store: Store, limiting: Limiting | None, now: Micros | None) -> list[Room]:
    """Each room that the store knows, and each limit that code declares or someone set; by name, the fullest key first."""
    declared: Mapping[str, Declared] = {} if limiting is None else limiting.declared()
    overrides = store.overrides()
    known = store.rooms()
    known += [LimitRow(name, "", 0, 0) for name in sorted({*declared, *overrides}.difference(row.name for row in known))]
    moment = store.vitals().now if now is None else now
    return [
        look(
            row,
            [] if limiting is None else limiting.tasks_of(row.name),
            declared[row.name].size if row.name in declared else None,
            overrides.get(row.name),
            moment,
        )
        for row in sorted(known, key=lambda row: (row.name, -row.held, -row.running, row.key))
    ]


def set_size(store: Store, limiting: Limiting | None, name: str, size: int | str | None, now: Micros | None) -> Size | None:
    """Set a limit's size from what a user says, or clear it, and answer it. Raises `ConfigError` for what cannot be right."""
    check_name("limit", name)
    if size is None:
        store.set_limit(name, None, now)
        return None
    read = read_size(size) if isinstance(size, str) else read_concurrency(size, f"size {brief(size)}")
    declared = {} if limiting is None else limiting.declared()
    if name in declared:
        _check_kind(declared[name], read, size)
    elif declared and name not in store.overrides() and all(row.name != name for row in store.rooms()):
        names = ", ".join(repr(each) for each in sorted(declared))
        raise ConfigError(f"no limit is named {name!r}: the limits of this app are {names}")
    store.set_limit(name, read, now)
    return read


def _check_kind(declared: Declared, size: Size, given: object) -> None:
    if type(size) is type(declared.size):
        return
    kind, example = ("a rate", "'10/m'") if isinstance(declared.size, Rate) else ("how many run at once", "'5'")
    raise ConfigError(
        f"size {brief(given)}: limit {declared.name!r} is {kind} ({declared.size} in the code of task {declared.task}), "
        f"so its size is one too, for example {example}"
    )
