"""`rota jobs retry`, `cancel`, `delete` and `edit`: by ids, or all that a filter names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from rota.app import Rota
from rota.cli.durations import duration
from rota.cli.filters import filters, filters_with, given, whole_id
from rota.cli.moments import moment
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import changed_record, write_json
from rota.cli.saying import say
from rota.cli.sweep import DONE, How, Wanted, sweep
from rota.ids import is_id
from rota.model import FINAL, MOVES, UNFINISHED, Changed, Move, State
from rota.operate import where
from rota.options import edit_of

_TAKEN: dict[Move, tuple[State, ...]] = {
    Move.RETRY: (State.FAILED,),
    Move.CANCEL: UNFINISHED,
    Move.DELETE: tuple(state for state in State if state is not State.RUNNING),
    Move.EDIT: tuple(state for state in State if state in MOVES[Move.EDIT]),
}
"""The states whose jobs a filter without `--status` names."""


def add_to(group: click.Group) -> None:
    """Add the four commands."""
    for command in (retry, cancel, delete, edit):
        group.add_command(command)


def _changes(command: Callable[..., None]) -> Callable[..., None]:
    """What they have in common, but the filter."""
    command = click.pass_context(command)
    command = reaches_app(command)
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON: each job, before and after.")(command)
    command = click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
    command = click.option("--dry-run", is_flag=True, help="Only say which jobs there are.")(command)
    command = click.option("--before", metavar="ID", help="With a filter: go on from where a change was interrupted.")(command)
    return click.argument("ids", nargs=-1, metavar="[ID]...")(command)


@click.command(short_help="Run jobs again, from now, with all attempts before them.")
@filters
@_changes
def retry(ctx: click.Context, **options: Any) -> None:
    """Queue jobs to run now, with all of their attempts before them.

    Name jobs by their ids, or by a filter; a filter without --status names failed jobs. A running job is refused, and so is
    one whose key another unfinished job has. Exit status 1 when a job that was named by its id was refused.

    \b
    Examples:
      rota jobs retry 0198c0de-0000-7000-8000-000000000000
      rota jobs retry --queue mail --dry-run
      rota jobs retry --status failed --task shop.tasks.send_receipt --yes
    """
    _change(ctx, Wanted(Move.RETRY), **options)


@click.command(short_help="Cancel jobs that are not finished.")
@filters
@_changes
def cancel(ctx: click.Context, **options: Any) -> None:
    """Cancel jobs: those that wait will not run, and the workers of those that run are asked to stop them.

    Name jobs by their ids, or by a filter; a filter without --status names all that are not finished. Exit status 1 when a
    job that was named by its id was finished already.

    \b
    Examples:
      rota jobs cancel 0198c0de-0000-7000-8000-000000000000
      rota jobs cancel --status scheduled --task shop.tasks.remind
    """
    _change(ctx, Wanted(Move.CANCEL), **options)


@click.command(short_help="Remove jobs from the store.")
@filters
@_changes
def delete(ctx: click.Context, **options: Any) -> None:
    """Remove jobs and what is remembered of their attempts from the store.

    Name jobs by their ids, or by a filter; a filter without --status names all that are not running. A running job is
    refused: cancel it first.

    \b
    Examples:
      rota jobs delete 0198c0de-0000-7000-8000-000000000000
      rota jobs delete --status cancelled --queue mail --yes
    """
    _change(ctx, Wanted(Move.DELETE), **options)


@click.command(short_help="Change the priority, queue or due time of jobs that wait.")
@click.option("--priority", type=int, help="Larger runs first.")
@click.option("--queue", "to_queue", help="The queue to move them to.")
@click.option("--delay", type=duration, help="How long from now until they are due, such as 90s; 0 for now.")
@click.option("--run-at", type=moment, metavar="MOMENT", help="When they are due, such as 2030-01-31T09:00+01:00.")
@filters_with("--from-queue")
@_changes
def edit(
    ctx: click.Context,
    priority: int | None,
    to_queue: str | None,
    delay: float | None,
    run_at: datetime | None,
    **options: Any,
) -> None:
    """Change jobs while they wait: their priority, their queue, or when they are due.

    Name jobs by their ids, or by a filter; a filter without --status names all that wait. What is due later is scheduled, what
    is due now is queued, and what a limit holds is queued for it to look at anew. Jobs that run or are finished are refused.

    \b
    Examples:
      rota jobs edit 0198c0de-0000-7000-8000-000000000000 --priority 5 --delay 0
      rota jobs edit --from-queue mail --task shop.tasks.send_receipt --queue receipts
      rota jobs edit --status queued --key receipt:42 --run-at 2030-01-31T09:00+01:00
    """
    if priority is None and to_queue is None and delay is None and run_at is None:
        raise click.UsageError("say what to change: --priority, --queue, --delay or --run-at")
    _change(ctx, Wanted(Move.EDIT, edit_of(to_queue, priority, delay, run_at)), **options)


def _change(
    ctx: click.Context,
    wanted: Wanted,
    ids: tuple[str, ...],
    before: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **_: Any,
) -> None:
    which = given(ctx)
    if ids and (any(which.values()) or before):
        raise click.UsageError("ids and filters are both given: name jobs by their ids, or by a filter")
    if not ids and not any(which.values()):
        example = "--status queued --from-queue mail" if wanted.move is Move.EDIT else "--status failed --queue mail"
        raise click.UsageError(f"say which jobs to {wanted.move}: their ids, or a filter such as {example}")
    app = reach_existing(ctx)
    if ids:
        _by_ids(ctx, app, wanted, [whole_id(app, id) for id in ids], dry_run, as_json)
        return
    named = where(which["status"] or _TAKEN[wanted.move], which["queue"], which["task"], which["key"])
    sweep(app, wanted, named, How(yes, dry_run, before and whole_id(app, before), as_json))


# -- by ids -------------------------------------------------------------------------------------


def _by_ids(ctx: click.Context, app: Rota, wanted: Wanted, ids: Sequence[str], dry_run: bool, as_json: bool) -> None:
    if dry_run:
        _tell_only(app, wanted.move, ids, as_json)
        return
    changed = wanted.by_ids(app, ids)
    if as_json:
        write_json({"changed": [changed_record(each) for each in changed], "next": None})
    else:
        for each in changed:
            say(f"{each.id}  {_became(wanted.move, each)}", err=_refused(wanted.move, each))
    if any(_refused(wanted.move, each) for each in changed):
        ctx.exit(1)


def _tell_only(app: Rota, move: Move, ids: Sequence[str], as_json: bool) -> None:
    there = {row.id: row.state for row in app.store.get([id for id in ids if is_id(id)])}
    able = [id for id in ids if id in there and there[id] in MOVES[move]]
    if as_json:
        numbers = {state.value: sum(1 for id in able if there[id] is state) for state in State}
        write_json({"dry_run": True, "jobs": numbers, "total": len(able)})
        return
    for id in ids:
        is_now = f"is {there[id]}" if id in there else "there is no such job"
        say(f"{id}  {f'would be {DONE[move]}' if id in able else 'would stay'} ({is_now})")


def _refused(move: Move, changed: Changed) -> bool:
    if changed.before is None:
        return True
    match move:
        case Move.RETRY:
            return changed.before is State.RUNNING or changed.after is not State.QUEUED
        case Move.CANCEL:
            return changed.before in FINAL
        case Move.EDIT:
            return changed.before not in MOVES[Move.EDIT]
        case _:
            return changed.after is not None


def _became(move: Move, changed: Changed) -> str:
    if changed.before is None:
        return "there is no such job: it never existed, was deleted, or its time in the history ended"
    if not _refused(move, changed):
        asked = move is Move.CANCEL and changed.after is State.RUNNING
        if move is Move.EDIT:
            return f"edited (was {changed.before}, is {changed.after})"
        return "is running: its worker was asked to stop it" if asked else f"{DONE[move]} (was {changed.before})"
    if move is Move.CANCEL:
        return f"was {changed.before} already: nothing to cancel"
    if changed.before is State.RUNNING:
        return f"is running, so it cannot be {DONE[move]}: cancel it first, or wait for it"
    if move is Move.EDIT:
        return f"is {changed.before}, so it cannot be edited: retry it first, or enqueue another"
    return f"is {changed.before} and cannot be {DONE[move]}: another unfinished job has its key"
