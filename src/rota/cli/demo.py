"""`rota demo`: a shop's afternoon, live."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from rota.cli.durations import duration


@click.command(short_help="Watch a shop's jobs run, and its sums add up.")
@click.option("--url", metavar="URL", help="The store to use; a SQLite file that is removed at the end by default.")
@click.option(
    "--seconds",
    type=duration,
    default="9s",
    show_default=True,
    help="How long the shop is open; what is left then ends soon.",
)
@click.pass_context
def demo(ctx: click.Context, url: str | None, seconds: float) -> None:
    """Run a shop's jobs with three worker processes, one of which is killed, and check that everything adds up.

    Exit status 1 when it does not.

    \b
    Examples:
      rota demo
      rota demo --url sqlite:///demo.db
      rota demo --url postgresql://localhost/shop --seconds 5
    """
    from rota.demo.play import Show, play

    if url is not None and url.startswith("memory:"):
        raise click.UsageError("--url memory://: the workers are processes of their own, so they could not see its jobs")
    show: Show
    if sys.stdout.isatty():
        from rota.demo.screen import Screen

        show = Screen()
    else:
        from rota.demo.lines import Lines

        show = Lines()
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _interrupted)  # so that the workers end with the demo
    ctx.exit(0 if play(url, seconds, show) else 1)


def _interrupted(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt
