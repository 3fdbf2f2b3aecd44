"""Adding jobs, and finding who holds the keys of those that could not be added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rota.clock import Micros
from rota.model import Inserted, NewJob
from rota.stores import rows
from rota.stores.database import Run

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
    [[added, *_]] = run("insert", {"jobs": rows.jobs_json(jobs), "now": now})
    return settle(run, jobs, added, now)


def settle(run: Run, jobs: Sequence[NewJob], added: int, now: Micros | None) -> list[Inserted]:
    """The answers for jobs of which so many were added.

    One that was not added has an id that is known, or a key that is held. A holder may finish while it is looked for; its
    key is free then, and the job is added after all.
    """
    answers = {job.id: Inserted(job.id) for job in jobs}
    if added < len(jobs):
        open_ = [job for job in jobs if job.key is not None]
        while open_:
            known = {row[0] for row in run("known", {"ids": [job.id for job in open_]})}
            open_ = [job for job in open_ if job.id not in known]
            free = []
            for job in open_:
                if found := run("holder", {"task": job.task, "key": job.key}):
                    answers[job.id] = Inserted(found[0][0], existed=True)
                else:
                    free.append(job)
            open_ = free
            if open_:
                run("insert", {"jobs": rows.jobs_json(open_), "now": now})
    return [answers[job.id] for job in jobs]
