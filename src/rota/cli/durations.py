"""Spans of time as people write and read them: `90`, `90s`, `5m`, `1h30m`, `2d`."""

from __future__ import annotations

import re

import click

UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[wdhms])")


def duration(text: str) -> float:
    """The type of options that are spans, in seconds."""
    try:
        return seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def seconds(text: str) -> float:
    """How many seconds a span is. A plain number is seconds. Raises `ValueError` that says how to write one.

    >>> seconds("1h30m"), seconds("90"), seconds("250ms")
    (5400.0, 90.0, 0.25)
    """
    plain = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        return float(plain)
    if not re.fullmatch(rf"({_PART.pattern}\s*)+", plain):
        raise ValueError(f"{text!r} is no span of time: write 90, 90s, 5m, 1h30m or 2d")
    return sum(float(number) * UNITS[unit] for number, unit in _PART.findall(plain))


def brief(span: float) -> str:
    """A span in at most two units, for tables.

    >>> brief(0.0123), brief(4.26), brief(75), brief(5400), brief(200_000)
    ('12ms', '4.3s', '1m15s', '1h30m', '2d7h')
    """
    if span < 0.9995:
        return f"{span * 1000:.0f}ms"
    if span < 9.95:
        return f"{span:.1f}s"
    left = round(span)
    for large, small in (("d", "h"), ("h", "m"), ("m", "s")):
        if left >= UNITS[large]:
            whole, rest = divmod(left, int(UNITS[large]))
            part = rest // int(UNITS[small])
            return f"{whole}{large}{part}{small}" if part else f"{whole}{large}"
    return f"{left}s"
