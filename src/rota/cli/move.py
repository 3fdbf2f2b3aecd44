"""`rota move`: moves all jobs of one store to another, or gives such a move up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from rota import moving
from rota.cli.records import Record, moment, write_json
from rota.cli.saying import say
from rota.cli.words import by_state, many
from rota.codec.text import visible
from rota.model import Seal, State
from rota.moving import Moved, Stage

_LINES = 10
"""So many lines tell how far it is, of moving and of checking each, where no bar can be shown."""


@click.command(short_help="Move all jobs to another store.")
@click.option("--from", "source", metavar="URL", required=True, help="The store that has the jobs, such as sqlite:///jobs.db.")
@click.option("--to", "target", metavar="URL", help="The store that gets them: one without jobs.")
@click.option("--dry-run", is_flag=True, help="Only say what would be moved, or why it cannot be.")
@click.option("--reopen", is_flag=True, help="Give the move up: have the store of --from take jobs again.")
@click.option(
    "--yes", "-y", is_flag=True, help="Do not ask before a store is opened again whose jobs have all arrived elsewhere."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def move(ctx: click.Context, source: str, target: str | None, dry_run: bool, reopen: bool, yes: bool, as_json: bool) -> None:
    """Move all jobs of one store to another, with their attempts, results, keys and limits.

    Stop the workers first. From the beginning on, whoever enqueues to the old store is told where the jobs go; it keeps what
    it has, and changes no more. Run the same command again if it was interrupted: it goes on. At the end both stores are
    compared, job by job; the exit status is 1 where they differ.

    \b
    Examples:
      rota move --from sqlite:///jobs.db --to postgresql://shop@localhost/shop --dry-run
      rota move --from sqlite:///jobs.db --to postgresql://shop@localhost/shop
      rota move --from sqlite:///jobs.db --reopen
    """
    if reopen:
        if target is not None or dry_run:
            raise click.UsageError("--reopen opens the store of --from again, and takes neither --to nor --dry-run")
        _reopen(source, yes, as_json)
        return
    if target is None:
        raise click.UsageError("say where the jobs go with --to, for example --to postgresql://shop@localhost/shop")
    if dry_run:
        _tell_only(moving.look(source, target), as_json)
        return
    with _progress() as tell:
        moved = moving.move(source, target, tell)
    if as_json:
        write_json(_record(moved))
    else:
        _report(moved)
    if moved.differences:
        ctx.exit(1)


def _report(moved: Moved) -> None:
    if moved.differences:
        for each in moved.differences:
            say(each)
        say(
            f"{moved.target} differs from {moved.source}, so neither takes jobs: `rota move --from {moved.source} --reopen` "
            "opens the old store again, and what is in the new one is to be thrown away",
            err=True,
        )
    elif not moved.digest:
        say(f"nothing is left to do: the jobs of {moved.source} were moved to {moved.target} before")
    else:
        numbers = by_state(moved.states)
        say(f"moved {many(moved.loaded)} from {moved.source} to {moved.target}")
        say(f"both have the same {many(moved.total)}" + (f": {numbers}" if numbers else ""))
        say(f"the digest of all, with {many(moved.attempts, 'attempt')} that did not succeed, is {moved.digest}")
        say(f"use {moved.target} from now on; the old store keeps what it has, and takes no jobs")


def _record(moved: Moved) -> Record:
    """`digest` is null where the move had been done before."""
    return {
        "from": moved.source,
        "to": moved.target,
        "jobs": _numbers(moved.states),
        "total": moved.total,
        "attempts": moved.attempts,
        "written": moved.loaded,
        "digest": moved.digest or None,
        "differences": moved.differences,
    }


def _tell_only(states: dict[State, int], as_json: bool) -> None:
    total = sum(states.values())
    if as_json:
        write_json({"dry_run": True, "jobs": _numbers(states), "total": total})
    else:
        say(f"would move {many(total)}" + (f" ({by_state(states)})" if total else ""))


def _numbers(states: dict[State, int]) -> Record:
    return {state.value: number for state, number in states.items()}


def _reopen(source: str, yes: bool, as_json: bool) -> None:
    seal = moving.left(source)
    if seal.done and not yes:
        question = f"All jobs of {seal.source} are in {seal.target}, where they may have run. Have them run here as well?"
        if not click.confirm(visible(question)):
            say("nothing was changed")
            raise click.exceptions.Exit(1)
    moving.reopen(source)
    if as_json:
        write_json(_seal_record(seal))
        return
    say(f"{seal.source} takes jobs again")
    say(f"what was moved to {seal.target} is still there: {'it may run there too' if seal.done else 'throw it away'}")


def _seal_record(seal: Seal) -> Record:
    return {"reopened": seal.source, "to": seal.target, "since": moment(seal.at), "done": seal.done}


@contextmanager
def _progress() -> Iterator[Callable[[Stage], object]]:
    """How far it is, on the standard error stream: bars on a terminal, else a line now and then."""
    if sys.stderr is None:
        yield moving.untold
    elif sys.stderr.isatty():
        with _bars() as tell:
            yield tell
    else:
        yield _Lines()


@contextmanager
def _bars() -> Iterator[Callable[[Stage], object]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {checking: bars.add_task(_doing(checking), total=None) for checking in (False, True)}
        yield lambda stage: bars.update(tasks[stage.checking], completed=stage.jobs, total=stage.total)


class _Lines:
    """A line at each tenth of the way."""

    def __init__(self) -> None:
        self._told = {False: 0, True: 0}

    def __call__(self, stage: Stage) -> None:
        part = stage.jobs * _LINES // max(stage.total, 1)
        if part > self._told[stage.checking]:
            self._told[stage.checking] = part
            say(f"{_doing(stage.checking)}: {stage.jobs} of {many(stage.total)}", err=True)


def _doing(checking: bool) -> str:
    return "checked" if checking else "moved"
