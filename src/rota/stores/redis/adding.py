"""Jobs that come in: few in one script, many as scripts in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import redis

from rota.clock import Micros
from rota.model import Inserted, NewJob
from rota.stores.adding import chunked
from rota.stores.redis import records
from rota.stores.redis.client import MANY, Client
from rota.stores.redis.scripts import command, loading, script


def insert(client: Client, jobs: Iterable[NewJob], now: Micros | None) -> list[Inserted]:
    """`Store.insert`."""
    chunks = chunked(jobs, MANY)
    first = next(chunks, None)
    if first is None:
        return []
    second = next(chunks, None)
    if second is not None:
        return _insert_many(client, chain([first, second], chunks), now)
    if len(first) == 1 and records.plain(first[0]):
        return [_insert_plain(client, first[0], now)]
    heads, single, alike = records.new(first)
    return _answers([job.id for job in first], client.run("insert", single, alike, now=now, packed=heads))


def _insert_plain(client: Client, job: NewJob, now: Micros | None) -> Inserted:
    """The most usual insert, of which callers make one after the other."""
    said = (records.bare(job.id), job.task, job.queue, job.priority, job.run_at, job.delay)
    client.run("insert_plain", *said, now=now, packed=records.head(job))
    return Inserted(job.id)


def _insert_many(client: Client, chunks: Iterable[Sequence[NewJob]], now: Micros | None) -> list[Inserted]:
    """All chunks or none: each goes to the server as it is read, which runs them together in the end."""
    ids: list[list[str]] = []
    try:
        with client.connections.lend() as wire:
            wire.ask(loading(script("insert")))
            wire.ask(command(b"MULTI"))
            try:
                for chunk in _guarded(chunks):
                    heads, single, alike = records.new(chunk)
                    wire.ask(client.called("insert", single, alike, now=now, packed=heads))
                    ids.append([job.id for job in chunk])
            except BaseException:
                wire.close()  # which makes the server forget what it was sent
                raise
            found = wire.ask(command(b"EXEC"))
            assert isinstance(found, list)
            for answer in found:
                if isinstance(answer, redis.ResponseError):
                    raise answer
    except _SourceBroke as broken:
        raise broken.error from None
    return [inserted for chunk, answer in zip(ids, found, strict=True) for inserted in _answers(chunk, answer)]


class _SourceBroke(Exception):
    """What the jobs are read from raised an error, which is none of the store's, whatever its kind."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _guarded(chunks: Iterable[Sequence[NewJob]]) -> Iterator[Sequence[NewJob]]:
    try:
        yield from chunks
    except Exception as error:
        raise _SourceBroke(error) from error


def _answers(ids: Sequence[str], answer: bytes) -> list[Inserted]:
    answers = [Inserted(id) for id in ids]
    for number, holder in records.holders(answer):
        answers[number] = Inserted(holder, existed=True)
    return answers
