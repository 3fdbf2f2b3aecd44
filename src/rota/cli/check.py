"""`rota check`: whether someone should look, for monitoring."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli.durations import duration
from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import problems_record, queue_record, write_json
from rota.cli.saying import say, styled
from rota.cli.tables import paragraph
from rota.cli.words import ago, many
from rota.clock import Micros
from rota.queues import Queue


@click.command(short_help="Exit with status 1 when something is wrong.")
@click.option("--max-wait", type=duration, help="Longer than this no due job may wait, for example 5m; without it, any time.")
@click.option("--max-pause", type=duration, help="Longer than this no queue may be paused, such as 1d; without it, any time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def check(ctx: click.Context, max_wait: float | None, max_pause: float | None, as_json: bool) -> None:
    """Look for what is wrong: leases that ran out, jobs that no worker serves or knows, jobs that wait for too long.

    Exit status 0 when all is well, 1 when there is a problem. That a queue is paused is told, and is no problem before
    --max-pause; nor is it one that its jobs wait.

    \b
    Examples:
      rota check --app shop.tasks:app --max-wait 5m
      rota check --url sqlite:///jobs.db --json
    """
    app = reach_existing(ctx)
    problems = app.check(max_wait, max_pause)
    paused = [queue for queue in app.queues() if queue.paused]
    if as_json:
        write_json(problems_record(problems) | {"paused": [queue_record(queue) for queue in paused]})
    elif not problems:
        say(styled("all is well", fg="green"))
    else:
        for each in problems:
            number = f" ({many(each.jobs)})" if each.jobs else ""
            _tell(each.trouble, "red", f"{each.text}{number}")
    if not as_json:
        _tell_pauses(paused, now_of(app))
    ctx.exit(1 if problems else 0)


def _tell(kind: str, colour: str, text: str) -> None:
    """A line for each, which on a terminal is broken between words."""
    first, *rest = paragraph(f"{kind}: {text}")
    say(styled(kind, fg=colour), first.removeprefix(kind))
    for line in rest:
        say(line)


def _tell_pauses(paused: Sequence[Queue], now: Micros) -> None:
    for queue in paused:
        if queue.pause is not None:
            end = "" if queue.pause.until is None else f", for another {ago(now, queue.pause.until)}"
            by = f" by {queue.pause.by}" if queue.pause.by else ""
            said = f"queue {queue.name!r} has been paused{by} for {ago(queue.pause.at, now)}{end}"
            _tell("paused", "yellow", f"{said} ({many(queue.jobs)})")
