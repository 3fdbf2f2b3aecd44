"""Where the jobs are, as the command line says it: an app, or a store's URL alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import click
from msgspec import Struct

from rota.app import Rota
from rota.cli.finding import find_app
from rota.clock import Micros
from rota.errors import StoreError
from rota.stores import open_store

F = TypeVar("F", bound=Callable[..., Any])

_WITHOUT_TABLES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
"""The schemes of stores that keep jobs under keys."""


class Place(Struct):
    """What the options of the command and of `rota` itself said so far; the later ones count."""

    app: str | None = None
    app_dir: str | None = None
    url: str | None = None


def names_app(command: F) -> F:
    """Add the options that name an app. They are kept in the context, for `load`."""
    command = _option("--app-dir", "DIRECTORY", "Where to look for the app's module first; the current directory by default.")(
        command
    )
    return _option("--app", "MODULE:ATTR", "Your app, such as shop.tasks:app; a file or a factory will do.  [env: ROTA_APP]")(
        command
    )


def reaches_app(command: F) -> F:
    """Add the options that name an app or a store. They are kept in the context, for `load` and `reach`."""
    command = _option("--url", "URL", "The store alone, such as sqlite:///jobs.db, where no code is needed.  [env: ROTA_URL]")(
        command
    )
    return names_app(command)


def load(ctx: click.Context) -> Rota:
    """The app that was named, for a command that runs its code. Closed when the command ends."""
    return _closing(ctx, find_app(*named(ctx)))


def named(ctx: click.Context) -> tuple[str, Path]:
    """How the app was named, and the directory that is searched first. Nothing is imported."""
    place = _place(ctx)
    spec = place.app if place.app is not None else os.environ.get("ROTA_APP")
    if spec is None:
        raise click.UsageError("name your app with --app module:attribute, for example --app shop.tasks:app, or set ROTA_APP")
    return spec, _folder(place)


def reach(ctx: click.Context) -> Rota:
    """The app that was named, or one without tasks on the store that was. Closed when the command ends."""
    place = _place(ctx)
    if place.app is not None and place.url is not None:
        raise click.UsageError("--app and --url are both given: an app knows its store, so pass one of them")
    if place.url is None and (place.app is not None or os.environ.get("ROTA_APP")):
        return load(ctx)
    url = place.url if place.url is not None else os.environ.get("ROTA_URL")
    if not url:
        raise click.UsageError(
            "say where the jobs are: --app module:attribute (or ROTA_APP), or --url sqlite:///jobs.db (or ROTA_URL)"
        )
    return _closing(ctx, Rota(url))


def reach_existing(ctx: click.Context) -> Rota:
    """`reach`, for commands that look at or change what is there: what is not there is not made."""
    app = reach(ctx)
    if not app.there():
        raise StoreError(f"there {_lacking(app.url)}: nothing was enqueued there yet; `rota migrate` makes what is missing")
    return app


def _lacking(url: str) -> str:
    scheme, _, path = url.partition("://")
    file = Path(unquote(path[1:]))
    if scheme == "sqlite" and not file.exists():
        return f"is no SQLite file {file} (of {url}, seen from {Path.cwd()})"
    place = open_store(url).url
    return f"are no tables of Rota's in {place}" if has_tables(url) else f"is no store of Rota's in {place}"


def has_tables(url: str) -> bool:
    """Whether the store of this URL keeps jobs in tables, which SQL makes."""
    return url.strip().partition(":")[0].lower() not in _WITHOUT_TABLES


def now_of(app: Rota) -> Micros:
    """The moment by which the app's jobs are due: what its own clock tells, else the store's."""
    now = app.now()
    return app.store.vitals().now if now is None else now


def _option(name: str, metavar: str, help: str) -> Callable[[F], F]:
    def keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(ctx.ensure_object(Place), str(param.name), value)

    return click.option(name, metavar=metavar, help=help, expose_value=False, callback=keep)


def _place(ctx: click.Context) -> Place:
    return ctx.ensure_object(Place)


def _folder(place: Place) -> Path:
    folder = Path(place.app_dir or ".")
    if not folder.is_dir():
        raise click.UsageError(f"--app-dir {place.app_dir}: there is no such directory")
    return folder.absolute()


def _closing(ctx: click.Context, app: Rota) -> Rota:
    ctx.call_on_close(app.close)
    return app
