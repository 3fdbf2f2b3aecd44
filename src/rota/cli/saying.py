"""Writing to the standard streams: nothing that a name or an error holds gets at the terminal, save as what can be seen."""

from __future__ import annotations

import sys

import click

from rota.codec.text import visible


class Styled(str):
    """Text that is ready for a terminal: `visible`, and with the codes of its style."""

    __slots__ = ()


def styled(text: str, fg: str | None = None, bold: bool | None = None, dim: bool | None = None) -> Styled:
    return Styled(click.style(visible(text), fg=fg, bold=bold, dim=dim))


def say(*parts: str, err: bool = False) -> None:
    """Write a line of these parts. What is not `Styled` is made `visible`.

    Colour is left out where nothing shows it; what the stream's encoding lacks is escaped (see `main`).
    """
    stream = sys.stderr if err else sys.stdout
    if stream is not None:  # it was closed before the start
        text = "".join(part if isinstance(part, Styled) else visible(part) for part in parts)
        # Named to click, since it would write UTF-8 to a stream that says it is ASCII.
        click.echo(text, file=stream)
