"""`rota jobs`: the list, and everything about one job."""

from __future__ import annotations

from collections.abc import Mapping

import click

from rota.app import Rota
from rota.cli import changes
from rota.cli.durations import brief
from rota.cli.explain import explain
from rota.cli.filters import filters, given, whole_id
from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import arguments, attempt_record, job_record, moment, value, write_json
from rota.cli.saying import say, styled
from rota.cli.tables import Cell, Column, name_column, screen_width, write_table
from rota.cli.words import COLOURS, ago, short_id, when
from rota.clock import SECOND, Micros
from rota.codec.text import clean
from rota.codec.text import show as shown
from rota.model import AttemptRow, JobRow, State

_COLUMNS = (
    Column("id"),
    Column("status"),
    name_column("task"),
    name_column("queue", drop=3),
    Column("attempt", drop=2, right=True),
    Column("when"),
    Column("what", flexible=True, drop=1),
)
_LONG = 4_000
"""How many characters of a value `show` prints; `--json` prints all."""


@click.group(
    invoke_without_command=True,
    short_help="List, show, explain, retry, cancel, delete and edit jobs.",
    subcommand_metavar="[COMMAND]",
)
@filters
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many jobs.")
@click.option("--before", metavar="ID", help="The next page: jobs older than this one, the last of the page before.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def jobs(
    ctx: click.Context,
    status: tuple[str, ...],
    queue: str | None,
    task: str | None,
    key: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """List jobs, the newest first; or look at and change some with a command after it.

    \b
    Examples:
      rota jobs --url sqlite:///jobs.db
      rota jobs --status failed --queue mail --limit 20
      rota jobs --status failed --json | jq -r '.jobs[].id'
      rota jobs show 0198c0de-0000-7000-8000-000000000000
      rota jobs retry --status failed --queue mail
    """
    if ctx.invoked_subcommand is not None:
        return
    app = reach_existing(ctx)
    found = app.jobs(status=status, queue=queue, task=task, key=key, limit=limit, before=before and whole_id(app, before))
    rows = [job.row for job in found]
    following = rows[-1].id if len(rows) == limit else None
    if as_json:
        write_json({"jobs": [job_record(row) for row in rows], "next": following})
        return
    if not rows:
        say("no jobs" if not given(ctx)["status"] and not (queue or task or key or before) else "no such jobs")
        return
    _list(app, rows)
    if following is not None and screen_width() is not None:
        say(styled(f"perhaps more: add --before {following}", dim=True))


def _list(app: Rota, rows: list[JobRow]) -> None:
    now = now_of(app)
    write_table(_COLUMNS, [_cells(row, now) for row in rows])


def _cells(row: JobRow, now: Micros) -> dict[str, Cell | str]:
    return {
        "id": short_id(row.id),
        "status": Cell("cancelling" if row.cancelling else row.state, COLOURS[row.state]),
        "task": row.task,
        "queue": row.queue,
        "attempt": f"{row.attempt}/{row.max_attempts}",
        "when": when(row, now),
        "what": _what(row),
    }


def _what(row: JobRow) -> str:
    """Why it waits, or what its last attempt came to, or else what it was called with."""
    if row.held_by is not None and row.state is State.HELD:
        return f"by {' '.join(part for part in row.held_by if part)}"
    return row.reason or shown(row.args, 200)


@jobs.command("show", short_help="Everything about one job.")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def show(ctx: click.Context, id: str, as_json: bool) -> None:
    """Show everything about one job: its arguments, what it carries along, its attempts with their errors and traces,
    its progress and result.

    ID is the job's id, or at least the last four characters of it, as log lines have them.

    \b
    Examples:
      rota jobs show 0198c0de-0000-7000-8000-000000000000
      rota jobs show 9f3a61 --json
    """
    app = reach_existing(ctx)
    job = app.get(whole_id(app, id))
    row, attempts = job.row, job.attempts()
    if as_json:
        write_json(job_record(row) | {"attempts": [attempt_record(each) for each in attempts]})
        return
    names = {worker.id: worker.name for worker in app.workers()}
    _facts(row, names, now_of(app))
    for each in attempts:
        _attempt(each, names)


def _facts(row: JobRow, names: Mapping[str, str], now: int) -> None:
    state = styled(row.state, fg=COLOURS[row.state], bold=True)
    asked = " (asked to stop)" if row.cancelling else ""
    say(styled(row.task, bold=True), "  ", state, asked)
    _fact("id", row.id)
    _fact("queue", f"{row.queue}, priority {row.priority}")
    if row.key is not None:
        _fact("key", row.key)
    if row.held_by is not None:
        _fact("held by", f"{row.held_by[0]}{f', key {row.held_by[1]}' if row.held_by[1] else ''}")
    _fact("attempts", f"{row.attempt} of {row.max_attempts}")
    moments = {"enqueued": row.created_at, "due": row.due, "started": row.claimed_at, "finished": row.finished_at}
    for name, at in moments.items():
        if at is not None:
            _fact(name, f"{moment(at)}  ({ago(at, now)} ago)" if at <= now else f"{moment(at)}  (in {ago(now, at)})")
    if row.took is not None:
        _fact("took", brief(row.took / SECOND))
    if row.worker is not None and row.state is State.RUNNING:
        _fact("worker", _called(row.worker, names))
    if row.reason is not None:
        _fact("reason", row.reason)
    if row.state is State.FAILED:
        _fact("next", f"rota jobs retry {row.id}  (once what was wrong is mended)")
    if row.progress is not None:
        _fact("progress", _progress(value(row.progress)))
    _arguments(row)
    if row.context is not None:
        _carried(value(row.context))
    if row.result is not None:
        _fact("result", row.result)


def _arguments(row: JobRow) -> None:
    args, kwargs = arguments(row.args)
    if not args and not kwargs:
        _fact("arguments", "none")
        return
    names = [*(str(number) for number in range(1, len(args) + 1)), *kwargs]
    for at, (name, each) in enumerate(zip(names, [*args, *kwargs.values()], strict=True)):
        _fact("arguments" if at == 0 else "", f"{name} = {each!r}")


def _carried(values: object) -> None:
    named = values.items() if isinstance(values, dict) else [("", values)]
    for at, (name, each) in enumerate(named):
        _fact("carried" if at == 0 else "", f"{name} = {each!r}")


def _progress(said: object) -> str:
    if not isinstance(said, dict):
        return str(said)
    done, total, note = said.get("done"), said.get("total"), said.get("note")
    parts = [f"{done:g}" if isinstance(done, int | float) else str(done)]
    if isinstance(done, int | float) and isinstance(total, int | float) and total:
        parts.append(f"of {total:g} ({100 * done / total:.0f} %)")
    return " ".join([*parts, str(note or "")]).strip()


def _fact(name: str, said: str) -> None:
    text = clean(said, _LONG).replace("\n", "\n" + " " * 13)
    say("  ", styled(f"{name:9}", dim=True), f"  {text}")


_OUTCOMES = {"again": "failed, to be tried again", "released": "handed back", "lost": "its worker was lost"}
"""What became of an attempt, where the record's own word says little."""


def _called(worker: str, names: Mapping[str, str]) -> str:
    """A worker by its name too, while the store knows it."""
    return f"{names[worker]} ({worker})" if worker in names else worker


def _attempt(row: AttemptRow, names: Mapping[str, str]) -> None:
    by = f", worker {_called(row.worker, names)}" if row.worker else ""
    outcome = _OUTCOMES.get(row.outcome, row.outcome)
    say(f"\nattempt {row.attempt}: {outcome}, after {brief(row.took / SECOND)}, at {moment(row.ended_at)}{by}")
    if row.failure is None:
        return
    trace = row.failure.trace.strip() or ": ".join(part for part in (row.failure.type, row.failure.message) if part)
    for line in trace.split("\n"):
        say(f"  {line}")


jobs.add_command(explain)
changes.add_to(jobs)
