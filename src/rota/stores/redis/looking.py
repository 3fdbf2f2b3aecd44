"""Finding jobs by what they are, in steps of which each keeps the server for a few milliseconds at most.

There are three ways to what a filter names, and the answer is the same: along all jobs from the newest on, which is short
where many match; through what finds jobs by their state, read whole in one step, where little is in it; and through the same
in steps, where it has much, but far less than all jobs. A key has an index of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest

from msgspec import Struct, msgpack

from rota.model import FINAL, Filter, JobRow, State
from rota.stores.redis import records
from rota.stores.redis.client import MANY, Client, pieces
from rota.stores.redis.counting import lines, names
from rota.stores.redis.records import Told

_LEAST = 50
"""Jobs that a step looks at, at least."""
_HEAVY = 8 * 1024 * 1024
"""So many bytes of jobs come in one answer, and one job at least."""
_GROUPS = 2 * MANY
"""So many numbers of jobs are read in one step."""
_CHEAP = 4
"""Times as quick as a job is taken apart its id is read."""

_found = msgpack.Decoder(tuple[int, str | None, list[Told]]).decode
_gathered = msgpack.Decoder(tuple[list[Told] | None, bool, int | None, int | None]).decode
_sifted = msgpack.Decoder(tuple[int | None, str, list[str]]).decode
_latest = msgpack.Decoder(tuple[int, list[Told]]).decode
_ids = msgpack.Decoder(list[str]).decode


class Gathered(Struct, frozen=True):
    """What was found by the states of jobs, or why nothing was."""

    rows: list[JobRow] | None
    """`None` where there is too much for one step."""
    there: int | None = None
    """How many jobs may match, where that is known."""
    size: int | None = None
    """How many ids lead to them, where that is known."""


class Walk(Struct, frozen=True):
    """How far a walk along all jobs came."""

    rows: list[JobRow]
    before: str | None
    """Where it is to go on, without dashes; `None` once it is done."""


def find(client: Client, which: Filter, limit: int, before: str | None) -> list[JobRow]:
    """`Store.find`.

    A job that matches all the while is not missed, whatever else becomes of it; save that of very many queued ones one may be
    whose priority is changed meanwhile.
    """
    if limit <= 0:
        return []
    start = None if before is None else records.bare(before)
    if which.key is not None or which == Filter():
        return _walk(client, which, limit, start).rows
    gathered = _gather(client, which, limit, start)
    if gathered.rows is not None:
        return gathered.rows
    if start is None and gathered.there is not None and which.worker is None:
        limit = min(limit, gathered.there)  # so that nobody looks for more than there are
    if gathered.size is None or len(which.states) != 1 or State.HELD in which.states:
        return _walk(client, which, limit, start).rows
    walk = _walk(client, which, limit, start, most=gathered.size if _takes_apart(which) else gathered.size // _CHEAP)
    if walk.before is None:
        return walk.rows
    return walk.rows + _sift(client, which, limit - len(walk.rows), walk.before)


def latest(client: Client, state: State, limit: int) -> list[JobRow]:
    """`Store.latest`."""
    rows: list[JobRow] = []
    passed = 0
    while passed < limit:
        look = min(limit - passed, MANY)
        met, told = _latest(client.run("latest", state.value, passed, look))
        rows += map(records.row, told)
        passed += met
        if met < look:
            break
    return rows


# -- along all jobs -----------------------------------------------------------------------------


def _walk(client: Client, which: Filter, limit: int, before: str | None, most: int | None = None) -> Walk:
    """Look at jobs from the newest on until so many match, or, where given, at about `most` of them."""
    rows: list[JobRow] = []
    looked = 0
    step = limit if which == Filter() else max(limit, _LEAST)
    while True:
        look = min(step, MANY)
        seen, last, told = _found(client.run("find", _filter(which), before, look, limit - len(rows), _HEAVY))
        rows += map(records.row, told)
        looked += seen
        if last is None or len(rows) >= limit:
            return Walk(rows, None)
        before = last
        if most is not None and looked >= most:
            return Walk(rows, before)
        step = limit - len(rows) if which == Filter() else 4 * step


# -- through what finds jobs by their state -----------------------------------------------------


def _gather(client: Client, which: Filter, limit: int, before: str | None) -> Gathered:
    """In one step, if that will do."""
    rows: list[JobRow] = []
    while True:
        answer = client.run("gather", _filter(which), before, limit - len(rows), MANY, _GROUPS, _HEAVY)
        told, cut, there, size = _gathered(answer)
        if told is None:
            return Gathered(None, there, size)
        rows += map(records.row, told)
        if not cut or len(rows) >= limit:
            return Gathered(rows)
        before = records.bare(rows[-1].id)


def _sift(client: Client, which: Filter, limit: int, before: str) -> list[JobRow]:
    """In steps, for one state. What has changed since it was met is replaced by what comes behind it."""
    rows: list[JobRow] = []
    while len(rows) < limit:
        wanted = limit - len(rows)
        ids = _newest(client, which, wanted, before)
        for piece in pieces(ids):
            found = [row for row in records.jobs(client.run("get", piece)) if _is_named(row, which)]
            rows += sorted(found, key=lambda row: row.id, reverse=True)
        if len(ids) < wanted:
            break
        before = ids[-1]
    return rows


def _newest(client: Client, which: Filter, limit: int, before: str) -> list[str]:
    """The first ids that sort before this one, of jobs in one state, the newest first."""
    [state] = which.states
    kind = "HSCAN" if state is State.RUNNING else "ZSCAN"
    kept: list[str] = []
    floor: str | None = None
    for keys in pieces(_indexes(client, which)):
        at: int | None = 1
        cursor = "0"
        while at is not None:
            at, cursor, ids = _sifted(client.run("sift", _filter(which), kind, keys, at, cursor, before, floor))
            kept += ids
            if len(kept) >= 2 * limit + MANY:
                kept = nlargest(limit, set(kept))
                floor = kept[-1]
    return nlargest(limit, set(kept))


def _indexes(client: Client, which: Filter) -> Iterator[str]:
    """The keys of what has the jobs in this state."""
    [state] = which.states
    if state in FINAL:
        yield f"finished:{state.value}"
    elif state is State.SCHEDULED:
        yield "scheduled"
    elif state is State.RUNNING:
        for worker in _ids(client.run("runners")):
            yield f"running:{worker}"
    else:
        queues = [which.queue] if which.queue is not None else names(client, "queued")
        yield from (key for _, key in lines(client, "queued", queues))


# -- filters ------------------------------------------------------------------------------------


def _filter(which: Filter) -> tuple[object, ...]:
    """[states, queue, task, key, worker], as scripts take it."""
    return ([state.value for state in which.states] or None, which.queue, which.task, which.key, which.worker)


def _takes_apart(which: Filter) -> bool:
    """Whether more is to be known of a job than its state."""
    return (which.queue, which.task, which.worker) != (None, None, None)


def _is_named(row: JobRow, which: Filter) -> bool:
    return (
        (not which.states or row.state in which.states)
        and which.queue in (None, row.queue)
        and which.task in (None, row.task)
        and which.worker in (None, row.worker)
    )
