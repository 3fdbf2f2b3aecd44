"""`rota migrate`: brings the store's tables to this version, tells what that would do, or prints the SQL that does it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from rota.app import Rota
from rota.cli.place import has_tables, reach, reaches_app
from rota.cli.records import migrations_record, write_json
from rota.cli.saying import say
from rota.cli.words import many
from rota.errors import RotaError
from rota.model import Migration
from rota.stores import open_store

_UNKNOWN = 2
"""The exit status of a `--check` that cannot tell, for 1 says that something is to be done."""


class CannotTell(click.ClickException):
    """What kept a check from telling."""

    exit_code = _UNKNOWN

    def show(self, file: object = None) -> None:
        click.echo(f"rota: whether something is to be done cannot be told: {self.message}", err=True)


@click.command(short_help="Make or renew the store's tables.")
@click.option("--plan", is_flag=True, help="Tell what would run and what that means for those at work; nothing is changed.")
@click.option(
    "--check",
    is_flag=True,
    help="The same, with exit status 0 where nothing would run, 1 where something would, and 2 where that cannot be told.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option(
    "--sql",
    is_flag=True,
    help="Print the SQL that makes all tables, in one transaction; the store is not touched.  With --plan: only what is due.",
)
@reaches_app
@click.pass_context
def migrate(ctx: click.Context, plan: bool, check: bool, as_json: bool, sql: bool) -> None:
    """Make the store's tables where they are missing, and bring older ones to this version; in Redis, the layout of keys.

    Workers and apps do the same when they first use the store; run this in a deploy to have it done before. It is safe to
    run at any time, by several at once. A plan says of each migration whether workers of an older version may stay up.

    \b
    Examples:
      rota migrate --url postgresql://localhost/shop
      rota migrate --url postgresql://localhost/shop --plan
      rota migrate --url postgresql://localhost/shop --sql > rota.sql
    """
    if as_json and not (plan or check):
        raise click.UsageError("--json prints a plan: add --plan or --check")
    if sql and (check or as_json):
        raise click.UsageError("--sql prints SQL alone: leave out --check and --json")
    if check:
        with _telling():
            due = _plan(reach(ctx), as_json)
        ctx.exit(1 if due else 0)
    app = reach(ctx)
    if sql:
        if not has_tables(app.url):
            raise click.UsageError(f"{open_store(app.url).url} keeps no tables, so there is no SQL to print: leave out --sql")
        _print_sql(_due(app) if plan else app.schema())
    elif plan:
        _plan(app, as_json)
    else:
        for name in app.migrate():
            say(f"ran {name}")
        say(_ready(app))


@contextmanager
def _telling() -> Iterator[None]:
    """Whatever goes wrong has the exit status of a check that cannot tell."""
    try:
        yield
    except RotaError as error:
        raise CannotTell(" ".join(str(error).split())) from error
    except click.ClickException as error:  # no such app, or one whose code is broken
        error.show()
        raise click.exceptions.Exit(_UNKNOWN) from error
    except Exception as error:
        traceback.print_exc()
        raise CannotTell(f"{type(error).__name__}, see above") from error


def _plan(app: Rota, as_json: bool) -> Sequence[Migration]:
    due, new = app.pending(), not app.there()
    if as_json:
        write_json(migrations_record(due, new))
    else:
        _show(app, due, new)
    return due


def _show(app: Rota, due: Sequence[Migration], new: bool) -> None:
    for migration in due:
        if new:
            say(migration.name)
            continue
        remark = f" ({migration.remark})" if migration.remark else ""
        say(f"{migration.name}: older workers {'may stay up' if migration.older else 'end by themselves'}{remark}")
        for lock in migration.locks:
            say(f"  {lock}")
    if not due:
        say(f"nothing is to be done: {_ready(app)}")
    elif new:
        lacking, made = ("are no tables", "them") if has_tables(app.url) else ("is no store", "it")
        say(f"there {lacking} yet; `rota migrate` runs {many(len(due), 'migration')} and makes {made}")
    elif all(migration.older for migration in due):
        say(f"`rota migrate` runs {many(len(due), 'migration')}, and workers of an older version may stay up")
    else:
        say(
            f"`rota migrate` runs {many(len(due), 'migration')}: stop workers of an older version first, or they end by "
            "themselves"
        )


def _ready(app: Rota) -> str:
    """What can be said of tables, or of a layout of keys, for which nothing is to be done."""
    store = app.store
    facts = store.vitals().facts
    kind, are = ("layout", "is that") if "layout" in facts else ("tables", "are those")
    found = facts.get(kind)
    newest = found if found is None else max(int(name.split("_")[0]) for name, _ in app.schema())
    if found == newest:
        return f"the {kind} of {store.url} {are} of this version"
    return (
        f"the {kind} of {store.url} {are} of a newer Rota (version {found}, and this one makes version {newest}), and may "
        "be used as they are"
    )


def _due(app: Rota) -> Sequence[tuple[str, str]]:
    """The steps that would run."""
    due, there = {migration.name for migration in app.pending()}, app.there()
    return [(name, text) for name, text in app.schema() if name in due or (name.startswith("0000_") and not there)]


def _print_sql(steps: Sequence[tuple[str, str]]) -> None:
    """Each step by its name, all in one transaction: when one fails, nothing has changed."""
    if not steps:
        say("-- nothing is to be done")
        return
    say("begin;\n")
    for name, text in steps:
        say(f"-- {name}\n{text}\n")
    say("commit;")
