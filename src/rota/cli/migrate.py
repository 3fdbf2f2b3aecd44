"""`rota migrate`: brings the store's tables to this version, tells what that would do, or prints the SQL that does it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rota.cli.place import reach, reaches_app
from rota.cli.records import migrations_record, write_json
from rota.cli.saying import say
from rota.cli.words import many
from rota.model import Migration


@click.command(short_help="Make or renew the store's tables.")
@click.option("--plan", is_flag=True, help="Tell what would run and what that means for those at work; nothing is changed.")
@click.option("--check", is_flag=True, help="The same, with exit status 1 where something would run.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option("--sql", is_flag=True, help="Print the SQL of all tables, each migration by its name; the store is not touched.")
@reaches_app
@click.pass_context
def migrate(ctx: click.Context, plan: bool, check: bool, as_json: bool, sql: bool) -> None:
    """Make the store's tables where they are missing, and bring older ones to this version.

    Workers and apps do the same when they first use the store; run this in a deploy to have it done before. It is safe to
    run at any time, by several at once. A plan says of each migration whether workers of an older version may stay up.

    \b
    Examples:
      rota migrate --url postgresql://localhost/shop
      rota migrate --url postgresql://localhost/shop --plan
      rota migrate --url postgresql://localhost/shop --sql > rota.sql
    """
    app = reach(ctx)
    if sql:
        for name, text in app.schema():
            say(f"-- {name}\n{text}\n")
        return
    if as_json and not (plan or check):
        raise click.UsageError("--json prints a plan: add --plan or --check")
    if plan or check:
        due = app.pending()
        if as_json:
            write_json(migrations_record(due))
        else:
            _show(due, new=not app.there())
        ctx.exit(1 if check and due else 0)
    for name in app.migrate():
        say(f"ran {name}")
    say(f"the tables of {app.store.url} are those of this version")


def _show(due: Sequence[Migration], new: bool) -> None:
    for migration in due:
        if new:
            say(migration.name)
            continue
        remark = f" ({migration.remark})" if migration.remark else ""
        say(f"{migration.name}: older workers {'may stay up' if migration.older else 'end by themselves'}{remark}")
        for lock in migration.locks:
            say(f"  {lock}")
    if not due:
        say("nothing is to be done: the tables are those of this version")
    elif new:
        say(f"{many(len(due), 'migration')} would make the tables")
    elif all(migration.older for migration in due):
        say(f"{many(len(due), 'migration')} would run, and workers of an older version may stay up")
    else:
        say(f"{many(len(due), 'migration')} would run: stop workers of an older version first, or they end by themselves")
