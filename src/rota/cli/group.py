"""The command `rota` and what every command shares: lazy loading, and errors as one line with an exit status.

Exit statuses: 0 fine, 1 a negative answer or a refusal, 2 wrong usage, 130 interrupted, 141 the reader of a pipe left.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from rota.cli.early import release
from rota.cli.place import reaches_app
from rota.codec.text import visible
from rota.errors import RotaError

_MODULES = {
    "worker": "rota.cli.worker:worker",
    "jobs": "rota.cli.jobs:jobs",
    "send": "rota.cli.send:send",
    "queues": "rota.cli.queues:queues",
    "workers": "rota.cli.workers:workers",
    "limits": "rota.cli.limits:limits",
    "top": "rota.cli.top:top",
    "stats": "rota.cli.stats:stats",
    "check": "rota.cli.check:check",
    "purge": "rota.cli.purge:purge",
    "migrate": "rota.cli.migrate:migrate",
    "move": "rota.cli.move:move",
    "demo": "rota.cli.demo:demo",
    "bench": "rota.cli.bench:bench",
}


class Refused(click.ClickException):
    """What Rota refused, as one line."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"rota: {visible(self.message)}", file=file, err=file is None)


class Commands(click.Group):
    """Commands that are imported when they are called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module, _, name = _MODULES[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            answer = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except RotaError as error:
            raise Refused(" ".join(str(error).split())) from error
        except BrokenPipeError:
            _hush()
            raise click.exceptions.Exit(141) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except click.Abort:
            click.echo("\nrota: no answer, so nothing was changed; pass --yes where nobody can be asked", err=True)
            raise click.exceptions.Exit(1) from None
        return answer


def _hush() -> None:
    """Let nothing more go to the pipe whose reader left: Python would complain of it at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except OSError:
        pass  # there is no such descriptor


def _version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        import platform

        from rota import __version__

        click.echo(f"rota {__version__} (Python {platform.python_version()})")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="See `rota COMMAND --help` for each command, with examples.",
)
@reaches_app
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit."
)
@click.pass_context
def rota(ctx: click.Context) -> None:
    """Run, look at and change background jobs.

    Most commands have to know where the jobs are: name your app with --app (or ROTA_APP), or, where its code is not needed,
    the store alone with --url (or ROTA_URL). These options may stand before or after the command.

    \b
    Examples:
      rota demo
      rota worker --app shop.tasks:app --concurrency 8
      rota jobs --app shop.tasks:app --status failed
      rota stats --url sqlite:///jobs.db
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand != "worker":  # which does it when it knows what it is
        release()
