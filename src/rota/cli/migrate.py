"""`rota migrate`: brings the store's tables to this version, or prints the SQL that does."""

from __future__ import annotations

import click

from rota.cli.place import reach, reaches_app
from rota.cli.saying import say


@click.command(short_help="Make or renew the store's tables.")
@click.option("--sql", is_flag=True, help="Print the SQL of all tables, each migration by its name; the store is not touched.")
@reaches_app
@click.pass_context
def migrate(ctx: click.Context, sql: bool) -> None:
    """Make the store's tables where they are missing, and bring older ones to this version.

    Workers and apps do the same when they first use the store; run this in a deploy to have it done before. It is safe to
    run at any time, by several at once.

    \b
    Examples:
      rota migrate --url postgresql://localhost/shop
      rota migrate --url postgresql://localhost/shop --sql > rota.sql
    """
    app = reach(ctx)
    if sql:
        for name, text in app.schema():
            say(f"-- {name}\n{text}\n")
        return
    for name in app.migrate():
        say(f"ran {name}")
    say(f"the tables of {app.store.url} are those of this version")
