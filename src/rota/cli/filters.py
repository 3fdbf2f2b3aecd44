"""The options that say which jobs, for all commands that take several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rota.app import Rota
from rota.errors import ConfigError, JobNotFound
from rota.model import State

F = TypeVar("F", bound=Callable[..., Any])
_LOOKED_AT = 2_000
"""Among so many of the newest jobs the end of an id is looked for."""
_WHOLE = 36
"""How long a whole id is."""


def filters(command: F) -> F:
    """Add `--status`, `--queue`, `--task` and `--key`."""
    return filters_with("--queue")(command)


def filters_with(queue: str) -> Callable[[F], F]:
    """The same, where the option for the queue is called otherwise."""

    def add(command: F) -> F:
        for option in reversed(
            [
                click.option(
                    "--status",
                    type=click.Choice([state.value for state in State], case_sensitive=False),
                    multiple=True,
                    help="Jobs in this state; may be given several times.",
                ),
                click.option(queue, "queue", help="Jobs on this queue."),
                click.option("--task", help="Jobs of this task, by its full name."),
                click.option("--key", help="Jobs with this key."),
            ]
        ):
            command = option(command)
        return command

    return add


def given(ctx: click.Context) -> dict[str, Any]:
    """The filters of this command, or else those that stood before it, as in `rota jobs --queue mail retry`."""
    own = _filters_of(ctx)
    above = {} if ctx.parent is None else _filters_of(ctx.parent)
    return {"status": (), "queue": None, "task": None, "key": None} | above | own


def _filters_of(ctx: click.Context) -> dict[str, Any]:
    return {name: ctx.params[name] for name in ("status", "queue", "task", "key") if ctx.params.get(name)}


def whole_id(app: Rota, id: str) -> str:
    """The id that was meant: a whole one as it is, the end of one (as log lines have it) by looking among the newest jobs."""
    wanted = id.strip().lower()
    if len(wanted) >= _WHOLE:
        return wanted
    if len(wanted) < 4:
        raise ConfigError(f"{id!r} is too short for the end of a job's id: give at least four characters of it")
    found = [job.id for job in app.jobs(limit=_LOOKED_AT) if job.id.endswith(wanted)]
    if not found:
        raise JobNotFound(f"no id among the newest {_LOOKED_AT} jobs ends in {id!r}: give the whole id")
    if len(found) > 1:
        raise ConfigError(f"{len(found)} jobs have an id that ends in {id!r}: {', '.join(found[:5])}")
    return found[0]
