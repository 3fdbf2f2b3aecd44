"""How records become the parameters of the named queries, and rows become records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from rota.clock import Micros
from rota.model import (
    FINAL,
    Again,
    Ample,
    Ask,
    AttemptRow,
    Cancelled,
    Claimed,
    Count,
    Ended,
    Failed,
    Failure,
    Filter,
    JobRow,
    NewJob,
    Released,
    Report,
    Snoozed,
    State,
    Succeeded,
    Tally,
    WorkerRow,
)
from rota.stores.database import Call, Params, Row

_encode = msgspec.json.Encoder().encode
ENDS = frozenset({"succeed", "fail", "drop", "put_back"})
"""The queries that write outcomes."""
_ABOVE_ALL = 2**32
"""Greater than any priority: what is behind it is all of a queue."""
_NO_ID = "00000000-0000-0000-0000-000000000000"


def jobs_json(jobs: Iterable[NewJob]) -> str:
    """Jobs as the one parameter of an insert: the fields of `NewJob` in their order."""
    return as_json([msgspec.structs.astuple(job) for job in jobs])


def job_params(job: NewJob, now: Micros | None) -> Params:
    """One job as the parameters of an insert of its own."""
    return {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "args": job.args,
        "priority": job.priority,
        "run_at": job.run_at,
        "delay": job.delay,
        "max_attempts": job.max_attempts,
        "key": job.key,
        "key_waiting": job.key_waiting,
        "context": job.context,
        "now": now,
    }


def claim_call(ask: Ask, now: Micros | None, wades: bool) -> Call:
    """The query that claims; where claims wade through what is gone, from behind the last claimed if that is known."""
    params = {"worker": ask.worker, "limit": ask.limit, "now": now}
    if not ask.behind or not wades:
        return "claim", params | {"queues": list(dict.fromkeys(ask.queues))}
    return "claim_behind", params | {"behind": _behind(ask)}


def claim_amply_call(ask: Ask, ample: Ample, tally: Tally, line: str, now: Micros | None) -> Call:
    """The query that claims as `Ask.ample` says, in rooms that are locked, and adds the places to what the tally changes."""
    return "claim_amply", {
        "worker": ask.worker,
        "line": _over(line, ask.worker),
        "behind": _behind(ask),
        "limit": ask.limit,
        "rooms": as_json(ample.rooms),
        "places": as_json(ample.places),
        "names": [name for name, _, _ in ample.rooms],
        "tally": _told(tally),
        "now": now,
    }


def tell_places_call(worker: str, tally: Tally, line: str) -> Call:
    """The query that keeps what a worker tells, in rooms that are locked."""
    return "tell_places", {"worker": worker, "line": _over(line, worker), "tally": _told(tally), "whole": tally.whole}


def lock_rooms_calls(rooms: Iterable[tuple[str, str]]) -> list[Call]:
    """The query that locks these rooms, if there are any, in the order of all who lock some."""
    return [("lock_rooms", {"rooms": as_json(sorted(rooms))})] if rooms else []


def _told(tally: Tally) -> str:
    return as_json([(name, key, many) for (name, key), many in tally.rooms.items()])


def _over(line: str, worker: str) -> str:
    """Under what a line's tallies of a worker are kept."""
    return f"{worker}/{line}"


def _behind(ask: Ask) -> str:
    """The job in the order of each queue behind which to claim."""
    return as_json([_position(name, ask.behind.get(name)) for name in dict.fromkeys(ask.queues)])


def _position(queue: str, last: Claimed | None) -> tuple[str, int, Micros, str]:
    return (queue, _ABOVE_ALL, 0, _NO_ID) if last is None else (queue, last.priority, last.due, last.id)


def claimed(rows: Iterable[Row]) -> list[Claimed]:
    """The claimed jobs in the order in which they are to start."""
    jobs = [Claimed(*row) for row in rows]
    jobs.sort(key=lambda job: (-job.priority, job.due, job.id))
    return jobs


def end_calls(worker: str, ends: Sequence[Ended], now: Micros | None) -> list[Call]:
    """The queries that write these outcomes; each answers the ids of the attempts that still counted."""
    succeed: dict[str, object] = {}
    fail: dict[str, object] = {}
    drop: dict[str, object] = {}
    back: dict[str, object] = {}
    for end in ends:
        if end.outcome.__class__ is Succeeded and end.keep:  # what most are, and a match costs more than all the rest
            succeed[end.id] = (end.claim, end.took, end.outcome.result)
            continue
        match end.outcome:
            case Failed(failure) if end.keep:
                fail[end.id] = (end.claim, end.took, "failed", _storable(failure.reason), "failed", *_parts(failure))
            case Cancelled(reason) if end.keep:
                said = _storable(reason)
                fail[end.id] = (end.claim, end.took, "cancelled", said, "cancelled", None, said, None)
            case Succeeded() | Failed() | Cancelled():
                drop[end.id] = (end.claim,)
            case Again(failure, wait):
                back[end.id] = (end.claim, end.took, wait, _storable(failure.reason), "again", *_parts(failure), 0, 0)
            case Snoozed(wait):
                back[end.id] = (end.claim, end.took, wait, None, "snoozed", None, None, None, 1, 0)
            case Released(reason, wait, looks):
                said = _storable(reason)
                back[end.id] = (end.claim, end.took, wait, said, "released", None, said, None, 1, looks)
            case never:
                assert_never(never)
    written = (("succeed", succeed), ("fail", fail), ("drop", drop), ("put_back", back))
    return [(query, _batch(worker, which, now)) for query, which in written if which]


def giving_back_calls(ends: Sequence[Ended], now: Micros | None, told: Iterable[tuple[str, str]] = ()) -> list[Call]:
    """The queries that tell of the places of limits which these attempts gave back, after those that ended them.

    So it is told of the rooms for which a worker `told` all that it has. Each locks the rooms that it writes; where some are
    closed as well, all are locked first, in one order.
    """
    freed = {*told, *(room for end in ends for room in end.places)}
    closes = [(*room, end.closes_for) for end in ends for room in end.closes]
    calls: list[Call] = []
    if closes:
        rooms = freed.union((name, key) for name, key, _ in closes)
        calls += [
            ("lock_rooms", {"rooms": as_json(sorted(rooms))}),
            ("close_rooms", {"closes": as_json(closes), "now": now}),
        ]
    if freed:
        calls.append(("look_at_rooms", {"rooms": as_json(sorted(freed)), "now": now}))
    return calls


def report_params(worker: str, running: Iterable[Report]) -> Params:
    """The progress that running jobs report, by id."""
    said = {report.id: (report.claim, report.progress) for report in running if report.progress is not None}
    return {"worker": worker, "ids": list(said), "reports": as_json(said)}


def find_params(which: Filter, limit: int, before: str | None) -> Params:
    states = which.states or tuple(State)
    return {
        "states": [state.value for state in states],
        "among_live": any(state not in FINAL for state in states),
        "among_finished": any(state in FINAL for state in states),
        "queue": which.queue,
        "task": which.task,
        "key": which.key,
        "worker": which.worker,
        "before": before,
        "limit": limit,
    }


def job(row: Row) -> JobRow:
    *fields, cancelling, limit, key, key_waiting, context = row
    fields[3] = State(row[3])
    fields += [bool(cancelling), None if limit is None else (limit, key), bool(key_waiting), context]
    return JobRow(*fields)


def attempt(row: Row) -> AttemptRow:
    """An attempt. Without an error of its own it has a failure only where a reason was given."""
    *fields, kind, message, trace = row
    fields.append(None if message is None else Failure(kind or "", message, trace or ""))
    return AttemptRow(*fields)


def worker_params(worker: WorkerRow, now: Micros | None) -> Params:
    return {
        "id": worker.id,
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "served": None if worker.queues is None else as_json(worker.queues),
        "tasks": as_json(worker.tasks),
        "concurrency": worker.concurrency,
        "lease": worker.lease,
        "version": worker.version,
        "trouble": None if worker.trouble is None else _storable(worker.trouble),
        "now": now,
    }


def worker(row: Row) -> WorkerRow:
    fields = list(row)
    fields[4] = None if row[4] is None else msgspec.json.decode(row[4])
    fields[5] = msgspec.json.decode(row[5])
    fields[11] = bool(row[11])
    return WorkerRow(*fields)


def count(row: Row) -> Count:
    queue, task, state, jobs, oldest = row
    return Count(queue, task, State(state), jobs, oldest)


def as_json(value: object) -> str:
    return _encode(value).decode()


def _batch(worker: str, ends: dict[str, object], now: Micros | None) -> Params:
    return {"worker": worker, "ids": list(ends), "ends": as_json(ends), "now": now}


def _parts(failure: Failure) -> tuple[str, str, str]:
    return _storable(failure.type), _storable(failure.message), _storable(failure.trace)


def _storable(text: str) -> str:
    """Text without null bytes and lone surrogates: one of them would keep a whole batch from being written."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
