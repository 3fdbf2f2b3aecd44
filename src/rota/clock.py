"""Moments and spans: integers in microseconds inside, `datetime`, `timedelta` and seconds at the public edge."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from rota.errors import ConfigError

Micros = int
"""Microseconds: since the epoch for a moment, or of length for a span."""

Clock = Callable[[], datetime]
"""Answers the present moment, with its zone. Passed to `Rota(clock=…)`, it replaces the store's clock."""

SECOND: Micros = 1_000_000
LONGEST: Micros = 100 * 365 * 86_400 * SECOND
"""No span is longer than this (a century): what is asked for beyond it is cut to it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def machine_now() -> Micros:
    """This machine's own clock. Only a store whose clock is this machine's may ask."""
    return time.time_ns() // 1000


def moment(when: datetime, name: str) -> Micros:
    """The microseconds since the epoch of an aware `datetime`.

    Raises `ConfigError` naming `name` when it has no zone: which moment it means would depend on the machine.
    """
    if not isinstance(when, datetime):
        raise ConfigError(f"{name}={when!r} is no moment: pass an aware datetime, for example datetime.now(timezone.utc)")
    if when.utcoffset() is None:
        raise ConfigError(
            f"{name}={when!r} has no time zone, so its moment is not known: "
            "pass an aware datetime, for example datetime.now(timezone.utc)"
        )
    try:
        return (when.astimezone(UTC) - _EPOCH) // _MICRO
    except OverflowError:
        raise ConfigError(f"{name}={when!r} lies outside of the years 1 to 9999 in UTC: pass a moment within them") from None


def at(micros: Micros) -> datetime:
    """The moment as a `datetime` in UTC.

    >>> at(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return _EPOCH + timedelta(microseconds=micros)


def span(length: float | timedelta, name: str) -> Micros:
    """The microseconds in a number of seconds or a `timedelta`, cut to a century.

    Raises `ConfigError` naming `name` when it is negative or not a number.

    >>> span(1.5, "delay")
    1500000
    """
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ConfigError(f"{name}={length!r} is no span of time: pass seconds or a timedelta")
    if not seconds >= 0:  # also true of NaN
        raise ConfigError(f"{name}={length!r} is negative or not a number: a span of time is zero or more seconds")
    if seconds >= LONGEST / SECOND:
        return LONGEST
    return round(seconds * SECOND)
