"""`rota top`: queues, workers, limits and failures, as they are at every moment."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from rota.app import Rota
from rota.cli.durations import duration
from rota.cli.glance import Glance, glance_record, look
from rota.cli.keys import keys
from rota.cli.overview import overview
from rota.cli.place import reach_existing, reaches_app
from rota.cli.records import write_json
from rota.cli.saying import say, styled
from rota.cli.tables import screen_width
from rota.codec.text import clean
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LEAST = 0.2
"""Seconds between two looks, at the least."""
_SHARE = 10
"""Of its time it spends at most one part of so many on looking."""
_WINDOW = (5.0, 60.0)
"""Over how many seconds rates are taken: as long as between two looks, but within these bounds."""


@click.command(short_help="Watch queues, workers, limits and failures live.")
@click.option(
    "--interval", type=duration, default="2s", show_default=True, help="How long from one look to the next, at the least."
)
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--json", "as_json", is_flag=True, help="Print one look as JSON and end.")
@reaches_app
@click.pass_context
def top(ctx: click.Context, interval: float, once: bool, as_json: bool) -> None:
    """Watch the deployment live: queues by state with what comes in and ends a second, workers, limits that hold jobs, and the
    last failures. Press q to quit.

    A look reads every unfinished job and what came and went in the last seconds, never the finished ones. It takes no more than
    a tenth of its time: where a look is slow, the next one is later. Written to a file or a pipe, each look is plain text.

    \b
    Examples:
      rota top --app shop.tasks:app
      rota top --url sqlite:///jobs.db --interval 500ms
      rota top --once
      rota top --json | jq '.queues[] | {name, rates}'
    """
    if interval < _LEAST:
        raise click.BadParameter(
            f"{interval:g} s would keep the store busy: take {_LEAST:g} s or more", param_hint="--interval"
        )
    app = reach_existing(ctx)
    window = min(max(interval, _WINDOW[0]), _WINDOW[1])
    if as_json:
        write_json(glance_record(look(app, window)))
    elif once:
        _print(look(app, window), screen_width())
    elif sys.stdout is not None and sys.stdout.isatty():
        _live(app, window, interval)
    else:
        _endless(app, window, interval)


def frame(seen: Glance, width: int, height: int, trouble: str = "") -> Text:
    """One look as it is drawn on a terminal of this size."""
    from rich.text import Text

    lines = overview(seen, width, height - 1)
    foot = styled(trouble, fg="red") if trouble else styled("q quits", dim=True)
    return Text.from_ansi("\n".join([*lines[: height - 1], foot]), no_wrap=True, overflow="ellipsis")


def _live(app: Rota, window: float, interval: float) -> None:
    """Draw each look over the last one until someone presses q."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, markup=False, emoji=False)
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False) as live:
        seen: Glance | None = None
        while True:
            trouble = ""
            try:
                seen = look(app, window)
            except StoreUnavailable as error:
                trouble = f"the store is away, and this is what was last seen: {clean(str(error), 300)}"
            live.update(_drawn(seen, console, trouble), refresh=True)
            wait = interval if seen is None else max(interval, (_SHARE - 1) * seen.took)
            if pressed(wait, "q"):
                return


def _drawn(seen: Glance | None, console: Console, trouble: str) -> Text:
    from rich.text import Text

    return Text(trouble, style="red") if seen is None else frame(seen, console.width, console.height, trouble)


def _endless(app: Rota, window: float, interval: float) -> None:
    """Write one look after the other."""
    while True:
        wait = interval
        try:
            seen = look(app, window)
        except StoreUnavailable as error:
            say(f"rota: the store is away: {clean(str(error), 300)}", err=True)
        else:
            _print(seen, None)
            say()
            sys.stdout.flush()
            wait = max(interval, (_SHARE - 1) * seen.took)
        time.sleep(wait)


def _print(seen: Glance, width: int | None) -> None:
    for line in overview(seen, width, None):
        say(line)
