"""`rota limits`: what limits there are, who is in them, and what is set."""

from __future__ import annotations

import click

from rota.app import Rota
from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import room_record, write_json
from rota.cli.saying import say, styled
from rota.cli.tables import Cell, Column, name_column, screen_width, write_table
from rota.cli.words import ago
from rota.clock import Micros
from rota.rules.rooms import Room

COLUMNS = (
    name_column("limit"),
    name_column("key"),
    Column("size", right=True),
    Column("set", drop=2),
    Column("running", right=True),
    Column("held", right=True),
    Column("room"),
    Column("tasks", flexible=True, drop=1),
)


@click.group(
    invoke_without_command=True, short_help="List limits and who is in them; set their sizes.", subcommand_metavar="[COMMAND]"
)
@click.option("--limit", "most", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many rooms.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def limits(ctx: click.Context, most: int, as_json: bool) -> None:
    """List the limits: their sizes, how many jobs run under each, how many it holds, and whether it is full.

    A limit with keys has a line for each key that a job was under lately. What the code of the tasks declares is known with
    --app; with --url only what was set and who is in it.

    \b
    Examples:
      rota limits --app shop.tasks:app
      rota limits --url sqlite:///jobs.db --json | jq '.limits[] | select(.held > 0)'
      rota limits set partner 5/s
      rota limits clear partner
    """
    if ctx.invoked_subcommand is not None:
        return
    app = reach_existing(ctx)
    rooms = app.limits()
    if as_json:
        write_json({"limits": [room_record(room) for room in rooms[:most]], "more": max(0, len(rooms) - most)})
        return
    if not rooms:
        say("no limits")
        return
    now = now_of(app)
    write_table(COLUMNS, [room_cells(room, now) for room in rooms[:most]])
    if len(rooms) > most and screen_width() is not None:
        say(styled(f"{len(rooms) - most} more: raise --limit", dim=True))


@limits.command("set", short_help="Set the size of a limit until it is cleared.")
@click.argument("name")
@click.argument("size")
@reaches_app
@click.pass_context
def set_(ctx: click.Context, name: str, size: str) -> None:
    """Have SIZE outweigh what the code says of the limit NAME: at once, on all workers, over restarts and deploys.

    SIZE is how many at once, such as 5, or a rate, such as 10/m, as the limit itself is. Jobs that the limit holds are looked
    at again at once.

    \b
    Examples:
      rota limits set "concurrency of shop.tasks.build" 5
      rota limits set partner 1/30s --app shop.tasks:app
    """
    app = reach_existing(ctx)
    app.set_limit(name, size)
    say(f"{name} is {_said(app, name, 'set')} until it is cleared{_contrast(app, name)}")


@limits.command("clear", short_help="Let what the code says of a limit count again.")
@click.argument("name")
@reaches_app
@click.pass_context
def clear(ctx: click.Context, name: str) -> None:
    """Let what the code says of the limit NAME count again. To clear what was not set is no error.

    \b
    Examples:
      rota limits clear partner
    """
    app = reach_existing(ctx)
    was = _said(app, name, "set")
    app.set_limit(name, None)
    now = _said(app, name, "declared")
    counts = f": its code says {now}" if now else ""
    say(f"{name} was {was} and is cleared{counts}" if was else f"nothing was set for {name}{counts}")


def room_cells(room: Room, now: Micros) -> dict[str, Cell | str]:
    """A limit, or one key of it, in the columns of a table."""
    changed = "" if room.set is None else room.set if room.set == room.size else f"{room.set}, which is of another kind"
    return {
        "limit": Cell(room.name, bold=True),
        "key": room.key or "-",
        "size": room.size or "?",
        "set": changed or "-",
        "running": str(room.running),
        "held": Cell(str(room.held), "magenta") if room.held else "-",
        "room": _state(room, now),
        "tasks": ", ".join(room.tasks) or "-",
    }


def _state(room: Room, now: Micros) -> Cell | str:
    if not room.full:
        return "yes" if room.size is not None else "?"
    if room.closed_until is not None:
        return Cell(f"closed for {ago(now, room.closed_until)}", "red")
    if room.opens_at is not None:
        return Cell(f"in {ago(now, room.opens_at)}", "yellow")
    return Cell("full", "yellow")


def _said(app: Rota, name: str, which: str) -> str | None:
    said: str | None = next((getattr(room, which) for room in app.limits() if room.name == name), None)
    return said


def _contrast(app: Rota, name: str) -> str:
    declared = _said(app, name, "declared")
    return f"; its code says {declared}" if declared else "; what its code says is not known here"
