"""Sealing a store, and its jobs taken out and in whole: what `rota move` needs of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import msgpack

from rota.clock import Micros
from rota.errors import StoreError
from rota.model import AttemptRow, Seal, TaskRow, Whole
from rota.stores import sealing
from rota.stores.redis import records
from rota.stores.redis.client import MANY, Client
from rota.stores.redis.records import Told

_HEAVY = 8 * 1024 * 1024
"""So many bytes of jobs are dumped at once, and one job at least."""

_present = msgpack.Decoder(str | None).decode
_dumped = msgpack.Decoder(list[tuple[Told, list[records.Attempt]]]).decode
_loaded = msgpack.Decoder(int | str | None).decode


def seal(client: Client, wanted: Seal) -> None:
    """Put a seal on, or change the one with the same id."""
    present = _present(client.run("seal", wanted.id, wanted.words, sealing.written(wanted)))
    sealing.check_same(None if present is None else sealing.read(present), wanted.id)


def unseal(client: Client, id: str) -> bool:
    return msgpack.decode(client.run("unseal", id), type=bool)


def sealed(client: Client) -> Seal | None:
    found = client.send(b"HGET", client.key("seal"), b"text")
    return sealing.read(found.decode()) if isinstance(found, bytes) else None


def dump(client: Client, after: str | None, limit: int) -> list[Whole]:
    start = None if after is None else records.bare(after)
    answer = client.run("dump", start, min(limit, MANY), _HEAVY)
    return [_whole(told, attempts) for told, attempts in _dumped(answer)]


def load(client: Client, id: str, jobs: Sequence[Whole], now: Micros | None) -> int:
    sealing.check_there(sealed(client), id)
    added: int | str | None = _loaded(client.run("load", id, [_parts(job) for job in jobs], now=now))
    if isinstance(added, str):
        holder = records.dashed(added)
        raise StoreError(f"a job cannot be taken in, for its key is held by another one of its task, {holder}: see to that")
    if added is None:
        raise StoreError("this store is not sealed for these jobs any more: another `rota move` may have ended that move")
    return added


def declarations(client: Client) -> list[TaskRow]:
    found = client.send(b"HGETALL", client.key("tasks"))
    assert isinstance(found, list)
    return sorted(
        (records.task(found[at].decode(), found[at + 1]) for at in range(0, len(found), 2)), key=lambda task: task.name
    )


def _whole(told: Told, attempts: Sequence[records.Attempt]) -> Whole:
    job = records.row(told)
    places = tuple(sorted((name, key) for name, key in told.fields.places or told.places or ()))
    looks = 0 if job.state.final else told.fields.looks or 0
    return Whole(job, tuple(map(records.attempt_row, attempts)), looks, places)


def _parts(whole: Whole) -> tuple[object, ...]:
    """[id, the fields of `scripts/prelude` in their order, attempts]."""
    job = whole.job
    return (
        records.bare(job.id),
        (
            *(job.task, job.queue, job.claim, job.excused, False, job.args, job.priority, job.max_attempts, job.created_at),
            *(job.state, job.due, job.worker, job.claimed_at, job.finished_at, job.took, job.key, job.key_waiting or None),
            *(whole.looks or None, job.context, job.result, job.reason, job.progress, job.cancelling or None, job.held_by),
            *(whole.places or None, records.exact(job.due)),
        ),
        [_attempt(each) for each in whole.attempts],
    )


def _attempt(attempt: AttemptRow) -> tuple[object, ...]:
    failure = attempt.failure
    said = (None, None, None) if failure is None else (failure.type, failure.message, failure.trace)
    head = (attempt.claim, attempt.attempt, attempt.worker, attempt.ended_at, attempt.outcome, attempt.took)
    return (*head, *said)
