"""Adding jobs, and finding who holds the keys of those that could not be added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rota.clock import Micros
from rota.model import Inserted, NewJob
from rota.stores import rows
from rota.stores.database import Run, Steps, through

MOST = 2_000
"""Jobs that are sent together, at most."""
HEAVIEST = 8 * 1024 * 1024
"""Characters of arguments that are sent together, about."""


def chunked(jobs: Iterable[NewJob], most: int = MOST) -> Iterator[list[NewJob]]:
    """The jobs in lists that are not too long and not too heavy for one parameter."""
    chunk: list[NewJob] = []
    weight = 0
    for job in jobs:
        if chunk and (len(chunk) == most or weight + len(job.args) > HEAVIEST):
            yield chunk
            chunk, weight = [], 0
        chunk.append(job)
        weight += len(job.args)
    if chunk:
        yield chunk


def add(run: Run, jobs: Sequence[NewJob], now: Micros | None) -> list[Inserted]:
    """Insert jobs in one statement; only when some were not added is it looked up why."""
    return through(run, adding(jobs, now))


def settle(run: Run, jobs: Sequence[NewJob], added: int, now: Micros | None) -> list[Inserted]:
    """The answers for jobs of which so many were added; see `settling`."""
    return through(run, settling(jobs, added, now))


def inserting(jobs: Iterable[NewJob], now: Micros | None) -> Steps[list[Inserted]]:
    """Insert jobs, all or none, inside of a transaction that somebody else may commit although this failed."""
    chunks = chunked(jobs)
    first = next(chunks, [])
    second = next(chunks, None)
    if second is None:
        return (yield from _inserting_chunk(first, now))
    yield "mark", {}
    try:
        answers: list[Inserted] = []
        for chunk in chain([first, second], chunks):
            answers += yield from _inserting_chunk(chunk, now)
    except Exception:
        yield "back_to_mark", {}
        raise
    yield "unmark", {}
    return answers


def _inserting_chunk(jobs: Sequence[NewJob], now: Micros | None) -> Steps[list[Inserted]]:
    if len(jobs) == 1:
        added = yield "insert_one", rows.job_params(jobs[0], now)
        return [Inserted(jobs[0].id)] if added else (yield from settling(jobs, 0, now))
    ordered = sorted(jobs, key=key_order)
    return in_order(jobs, ordered, (yield from adding(ordered, now))) if jobs else []


def adding(jobs: Sequence[NewJob], now: Micros | None) -> Steps[list[Inserted]]:
    """The steps of `add`, for whoever holds the connection."""
    [[added, *_]] = yield "insert", {"jobs": rows.jobs_json(jobs), "now": now}
    return (yield from settling(jobs, added, now))


def settling(jobs: Sequence[NewJob], added: int, now: Micros | None) -> Steps[list[Inserted]]:
    """The answers for jobs of which so many were added.

    One that was not added has an id that is known, or a key that is held. A holder may finish while it is looked for; its
    key is free then, and the job is added after all.
    """
    answers = {job.id: Inserted(job.id) for job in jobs}
    if added < len(jobs):
        open_ = [job for job in jobs if job.key is not None]
        while open_:
            known = yield "known", {"ids": [job.id for job in open_]}
            settled = {row[0] for row in known}
            open_ = [job for job in open_ if job.id not in settled]
            free = []
            for job in open_:
                if found := (yield "holder", {"task": job.task, "key": job.key}):
                    answers[job.id] = Inserted(found[0][0], existed=True)
                else:
                    free.append(job)
            open_ = free
            if open_:
                yield "insert", {"jobs": rows.jobs_json(open_), "now": now}
    return [answers[job.id] for job in jobs]


def key_order(job: NewJob) -> tuple[str, str]:
    """Batches that share keys insert them in one order, so that they wait for each other one way round at most."""
    return job.key or "", job.task


def in_order(jobs: Sequence[NewJob], ordered: Sequence[NewJob], answers: Sequence[Inserted]) -> list[Inserted]:
    """The answers to the jobs that were sent in another order."""
    found = dict(zip((job.id for job in ordered), answers, strict=True))
    return [found[job.id] for job in jobs]
