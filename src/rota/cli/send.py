"""`rota send`: enqueues a job by its task's name."""

from __future__ import annotations

import difflib
import json
from datetime import datetime
from typing import Any

import click

from rota.app import Rota
from rota.cli.durations import duration
from rota.cli.moments import moment
from rota.cli.place import reach, reaches_app
from rota.cli.records import job_record, write_json
from rota.cli.saying import say
from rota.codec import encode_untyped
from rota.handle import Job


@click.command(short_help="Enqueue a job by its task's name.")
@click.argument("name")
@click.argument("args", nargs=-1)
@click.option("--json-args", metavar="JSON", help="The arguments by position as one JSON list, in place of ARGS.")
@click.option("--kwargs", metavar="JSON", help="Arguments by name, as a JSON object.")
@click.option("--queue", help="The queue; the task's own by default.")
@click.option("--priority", type=int, help="Larger runs first; the task's own by default.")
@click.option("--delay", type=duration, help="How long until the job is due, such as 90s or 1h30m.")
@click.option("--run-at", type=moment, metavar="MOMENT", help="When the job is due, such as 2030-01-31T09:00+01:00.")
@click.option("--key", help="Add no job while an unfinished one of the task has this key.")
@click.option("--max-attempts", type=click.IntRange(min=1), help="How many attempts the job has; the task's own by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the job as JSON.")
@reaches_app
@click.pass_context
def send(
    ctx: click.Context,
    name: str,
    args: tuple[str, ...],
    json_args: str | None,
    kwargs: str | None,
    queue: str | None,
    priority: int | None,
    delay: float | None,
    run_at: datetime | None,
    key: str | None,
    max_attempts: int | None,
    as_json: bool,
) -> None:
    """Enqueue a job of the task NAME and print its id.

    Each of ARGS is taken as JSON where it is JSON, else as text: 42 is a number, Ada a text, '"42"' a text too. Arguments
    that begin with a dash go after a bare -- . With --app the arguments are checked against the task.

    \b
    Examples:
      rota send --app shop.tasks:app shop.tasks.send_receipt 42
      rota send --url sqlite:///jobs.db shop.tasks.greet Ada --delay 90s
      rota send shop.tasks.build --kwargs '{"tenant": 7}' --queue reports --key tenant:7
      rota send shop.tasks.move -- -5
    """
    if args and json_args is not None:
        raise click.UsageError("ARGS and --json-args are both given: pass one of them")
    positional = (
        [_json_or_text(arg) for arg in args] if json_args is None else _parsed("--json-args", json_args, list, "a list")
    )
    named = {} if kwargs is None else _parsed("--kwargs", kwargs, dict, "an object")
    options: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "delay": delay,
        "run_at": run_at,
        "key": key,
        "max_attempts": max_attempts,
    }
    app = reach(ctx)
    job = _enqueue(app, name, positional, named, options)
    if job.existed:
        say(f"rota: an unfinished job of {name} has the key {key!r}, so none was added", err=True)
    if as_json:
        write_json(job_record(job.row) | {"existed": job.existed})
    else:
        say(job.id)


def _enqueue(app: Rota, name: str, args: list[Any], kwargs: dict[str, Any], options: dict[str, Any]) -> Job[Any]:
    """Enqueue through the task where its code is here, so that its arguments are checked, else by its name."""
    task = app.tasks.get(name)
    if task is None:
        if app.store.declared(name) is None:
            _doubt(app, name)
        return app.named(name).using(**options).enqueue(*args, **kwargs)
    typed, by_name = task.signature.decode(encode_untyped(tuple(args), kwargs, app.max_payload))
    return task.using(**options).enqueue(*typed, **by_name)


def _doubt(app: Rota, name: str) -> None:
    """Say that nobody is known to have such a task. Perhaps its worker was not started yet, so it is no error."""
    close = difflib.get_close_matches(name, app.tasks, 1)
    meant = f"; did you mean {close[0]}?" if close else ""
    say(f"rota: no worker and no code here has declared a task {name!r}: its job waits until one does{meant}", err=True)


def _json_or_text(arg: str) -> Any:
    try:
        return json.loads(arg, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return arg


def _parsed(option: str, text: str, kind: type, called: str) -> Any:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{text!r} is no JSON ({error})", param_hint=option) from None
    if not isinstance(found, kind):
        raise click.BadParameter(f"{text!r} is not {called}", param_hint=option)
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
