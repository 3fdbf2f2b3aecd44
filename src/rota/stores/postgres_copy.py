"""Many jobs at once, by COPY."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from psycopg import errors

from rota.clock import Micros
from rota.model import NewJob
from rota.stores import rows
from rota.stores.adding import HEAVIEST, MOST, chunked
from rota.stores.postgres_driver import Session

_LONGEST = 20_000
"""Jobs in one COPY: the server catches up at its end, while this side waits."""
_SLICE = 250
"""Jobs sent at once: few, so that the server takes them in while the next are made."""

_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


class Ahead:
    """An iterator of jobs whose next one can be looked at."""

    def __init__(self, jobs: Iterable[NewJob]) -> None:
        self._jobs: Iterator[NewJob] = iter(jobs)
        self.head = next(self._jobs, None)
        """The next job; `None` when there is none left."""

    def take(self) -> NewJob:
        job = self.head
        assert job is not None
        self.head = next(self._jobs, None)
        return job

    def chunk(self) -> list[NewJob]:
        """The next jobs, as many as one insert takes."""
        jobs: list[NewJob] = []
        weight = 0
        while self.head is not None and len(jobs) < MOST and weight < HEAVIEST:
            weight += len(self.head.args)
            jobs.append(self.take())
        return jobs


def copy(session: Session, jobs: Ahead, now: Micros) -> list[NewJob]:
    """Add the next jobs that have no key, save those whose id is known, and answer which were taken. Runs in a transaction."""
    taken: list[NewJob] = []
    try:
        with session.transaction():
            _stream(session, jobs, taken, now)
    except errors.UniqueViolation:  # COPY cannot skip what is there already
        for chunk in chunked(taken):
            session.run("insert", {"jobs": rows.jobs_json(chunk), "now": now})
        return taken
    # Looked up after the COPY, which waits for a transaction that is finishing one of these jobs. Ids sort by their time, so
    # jobs that are newer than all that ever finished are not among those.
    newest = session.run("newest_finished", {})
    if newest and newest[0][0] >= min(job.id for job in taken):
        known = [row[0] for row in session.run("finished", {"ids": [job.id for job in taken]})]
        if known:
            session.run("delete_waiting", {"ids": known})
    return taken


def _stream(session: Session, jobs: Ahead, taken: list[NewJob], now: Micros) -> None:
    weight = 0
    lines: list[str] = []
    with session.driver().cursor() as cursor, cursor.copy(session.queries["copy"].text) as stream:
        while jobs.head is not None and jobs.head.key is None and len(taken) < _LONGEST and weight < HEAVIEST:
            job = jobs.take()
            taken.append(job)
            weight += len(job.args)
            lines.append(_line(job, now))
            if len(lines) == _SLICE:
                stream.write("".join(lines))
                lines.clear()
        stream.write("".join(lines))


def _line(job: NewJob, now: Micros) -> str:
    """A row in the text form of COPY."""
    due = now + job.delay if job.run_at is None else job.run_at
    context = "\\N" if job.context is None else _text(job.context)
    return (
        f"{job.id}\t{_text(job.task)}\t{_text(job.queue)}\t{_text(job.args)}\t{job.priority}\t{due}\t"
        f"{'scheduled' if due > now else 'queued'}\t{job.max_attempts}\t\\N\t{'t' if job.key_waiting else 'f'}\t{now}\t"
        f"{context}\n"
    )


def _text(text: str) -> str:
    return text if _SPECIAL.search(text) is None else _SPECIAL.sub(lambda found: _ESCAPED[found[0]], text)
