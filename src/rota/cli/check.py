"""`rota check`: whether someone should look, for monitoring."""

from __future__ import annotations

import click

from rota.cli.durations import duration
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import problems_record, write_json
from rota.cli.saying import say
from rota.cli.words import many
from rota.codec.text import escape


@click.command(short_help="Exit with status 1 when something is wrong.")
@click.option("--max-wait", type=duration, help="Longer than this no due job may wait, for example 5m; without it, any time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def check(ctx: click.Context, max_wait: float | None, as_json: bool) -> None:
    """Look for what is wrong: leases that ran out, jobs that no worker serves or knows, jobs that wait for too long.

    Exit status 0 when all is well, 1 when there is a problem.

    \b
    Examples:
      rota check --app shop.tasks:app --max-wait 5m
      rota check --url sqlite:///jobs.db --json
    """
    problems = reach_existing(ctx).check(max_wait)
    if as_json:
        write_json(problems_record(problems))
    elif not problems:
        say(click.style("all is well", fg="green"))
    else:
        for each in problems:
            number = f" ({many(each.jobs)})" if each.jobs else ""
            say(f"{click.style(each.trouble, fg='red')}: {escape(each.text)}{number}")
    ctx.exit(1 if problems else 0)
