"""`rota purge`: deletes finished jobs that are old enough."""

from __future__ import annotations

import click

from rota.cli.durations import duration
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import write_json
from rota.cli.saying import say
from rota.cli.words import by_state, many
from rota.codec.text import visible
from rota.model import State


@click.command(short_help="Delete finished jobs that are old enough.")
@click.option("--succeeded", type=duration, help="Delete jobs that succeeded longer ago than this, such as 1d.")
@click.option("--failed", type=duration, help="Delete jobs that failed longer ago than this.")
@click.option("--cancelled", type=duration, help="Delete jobs that were cancelled longer ago than this.")
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def purge(
    ctx: click.Context,
    succeeded: float | None,
    failed: float | None,
    cancelled: float | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete finished jobs whose time in the history ended. Workers do the same by themselves, bit by bit.

    With an age, only the states that have one are touched. Without any, the app's keep_ settings count.

    \b
    Examples:
      rota purge --app shop.tasks:app --dry-run
      rota purge --url sqlite:///jobs.db --succeeded 1d --failed 30d --cancelled 7d --yes
    """
    app = reach_existing(ctx)
    ages = {"succeeded": succeeded, "failed": failed, "cancelled": cancelled}
    keep = {state: age for state, age in ages.items() if age is not None}
    numbers = app.purgeable(**keep)
    total = sum(numbers.values())
    if total and not dry_run:
        if not yes and not click.confirm(visible(f"Delete {many(total)} ({by_state(numbers)}) from {app.store.url}?")):
            say("nothing was deleted")
            ctx.exit(1)
        numbers = app.purge(**keep)
    _tell(numbers, dry_run, as_json)


def _tell(numbers: dict[State, int], dry_run: bool, as_json: bool) -> None:
    total = sum(numbers.values())
    if as_json:
        write_json({"dry_run": dry_run, "jobs": {state.value: number for state, number in numbers.items()}, "total": total})
    elif not total:
        say("no finished job is old enough")
    else:
        say(f"{'would delete' if dry_run else 'deleted'} {many(total)} ({by_state(numbers)})")
