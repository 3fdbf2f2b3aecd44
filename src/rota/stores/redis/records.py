"""How records become what scripts are given, and what scripts answer becomes records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import Struct, msgpack
from msgspec.structs import replace

from rota.clock import Micros
from rota.model import (
    Again,
    AttemptRow,
    Cancelled,
    Claimed,
    Ended,
    Failed,
    Failure,
    JobRow,
    Lost,
    NewJob,
    PauseRow,
    Promoted,
    Reaped,
    Released,
    Snoozed,
    State,
    Succeeded,
    TaskRow,
    WorkerRow,
)


class Fields(Struct, array_like=True, frozen=True, gc=False):
    """A job as the store has it, field by field as in `scripts/prelude`. A text that is `True` is kept aside."""

    task: str
    queue: str
    claim: int
    excused: int
    plain: bool | None
    args: str | bool
    priority: int
    max_attempts: int
    created_at: Micros
    state: State
    due: Micros
    worker: str | None = None
    claimed_at: Micros | None = None
    finished_at: Micros | None = None
    took: Micros | None = None
    key: str | None = None
    key_waiting: bool | None = None
    looks: int | None = None
    context: str | bool | None = None
    result: str | bool | None = None
    reason: str | bool | None = None
    progress: str | bool | None = None
    cancelling: bool | None = None
    room: tuple[str, str] | None = None
    places: list[tuple[str, str]] | None = None
    exact: str | None = None


Texts = list[str] | None
"""The texts that are kept aside, each behind the number of its field."""


class Told(Struct, array_like=True, frozen=True, gc=False):
    """A job in a script's answer. What stands behind its fields, if anything, counts in place of theirs."""

    id: str
    texts: Texts
    fields: Fields
    claim: int | None = None
    worker: str | None = None
    claimed_at: Micros | None = None
    finished_at: Micros | None = None
    took: Micros | None = None
    result: str | None = None
    places: list[tuple[str, str]] | None = None


Attempt = tuple[int, int, str | None, Micros, str, Micros, str | None, str | None, str | None]
"""[claim, attempt, worker, ended at, outcome, took, type, message, trace]"""

_ARGS, _CONTEXT, _RESULT, _REASON, _PROGRESS = "6", "19", "20", "21", "22"
_turn = msgpack.Decoder(tuple[list[str], list[Told]]).decode
_told = msgpack.Decoder(Told).decode
_jobs = msgpack.Decoder(list[Told]).decode
_Worker = tuple[str, str, int, list[str] | None, list[str], int, Micros, str, Micros, str | None]
_workers = msgpack.Decoder(list[tuple[str, _Worker, Micros, bool]]).decode
_beat = msgpack.Decoder(tuple[bool, list[str], list[str], int | None]).decode
_Loss = tuple[str, str, str, int, str, State, str]
_losses = msgpack.Decoder(tuple[list[_Loss], Micros | None]).decode
_promoted = msgpack.Decoder(tuple[int, Micros | None]).decode
_pauses = msgpack.Decoder(tuple[Micros, list[tuple[str, tuple[Micros, Micros | None, str]]]]).decode
_holders = msgpack.Decoder(list[int | str]).decode
_attempt = msgpack.Decoder(Attempt).decode
_Task = tuple[str, int, int]
_task = msgpack.Decoder(_Task).decode
_encode = msgpack.Encoder().encode

_EXACT = 2**53
_SHORT = 250
"""Characters of arguments that surely are not to be kept aside."""


# -- ids ----------------------------------------------------------------------------------------


def bare(id: str) -> str:
    """The id of a job as the store has it: without dashes, in the same order."""
    return id.replace("-", "")


def dashed(id: str) -> str:
    return f"{id[:8]}-{id[8:12]}-{id[12:16]}-{id[16:20]}-{id[20:]}"


# -- what scripts are given ---------------------------------------------------------------------


def plain(job: NewJob) -> bool:
    """Whether nothing else depends on a job as it comes in: no key, and no text that may be kept aside."""
    return job.key is None and job.context is None and len(job.args) <= _SHORT and exact(job.run_at) is None


def head(job: NewJob) -> bytes:
    """What a plain job begins with, packed, behind the mark of an array."""
    return _encode((job.task, job.queue, 0, 0, True, job.args, job.priority, job.max_attempts))[1:]


def new(jobs: Sequence[NewJob]) -> tuple[bytes, list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Jobs as `insert.lua` takes them: each on its own, or plain ones together where they have much in common."""
    ids = {job.id for job in jobs}
    if len(ids) < len(jobs) or not all(map(plain, jobs)):
        return b"", [_new(job) for job in jobs], []
    alike: dict[tuple[object, ...], tuple[list[str], list[int], list[bytes]]] = {}
    for job in jobs:
        common = (job.task, job.queue, job.priority, job.run_at, job.delay)
        together = alike.get(common)
        if together is None:
            together = alike[common] = ([], [], [])
        first = head(job)
        together[0].append(bare(job.id))
        together[1].append(len(first))
        together[2].append(first)
    heads = b"".join([head for _, _, heads in alike.values() for head in heads])
    return heads, [], [(*common, ids, lengths) for common, (ids, lengths, _) in alike.items()]


def _new(job: NewJob) -> tuple[object, ...]:
    head = (bare(job.id), job.task, job.queue, job.args, job.priority, job.run_at, job.delay, job.max_attempts)
    return (*head, job.key, job.key_waiting, job.context, exact(job.run_at))


def ends(ended: Sequence[Ended]) -> tuple[object, list[tuple[object, ...]]]:
    """Ends as `turn.lua` takes them: those that most are in four lists, and the others each on its own."""
    ids, claims, tooks, results, rest = [], [], [], dict[int, str](), []
    for end in ended:
        outcome = end.outcome
        if not end.keep or not isinstance(outcome, Succeeded):
            rest.append(_end(end))
            continue
        ids.append(bare(end.id))
        claims.append(end.claim)
        tooks.append(end.took)
        if outcome.result is not None:
            results[len(ids)] = outcome.result
    return (ids, claims, tooks, results) if ids else (), rest


def _end(end: Ended) -> tuple[object, ...]:
    """[id, claim, outcome, took, keep, wait, excuse, looks, reason, result, type, message, trace], as far as they are set."""
    outcome, head = end.outcome, (bare(end.id), end.claim)
    match outcome:
        case Succeeded(result):
            return (*head, "succeeded", end.took, end.keep, None, None, None, None, result)
        case Failed(failure):
            return (*head, "failed", end.took, end.keep, None, None, None, storable(failure.reason), None, *_parts(failure))
        case Cancelled(reason):
            said = storable(reason)
            return (*head, "cancelled", end.took, end.keep, None, None, None, said, None, None, said)
        case Again(failure, wait):
            return (*head, "again", end.took, True, wait, 0, 0, storable(failure.reason), None, *_parts(failure))
        case Snoozed(wait):
            return (*head, "snoozed", end.took, True, wait, 1, 0)
        case Released(reason, wait, looks):
            said = storable(reason)
            return (*head, "released", end.took, True, wait, 1, looks, said, None, None, said)
        case never:
            assert_never(never)


def worker_row(worker: WorkerRow) -> tuple[object, ...]:
    """[name, host, pid, queues, tasks, concurrency, lease, version, started at, trouble]; the script sets when it started."""
    trouble = None if worker.trouble is None else storable(worker.trouble)
    said = (worker.name, worker.host, worker.pid, worker.queues, worker.tasks, worker.concurrency, worker.lease, worker.version)
    return (*said, 0, trouble)


def exact(moment: Micros | None) -> str | None:
    """The digits of a moment that is too far away for the numbers of scripts to be exact, which are double floats."""
    return None if moment is None or -_EXACT <= moment <= _EXACT else str(moment)


def storable(text: str) -> str:
    """Text without lone surrogates: one of them would keep a whole batch from being written."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _parts(failure: Failure) -> tuple[str, str, str]:
    return storable(failure.type), storable(failure.message), storable(failure.trace)


# -- what they answer ---------------------------------------------------------------------------


def turn(answer: bytes) -> tuple[list[str], list[Claimed]]:
    """The ids of attempts that did not count, and what was claimed."""
    stale, told = _turn(answer)
    return [dashed(id) for id in stale], [claimed(each) for each in told]


def heard(answer: object) -> tuple[bytes, bytes, object]:
    """What a subscriber is told: its kind, the channel, and what was published, or to how many channels it listens."""
    assert isinstance(answer, list)
    kind, channel, said = answer
    return kind, channel, said


def handed(message: bytes) -> Claimed:
    """A job that was claimed for a worker as it came in, as the worker is sent it."""
    return claimed(_told(message))


def claimed(told: Told) -> Claimed:
    """A job that was claimed now; a plain one is told as it was before."""
    job = told.fields
    args, context = job.args, job.context
    if told.texts is not None:
        args, context = _text(args, _ARGS, told.texts) or "", _text(context, _CONTEXT, told.texts)
    return Claimed(
        dashed(told.id),
        job.task,
        job.queue,
        args,  # type: ignore[arg-type]  # a text, as there are no texts aside, or by now
        job.claim + bool(job.plain),
        job.excused,
        job.max_attempts,
        job.priority,
        _due(job),
        job.key,
        job.looks or 0,
        context,  # type: ignore[arg-type]
    )


def jobs(answer: bytes) -> list[JobRow]:
    return [row(told) for told in _jobs(answer)]


def row(told: Told) -> JobRow:
    """A job as it is, with what stands behind its fields."""
    job, texts = told.fields, told.texts
    row = JobRow(
        id=dashed(told.id),
        task=job.task,
        queue=job.queue,
        state=job.state,
        priority=job.priority,
        due=_due(job),
        created_at=job.created_at,
        claim=job.claim,
        excused=job.excused,
        max_attempts=job.max_attempts,
        args=_text(job.args, _ARGS, texts) or "",
        key=job.key,
        worker=job.worker,
        claimed_at=job.claimed_at,
        finished_at=job.finished_at,
        took=job.took,
        result=_text(job.result, _RESULT, texts),
        reason=_text(job.reason, _REASON, texts),
        progress=_text(job.progress, _PROGRESS, texts),
        cancelling=bool(job.cancelling),
        held_by=job.room if job.state is State.HELD else None,
        key_waiting=bool(job.key_waiting),
        context=_text(job.context, _CONTEXT, texts),
    )
    if told.claim is None:
        return row
    row = replace(row, state=State.RUNNING, claim=told.claim, worker=told.worker, claimed_at=told.claimed_at)
    if told.finished_at is None:
        return row
    ended = {"finished_at": told.finished_at, "took": told.took, "result": told.result, "reason": None}
    return replace(row, state=State.SUCCEEDED, **ended)


def _due(job: Fields) -> Micros:
    """When a job is due: by its digits, unless they are of a moment from before it was changed."""
    return job.due if job.exact is None or float(job.exact) != job.due else int(job.exact)


def _text(value: str | bool | None, field: str, texts: Texts) -> str | None:
    """A text, wherever it is kept."""
    if not isinstance(value, bool):
        return value
    kept = texts or ()
    return next((kept[at + 1] for at in range(0, len(kept), 2) if kept[at] == field), None)


def attempt(packed: bytes) -> AttemptRow:
    return attempt_row(_attempt(packed))


def attempt_row(said: Attempt) -> AttemptRow:
    """An attempt. Without an error of its own it has a failure only where a reason was given."""
    claim, number, worker, ended_at, outcome, took, kind, message, trace = said
    failure = None if message is None else Failure(kind or "", message, trace or "")
    return AttemptRow(claim, number, worker, ended_at, outcome, took, failure)


def workers(answer: bytes) -> list[WorkerRow]:
    """Oldest first."""
    rows = [
        WorkerRow(id, *said[:9], lease_until=lease_until, asleep=asleep, trouble=said[9])
        for id, said, lease_until, asleep in _workers(answer)
    ]
    return sorted(rows, key=lambda worker: (worker.started_at, worker.id))


def beat(answer: bytes) -> tuple[bool, frozenset[str], frozenset[str], int | None]:
    """Whether the worker is known, what it has lost, what it is to stop, and which version it must know."""
    alive, lost, cancelled, needs = _beat(answer)
    return alive, frozenset(map(dashed, lost)), frozenset(map(dashed, cancelled)), needs


def reaped(answer: bytes) -> Reaped:
    losses, next_in = _losses(answer)
    return Reaped([Lost(dashed(id), *rest) for id, *rest in losses], next_in)  # type: ignore[arg-type]


def promoted(answer: bytes) -> Promoted:
    return Promoted(*_promoted(answer))


def pauses(answer: bytes) -> tuple[Micros, list[PauseRow]]:
    """The moment, and every pause by queue."""
    now, found = _pauses(answer)
    return now, sorted((PauseRow(queue, *said) for queue, said in found), key=lambda pause: pause.queue)


def holders(answer: bytes) -> Iterable[tuple[int, str]]:
    """The numbers of the jobs whose key another job has, and that one's id."""
    found = _holders(answer)
    return [(int(found[at]), dashed(str(found[at + 1]))) for at in range(0, len(found), 2)]


def task(name: str, packed: bytes) -> TaskRow:
    return TaskRow(name, *_task(packed))
