"""`rota workers`: who works, and on what."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import job_record, value, worker_record, write_json
from rota.cli.saying import say, styled
from rota.cli.tables import Cell, Column, name_column, write_table
from rota.cli.words import ago, many, short_id
from rota.clock import Micros
from rota.model import Filter, JobRow, State, WorkerRow

COLUMNS = (
    name_column("worker"),
    name_column("host", drop=2),
    Column("pid", right=True),
    Column("queues", flexible=True),
    Column("jobs", right=True),
    Column("slots", right=True),
    Column("since", right=True),
    Column("lease", right=True),
    Column("version", drop=1),
)
_JOBS = (
    Column("job"),
    name_column("task"),
    name_column("worker"),
    Column("attempt", drop=2, right=True),
    Column("for", right=True),
    Column("progress", flexible=True, drop=1),
)


@click.command(short_help="List workers and the jobs that they run.")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many running jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def workers(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the workers: where each runs, what it serves, its slots, how its lease stands, and the jobs that it has.

    A worker may have more jobs than slots: it claims some ahead.

    \b
    Examples:
      rota workers --url sqlite:///jobs.db
      rota workers --json | jq '.workers[] | {name, jobs: [.jobs[].id]}'
    """
    app = reach_existing(ctx)
    known = app.workers()
    running = app.store.find(Filter((State.RUNNING,)), limit)
    if as_json:
        write_json({"workers": [_record(worker, running) for worker in known], "more": len(running) == limit})
        return
    if not known:
        say("no worker is at work")
        return
    now = now_of(app)
    write_table(COLUMNS, [worker_cells(worker, now) | {"jobs": jobs_cell(_of(worker, running))} for worker in known])
    if running:
        say()
        names = {worker.id: worker.name for worker in known}
        write_table(_JOBS, [_job(job, names, now) for job in sorted(running, key=lambda job: (job.claimed_at or 0, job.id))])
    if len(running) == limit:
        say(styled(f"perhaps more than {many(limit)}: raise --limit", dim=True))


def worker_cells(worker: WorkerRow, now: Micros) -> dict[str, Cell | str]:
    """A worker in the columns of a table, save for its jobs."""
    return {
        "worker": Cell(worker.name, bold=True),
        "host": worker.host,
        "pid": str(worker.pid),
        "queues": "all" if worker.queues is None else ", ".join(worker.queues),
        "slots": str(worker.concurrency),
        "since": ago(worker.started_at, now),
        "lease": _lease(worker, now),
        "version": worker.version,
    }


def jobs_cell(number: int) -> Cell | str:
    """How many jobs a worker has."""
    return Cell(str(number), "yellow") if number else "-"


def _lease(worker: WorkerRow, now: Micros) -> Cell | str:
    if worker.fallen:
        return Cell("fallen", "red")
    if worker.lease_until <= now:
        return Cell(f"lost {ago(worker.lease_until, now)} ago", "red")
    return f"{ago(now, worker.lease_until)} left"


def _of(worker: WorkerRow, running: Sequence[JobRow]) -> int:
    return sum(1 for job in running if job.worker == worker.id)


def _record(worker: WorkerRow, running: Sequence[JobRow]) -> dict[str, object]:
    return worker_record(worker) | {"jobs": [job_record(job) for job in running if job.worker == worker.id]}


def _job(job: JobRow, names: dict[str, str], now: Micros) -> dict[str, Cell | str]:
    return {
        "job": short_id(job.id),
        "task": job.task,
        "worker": names.get(job.worker or "", job.worker or ""),
        "attempt": f"{job.attempt}/{job.max_attempts}",
        "for": "-" if job.claimed_at is None else ago(job.claimed_at, now),
        "progress": progress(job),
    }


def progress(job: JobRow) -> str:
    """How far a body says it is, in few characters."""
    said = value(job.progress)
    if not isinstance(said, dict):
        return ""
    done, total, note = said.get("done"), said.get("total"), said.get("note")
    if isinstance(done, int | float) and isinstance(total, int | float) and total:
        return f"{100 * done / total:.0f} % {note or ''}".strip()
    return f"{done} {note or ''}".strip()
