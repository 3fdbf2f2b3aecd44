"""`rota queues`: what queues there are, and who paused them; pausing and resuming."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence
from datetime import datetime

import click

from rota.app import Rota
from rota.cli.durations import duration
from rota.cli.moments import moment
from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import queue_record, write_json
from rota.cli.saying import say
from rota.cli.tables import Cell, Column, name_column, write_table
from rota.cli.words import ago, number_cells
from rota.clock import Micros, at
from rota.model import UNFINISHED, State
from rota.queues import Queue


@click.group(invoke_without_command=True, short_help="List queues; pause and resume them.", subcommand_metavar="[COMMAND]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def queues(ctx: click.Context, as_json: bool) -> None:
    """List the queues: how many unfinished jobs each has, how long the first of them has waited, and whether it is paused.

    These are the queues that have unfinished jobs, are paused, or are named by a worker or by the app.

    \b
    Examples:
      rota queues --app shop.tasks:app
      rota queues --json | jq -r '.queues[] | select(.paused).name'
      rota queues pause mail --for 10m
      rota queues resume mail
    """
    if ctx.invoked_subcommand is not None:
        return
    app = reach_existing(ctx)
    found = app.queues()
    if as_json:
        write_json({"queues": [queue_record(queue) for queue in found]})
    elif not found:
        say("no queues")
    else:
        now = now_of(app)
        write_table(queue_columns(found), [queue_cells(queue, now) for queue in found])


@queues.command("pause", short_help="Have workers leave a queue alone.")
@click.argument("name")
@click.option("--for", "span", type=duration, help="For so long, such as 10m; without it and --until, until it is resumed.")
@click.option("--until", type=moment, metavar="MOMENT", help="Until then, such as 2030-01-31T09:00+01:00.")
@click.option("--by", help="Who does it, for those who look; by default you and this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def pause(ctx: click.Context, name: str, span: float | None, until: datetime | None, by: str | None, as_json: bool) -> None:
    """Have all workers leave the jobs of the queue NAME alone, over restarts and deploys, until it is resumed.

    Running jobs go on, and jobs may be enqueued. Workers hear of it within about a second. To pause a queue that is paused
    sets its end anew.

    \b
    Examples:
      rota queues pause mail
      rota queues pause mail --for 10m
      rota queues pause mail --until 2030-01-31T09:00+01:00
    """
    if span is not None and until is not None:
        raise click.UsageError("--for and --until are both given: pass one of them")
    app = reach_existing(ctx)
    known = [queue.name for queue in app.queues()]
    app.pause(name, until if until is not None else span, _me() if by is None else by)
    paused = _found(app, name)
    if name not in known:
        others = ", ".join(known) or "none"
        say(
            f"rota: no unfinished job is on queue {name!r}, and neither a worker nor this app names it, but paused it is; "
            f"the queues that are known are: {others}",
            err=True,
        )
    if as_json:
        write_json(queue_record(paused))
        return
    say(f"{name} {_how_long(paused)}; {_waiting(paused)}")


@queues.command("resume", short_help="Let workers take up a queue again.")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def resume(ctx: click.Context, name: str, as_json: bool) -> None:
    """End the pause of the queue NAME. Sleeping workers wake at once. To resume what is not paused is no error.

    \b
    Examples:
      rota queues resume mail
    """
    app = reach_existing(ctx)
    was = app.resume(name)
    queue = _found(app, name)
    if as_json:
        write_json(queue_record(queue))
    else:
        say(f"{name} goes on; {_waiting(queue)}" if was else f"{name} was not paused")


def queue_columns(queues: Sequence[Queue], *more: Column) -> list[Column]:
    """The columns of a table of these queues, and perhaps more before the pauses."""
    held = any(queue.states[State.HELD] for queue in queues)
    return [
        name_column("queue"),
        Column(State.SCHEDULED, right=True, drop=2),
        Column(State.QUEUED, right=True),
        *([Column(State.HELD, right=True)] if held else []),
        Column(State.RUNNING, right=True),
        Column("oldest", right=True),
        *more,
        Column("paused", flexible=True, drop=1),
    ]


def queue_cells(queue: Queue, now: Micros) -> dict[str, Cell | str]:
    """A queue in these columns."""
    return {
        "queue": Cell(queue.name, "yellow" if queue.paused else None, bold=True),
        **number_cells(queue.states),
        "oldest": "-" if queue.oldest is None else ago(queue.oldest, now),
        "paused": _paused(queue, now),
    }


def _paused(queue: Queue, now: Micros) -> Cell | str:
    """How long a queue has been paused, for how much longer, and by whom."""
    if queue.pause is None:
        return "-"
    by = f" by {queue.pause.by}" if queue.pause.by else ""
    left = "" if queue.pause.until is None else f", {ago(now, queue.pause.until)} left"
    return Cell(f"for {ago(queue.pause.at, now)}{left}{by}", "yellow")


def _found(app: Rota, name: str) -> Queue:
    there = next((queue for queue in app.queues() if queue.name == name), None)
    return Queue(name, dict.fromkeys(UNFINISHED, 0)) if there is None else there


def _how_long(queue: Queue) -> str:
    if queue.pause is None:  # it was shorter than this command took, or someone was quick
        return "was paused, and goes on already"
    if queue.pause.until is None:
        return "is paused until it is resumed"
    return f"is paused until {at(queue.pause.until).isoformat(sep=' ', timespec='seconds')}"


def _waiting(queue: Queue) -> str:
    if not queue.due:
        return "no due job waits there"
    return "1 due job waits there" if queue.due == 1 else f"{queue.due} due jobs wait there"


def _me() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # nobody the system knows by a name
        user = "someone"
    return f"{user} on {socket.gethostname()}"
