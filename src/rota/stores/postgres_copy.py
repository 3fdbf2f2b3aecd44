"""Many jobs at once, by COPY."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psycopg import errors

from rota.clock import Micros
from rota.model import NewJob
from rota.stores import rows
from rota.stores.postgres_driver import Session


def copy(session: Session, jobs: Sequence[NewJob], now: Micros, meanwhile: Callable[[], object]) -> None:
    """Add jobs without keys, save those whose id is known. Runs inside a transaction.

    `meanwhile` is called while the server takes in what it was sent: the time to prepare more.
    """
    try:
        with session.transaction():
            _stream(session, jobs, now, meanwhile)
    except errors.UniqueViolation:  # COPY cannot skip what is there already
        session.run("insert", {"jobs": rows.jobs_json(jobs), "now": now})
        return
    # Looked up after the COPY, which waits for a transaction that is finishing one of these jobs. Ids sort by their time, so
    # jobs that are newer than all that ever finished are not among those.
    newest = session.run("newest_finished", {})
    if newest and newest[0][0] >= min(job.id for job in jobs):
        known = [row[0] for row in session.run("finished", {"ids": [job.id for job in jobs]})]
        if known:
            session.run("delete_waiting", {"ids": known})


def _stream(session: Session, jobs: Sequence[NewJob], now: Micros, meanwhile: Callable[[], object]) -> None:
    with session.driver().cursor() as cursor, cursor.copy(session.queries["copy"].text) as stream:
        write = stream.write_row
        for job in jobs:
            due = now + job.delay if job.run_at is None else job.run_at
            state = "scheduled" if due > now else "queued"
            write(
                (
                    job.id,
                    job.task,
                    job.queue,
                    job.args,
                    job.priority,
                    due,
                    state,
                    job.max_attempts,
                    None,
                    job.key_waiting,
                    now,
                )
            )
        meanwhile()
