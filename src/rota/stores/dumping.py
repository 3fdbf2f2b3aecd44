"""Jobs with all that belongs to them, and rooms of limits, as they leave for another store and as they arrive from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import astuple

from rota.clock import Micros
from rota.model import FINAL, AttemptRow, Failure, Places, RoomRow, State, Whole
from rota.stores import rows
from rota.stores.database import Params, Row, Run
from rota.stores.rows import as_json

Read = Callable[[str, Params], list[Row]]

_HEAVIEST = 8 * 1024 * 1024
"""Characters that are dumped together, about; one job may be more."""
_FIRST = "00000000-0000-0000-0000-000000000000"
"""No job's id, and before all of them."""


def dump(read: Read, after: str | None, limit: int) -> list[Whole]:
    """The next jobs: their ids are looked up first, with what each weighs, so that no more is read than memory should hold."""
    ids = _light(read("dump_ids", {"after": after or _FIRST, "limit": limit}))
    if not ids:
        return []
    jobs = [(rows.job(fields), looks) for *fields, looks in read("dump", {"ids": ids})]
    attempts: dict[str, list[AttemptRow]] = {}
    for job, *fields in read("dump_attempts", {"ids": ids}):
        attempts.setdefault(job, []).append(rows.attempt(fields))
    places = _places(read, [job.id for job, _ in jobs if job.state is State.RUNNING])
    wholes = [Whole(job, tuple(attempts.get(job.id, ())), looks, places.get(job.id, ())) for job, looks in jobs]
    return sorted(wholes, key=lambda whole: whole.job.id)


def load(run: Run, jobs: Sequence[Whole], now: Micros | None) -> int:
    """Write jobs that are not known yet, inside a transaction, and say how many."""
    known = {row[0] for row in run("known", {"ids": [whole.job.id for whole in jobs]})}
    new = {whole.job.id: whole for whole in jobs if whole.job.id not in known}
    live = [whole for whole in new.values() if whole.job.state not in FINAL]
    finished = [whole for whole in new.values() if whole.job.state in FINAL]
    attempts = [_attempt(whole, attempt) for whole in new.values() for attempt in whole.attempts]
    for query, parts in (("load_live", _fields(live)), ("load_finished", _fields(finished)), ("load_attempts", attempts)):
        if parts:
            run(query, {"jobs": as_json(parts)})
    _fill_rooms(run, live, now)
    return len(new)


def dump_rooms(read: Read, after: RoomRow | None, limit: int) -> list[RoomRow]:
    name, key = ("", "") if after is None else (after.name, after.key)
    return [RoomRow(*row) for row in read("dump_rooms", {"name": name, "key": key, "limit": limit})]


def load_rooms(run: Run, rooms: Sequence[RoomRow]) -> int:
    if not rooms:
        return 0
    [[changed]] = run("load_rooms", {"rooms": as_json([astuple(room) for room in rooms])})
    return int(changed)


def _light(found: Sequence[Row]) -> list[str]:
    """As many of these ids as weigh not too much together, and one at least."""
    ids: list[str] = []
    total = 0
    for id, weight in found:
        total += weight
        if ids and total > _HEAVIEST:
            break
        ids.append(id)
    return ids


def _places(read: Read, running: list[str]) -> dict[str, Places]:
    found: dict[str, set[tuple[str, str]]] = {}
    for job, name, key in read("dump_places", {"ids": running}) if running else ():
        found.setdefault(job, set()).add((name, key))
    return {job: tuple(sorted(rooms)) for job, rooms in found.items()}


def _fields(wholes: Iterable[Whole]) -> list[tuple[object, ...]]:
    return [(*astuple(whole.job), whole.looks) for whole in wholes]


def _attempt(whole: Whole, attempt: AttemptRow) -> tuple[object, ...]:
    failure = attempt.failure or Failure("", "", "")
    message = None if attempt.failure is None else failure.message
    *fields, _ = astuple(attempt)
    return (whole.job.id, *fields, failure.type, message, failure.trace)


def _fill_rooms(run: Run, live: Iterable[Whole], now: Micros | None) -> None:
    """Have the rooms of these jobs know of them: of the places that are taken, and of what is held."""
    taken: dict[tuple[str, str], dict[str, int]] = {}
    holding: set[tuple[str, str]] = set()
    for whole in live:
        for place in whole.places:
            taken.setdefault(place, {})[whole.job.id] = whole.job.claim
        if whole.job.held_by is not None:
            holding.add(whole.job.held_by)
    if taken:
        run("lock_rooms", {"rooms": as_json(sorted(taken))})
        run("occupy", {"places": as_json([(name, key, len(jobs), jobs) for (name, key), jobs in sorted(taken.items())])})
    if holding:
        run("look_soon", {"rooms": as_json(sorted(holding)), "now": now})
