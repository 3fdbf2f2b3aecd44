"""Amounts of memory as people write them: `512MB`, `1.5G`, `256MiB`."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "k": 1_000, "m": 1_000**2, "g": 1_000**3, "ki": 1_024, "mi": 1_024**2, "gi": 1_024**3}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b?", re.IGNORECASE)


def size(text: str) -> int:
    """The type of options that are amounts of memory, in bytes.

    >>> size("512MB"), size("1.5 g"), size("256MiB")
    (512000000, 1500000000, 268435456)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or not (number := int(float(found[1]) * _UNITS[(found[2] or "").lower()])):
        raise click.BadParameter(f"{text!r} is no amount of memory: write 512MB, 1.5GB or 256MiB")
    return number
