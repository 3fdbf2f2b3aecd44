"""Moments as people write them on the command line."""

from __future__ import annotations

from datetime import datetime

import click


def moment(text: str) -> datetime:
    """The type of options that are moments: ISO 8601 with a time zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no moment: write 2030-01-31T09:00+01:00") from None
    if found.tzinfo is None:
        raise click.BadParameter(
            f"{text!r} does not say its time zone: end it with an offset such as +01:00, or with Z for UTC"
        )
    return found
