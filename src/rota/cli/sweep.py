"""Changing all jobs that a filter names: counted first, asked for, then done in steps that can be gone on with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from rota import operate
from rota.app import Rota
from rota.cli.place import now_of
from rota.cli.records import changed_record, write_json
from rota.cli.saying import say
from rota.cli.words import by_state, many
from rota.codec.text import visible
from rota.errors import RotaError
from rota.model import Changed, Edit, JobRow, Move, State
from rota.operate import STEP, Step, Where

DONE = {Move.RETRY: "retried", Move.CANCEL: "cancelled", Move.DELETE: "deleted", Move.EDIT: "edited"}
_TOLD = 10 * STEP
"""After so many jobs each it is said how far it is, where no bar can be shown."""


@dataclass(frozen=True)
class Wanted:
    """What is to happen to jobs."""

    move: Move
    edit: Edit | None = None
    """What a `Move.EDIT` changes."""

    def by_ids(self, app: Rota, ids: Sequence[str]) -> list[Changed]:
        return app.change(self.move, ids) if self.edit is None else operate.edit(app.store, self.edit, ids, app.now())

    def sweep(self, app: Rota, which: Where, tell: Callable[[Step], object], before: str | None, began: int | None) -> None:
        known = [] if which.queue is None else [which.queue]
        if self.edit is not None:
            operate.edit_all(app.store, self.edit, which, app.now(), tell, known, before, began)
        else:
            operate.change_all(app.store, self.move, which, app.settings.kept, app.now(), tell, known, before, began)


@dataclass(frozen=True)
class How:
    """How a sweep goes about it."""

    yes: bool
    dry_run: bool
    before: str | None
    as_json: bool


def sweep(app: Rota, wanted: Wanted, which: Where, how: How) -> None:
    """Change all that the filter names, save what comes in after this was called."""
    began = now_of(app)
    numbers = counted(app, which, how.before)
    total = sum(numbers.values())
    if how.dry_run:
        _tell_only(wanted.move, numbers, how.as_json)
        return
    if total and not how.yes:
        _confirm(f"{wanted.move.capitalize()} {many(total)} ({by_state(numbers)}) in {app.store.url}?")
    steps: list[Step] = []
    try:
        if total:
            with _progress(wanted.move, total) as show:

                def tell(step: Step) -> None:
                    steps.append(step)
                    show(step.seen)

                wanted.sweep(app, which, tell, how.before, began)
    except (KeyboardInterrupt, RotaError):
        if steps and how.as_json:
            _write(steps, steps[-1].last)
        elif steps:
            say(f"{_sum(wanted.move, steps, total)}; --before {steps[-1].last} goes on from there", err=True)
        raise
    if how.as_json:
        _write(steps, None)
    elif not total:
        say("no such jobs")
    else:
        _report(wanted.move, steps, total)


def counted(app: Rota, which: Where, before: str | None) -> dict[State, int]:
    """How many jobs the filter names, by state; with `before`, of those alone whose ids come before it.

    Raises `ConfigError` for a queue that does not exist.
    """
    app.jobs(status=which.states, queue=which.queue, task=which.task, key=which.key, limit=1)  # which knows the queue, or not
    numbers = dict.fromkeys(State, 0)
    if which.key is not None or before is not None:  # what the store has counted knows of neither
        for job in _each(app, which, before):
            numbers[job.state] += 1
        return numbers
    if which.task is None and not any(state.final for state in which.states):
        for each in app.store.unfinished():  # what is finished may be much more
            numbers[each.state] += each.jobs if each.state in which.states and which.queue in (None, each.queue) else 0
        return numbers
    for count in app.store.counts():
        fits = count.state in which.states and which.queue in (None, count.queue) and which.task in (None, count.task)
        numbers[count.state] += count.jobs if fits else 0
    return numbers


def _each(app: Rota, which: Where, before: str | None) -> Iterator[JobRow]:
    while found := app.jobs(status=which.states, queue=which.queue, task=which.task, key=which.key, limit=STEP, before=before):
        yield from (job.row for job in found)
        before = found[-1].id


def _tell_only(move: Move, numbers: dict[State, int], as_json: bool) -> None:
    total = sum(numbers.values())
    if as_json:
        write_json({"dry_run": True, "jobs": {state.value: each for state, each in numbers.items()}, "total": total})
    else:
        say(f"would {move} {many(total)} ({by_state(numbers)})" if total else "no such jobs")


def _confirm(question: str) -> None:
    if not click.confirm(visible(question)):
        say("nothing was changed")
        raise click.exceptions.Exit(1)


def _write(steps: Sequence[Step], following: str | None) -> None:
    write_json({"changed": [changed_record(each) for step in steps for each in step.changed], "next": following})


def _sum(move: Move, steps: Sequence[Step], total: int) -> str:
    return f"{DONE[move]} {sum(len(step.changed) for step in steps)} of {many(total)}"


def _report(move: Move, steps: Sequence[Step], total: int) -> None:
    seen = steps[-1].seen if steps else 0
    say(_sum(move, steps, seen))
    changed = [each for step in steps for each in step.changed]
    asked = sum(1 for each in changed if move is Move.CANCEL and each.after is State.RUNNING)
    if asked:
        say(f"  {many(asked)} of them running: their workers were asked to stop them")
    if len(changed) < seen:
        say(f"  {seen - len(changed)} stayed: they changed meanwhile, run, or another unfinished job has their key")
    if seen < total:
        say(f"  {total - seen} fewer than were counted: they changed, or came in, meanwhile")


@contextmanager
def _progress(move: Move, total: int) -> Iterator[Callable[[int], object]]:
    """How far it is, on the standard error stream where it takes a while: a bar on a terminal, else a line now and then."""
    if total <= STEP or sys.stderr is None:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        yield lambda seen: None if seen % _TOLD else say(f"{move}: {seen} of {total} looked at", err=True)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(str(move), total=total)
        yield lambda seen: bar.update(task, completed=seen)
