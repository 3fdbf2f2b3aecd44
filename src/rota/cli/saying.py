"""Writing to the standard streams."""

from __future__ import annotations

import sys

import click


def say(text: str = "", err: bool = False) -> None:
    """Write a line. Colour is left out where nothing shows it; what the stream's encoding lacks is escaped (see `main`)."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None:  # it was closed before the start
        # Named to click, since it would write UTF-8 to a stream that says it is ASCII.
        click.echo(text, file=stream)
