"""`rota jobs retry`, `cancel` and `delete`: by ids, or all that a filter names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from rota.app import Rota
from rota.cli.filters import filters, given, whole_id
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import changed_record, write_json
from rota.cli.saying import say
from rota.cli.words import by_state, many
from rota.model import FINAL, Changed, Move, State
from rota.operate import Where, where

_DONE = {Move.RETRY: "retried", Move.CANCEL: "cancelled", Move.DELETE: "deleted"}
_UNFINISHED = tuple(state for state in State if state not in FINAL)
_TAKEN: dict[Move, tuple[State, ...]] = {
    Move.RETRY: (State.FAILED,),
    Move.CANCEL: _UNFINISHED,
    Move.DELETE: tuple(state for state in State if state is not State.RUNNING),
}
"""The states whose jobs a filter without `--status` names."""


def add_to(group: click.Group) -> None:
    """Add the three commands."""
    for command in (retry, cancel, delete):
        group.add_command(command)


def _changes(command: Callable[..., None]) -> Callable[..., None]:
    """What the three have in common."""
    command = click.pass_context(command)
    command = reaches_app(command)
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON: each job, before and after.")(command)
    command = click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
    command = filters(command)
    return click.argument("ids", nargs=-1, metavar="[ID]...")(command)


@click.command(short_help="Run jobs again, from now, with all attempts before them.")
@_changes
def retry(ctx: click.Context, ids: tuple[str, ...], yes: bool, as_json: bool, **_: Any) -> None:
    """Queue jobs to run now, with all of their attempts before them.

    Name jobs by their ids, or by a filter; a filter without --status names failed jobs. A running job is refused, and so is
    one whose key another unfinished job has. Exit status 1 when a job that was named by its id was refused.

    \b
    Examples:
      rota jobs retry 0198c0de-0000-7000-8000-000000000000
      rota jobs retry --queue mail
      rota jobs retry --status failed --task shop.tasks.send_receipt --yes
    """
    _change(ctx, Move.RETRY, ids, yes, as_json)


@click.command(short_help="Cancel jobs that are not finished.")
@_changes
def cancel(ctx: click.Context, ids: tuple[str, ...], yes: bool, as_json: bool, **_: Any) -> None:
    """Cancel jobs: those that wait will not run, and the workers of those that run are asked to stop them.

    Name jobs by their ids, or by a filter; a filter without --status names all that are not finished. Exit status 1 when a
    job that was named by its id was finished already.

    \b
    Examples:
      rota jobs cancel 0198c0de-0000-7000-8000-000000000000
      rota jobs cancel --status scheduled --task shop.tasks.remind
    """
    _change(ctx, Move.CANCEL, ids, yes, as_json)


@click.command(short_help="Remove jobs from the store.")
@_changes
def delete(ctx: click.Context, ids: tuple[str, ...], yes: bool, as_json: bool, **_: Any) -> None:
    """Remove jobs and what is remembered of their attempts from the store.

    Name jobs by their ids, or by a filter; a filter without --status names all that are not running. A running job is
    refused: cancel it first.

    \b
    Examples:
      rota jobs delete 0198c0de-0000-7000-8000-000000000000
      rota jobs delete --status cancelled --queue mail --yes
    """
    _change(ctx, Move.DELETE, ids, yes, as_json)


def _change(ctx: click.Context, move: Move, ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    which = given(ctx)
    if ids and any(which.values()):
        raise click.UsageError("ids and filters are both given: name jobs by their ids, or by a filter")
    if not ids and not any(which.values()):
        raise click.UsageError(f"say which jobs to {move}: their ids, or a filter such as --status failed --queue mail")
    app = reach_existing(ctx)
    if ids:
        _by_ids(ctx, app, move, [whole_id(app, id) for id in ids], as_json)
    else:
        _by_filter(app, move, where(which["status"] or _TAKEN[move], which["queue"], which["task"], which["key"]), yes, as_json)


# -- by ids -------------------------------------------------------------------------------------


def _by_ids(ctx: click.Context, app: Rota, move: Move, ids: Sequence[str], as_json: bool) -> None:
    changed = app.change(move, ids)
    if as_json:
        write_json({"changed": [changed_record(each) for each in changed]})
    else:
        for each in changed:
            say(f"{each.id}  {_became(move, each)}", err=_refused(move, each))
    if any(_refused(move, each) for each in changed):
        ctx.exit(1)


def _refused(move: Move, changed: Changed) -> bool:
    if changed.before is None:
        return True
    match move:
        case Move.RETRY:
            return changed.before is State.RUNNING or changed.after is not State.QUEUED
        case Move.CANCEL:
            return changed.before in FINAL
        case _:
            return changed.after is not None


def _became(move: Move, changed: Changed) -> str:
    if changed.before is None:
        return "there is no such job: it never existed, was deleted, or its time in the history ended"
    if not _refused(move, changed):
        asked = move is Move.CANCEL and changed.after is State.RUNNING
        return "is running: its worker was asked to stop it" if asked else f"{_DONE[move]} (was {changed.before})"
    if move is Move.CANCEL:
        return f"was {changed.before} already: nothing to cancel"
    if changed.before is State.RUNNING:
        return f"is running, so it cannot be {_DONE[move]}: cancel it first, or wait for it"
    return f"is {changed.before} and cannot be {_DONE[move]}: another unfinished job has its key"


# -- by a filter --------------------------------------------------------------------------------


def _by_filter(app: Rota, move: Move, which: Where, yes: bool, as_json: bool) -> None:
    numbers = _counted(app, which)
    total = sum(numbers.values())
    if total and not yes:
        _confirm(f"{move.capitalize()} {many(total)} ({by_state(numbers)}) in {app.store.url}?")
    with _progress(move, total) as tell:
        changed = app.change_all(move, which, tell) if total else []
    if as_json:
        write_json({"changed": [changed_record(each) for each in changed]})
        return
    if not total:
        say("no such jobs")
        return
    say(f"{_DONE[move]} {len(changed)} of {many(total)}")
    asked = sum(1 for each in changed if move is Move.CANCEL and each.after is State.RUNNING)
    if asked:
        say(f"  {many(asked)} of them running: their workers were asked to stop them")
    if len(changed) < total:
        say(f"  {total - len(changed)} stayed: they changed meanwhile, run, or another unfinished job has their key")


def _confirm(question: str) -> None:
    if not click.confirm(question):
        say("nothing was changed")
        raise click.exceptions.Exit(1)


def _counted(app: Rota, which: Where) -> dict[State, int]:
    """How many jobs the filter names, by state. Raises `ConfigError` for a queue that does not exist."""
    first = app.jobs(status=which.states, queue=which.queue, task=which.task, key=which.key, limit=10_000 if which.key else 1)
    numbers = dict.fromkeys(State, 0)
    if which.key is not None:  # few jobs share a key, and counts do not know of keys
        for job in first:
            numbers[job.status] += 1
        return numbers
    for count in app.store.counts():
        fits = count.state in which.states and which.queue in (None, count.queue) and which.task in (None, count.task)
        numbers[count.state] += count.jobs if fits else 0
    return numbers


@contextmanager
def _progress(move: Move, total: int) -> Iterator[Callable[[int], object]]:
    """A bar on the terminal, where there is one and the change takes a while."""
    if total <= 500 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(str(move), total=total)
        yield lambda seen: bar.update(task, completed=seen)
