"""How much a limit lets through, and what users write for it: `2` for two at once, `"10/m"` for a start every six seconds.

A rate is a spacing, not a bucket: the one reading of "ten a minute" that is true of every minute, wherever it begins.
"""

from __future__ import annotations

import re
from typing import assert_never

from msgspec import Struct

from rota.clock import LONGEST, SECOND, Micros
from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.options import LARGEST

_MINUTE, _HOUR, _DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


class Concurrency(Struct, frozen=True):
    """At most `most` jobs run at once. Its text is what a user writes for it."""

    most: int

    def __str__(self) -> str:
        return f"{self.most}"


class Rate(Struct, frozen=True):
    """At most `starts` jobs start in any `period` (microseconds, whole seconds), evenly spaced. Both are above zero.

    >>> print(Rate(10, 60_000_000), Rate(10, 60_000_000).interval)
    10/m 6000000
    """

    starts: int
    period: Micros

    @property
    def interval(self) -> Micros:
        """The microseconds from one start to the next at the least, rounded up: never faster than asked."""
        return -(-self.period // self.starts)

    def __str__(self) -> str:
        unit, length = next((unit, length) for unit, length in _LONGEST_FIRST if self.period % length == 0)
        many = self.period // length
        return f"{self.starts}/{many if many > 1 else ''}{unit}"


Size = Concurrency | Rate
"""What a limit lets through."""


def read_size(text: str) -> Size:
    """The size that a text says, as it is given at run time: a number of jobs at once, or a rate. Raises `ConfigError`.

    It undoes `str`, so a size may be kept as its text.

    >>> read_size("5"), read_size("1/30s")
    (Concurrency(most=5), Rate(starts=1, period=30000000))
    """
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        return read_concurrency(int(text), f"size {brief(text)}")
    return read_rate(text, f"size {brief(text)}")


def read_concurrency(given: object, said: str | None = None) -> Concurrency:
    """So many at once, from a whole number above zero. Raises `ConfigError`; `said` is what it calls the option.

    >>> read_concurrency(0)
    Traceback (most recent call last):
    rota.errors.ConfigError: concurrency=0: from 1 to 2147483647 jobs may run at once; to run none, pause their queue
    """
    said = said or f"concurrency={brief(given)}"
    if isinstance(given, str) and _RATE.fullmatch(given):
        raise ConfigError(f"{said} is a rate, not how many run at once: pass rate={brief(given)}")
    if isinstance(given, bool) or not isinstance(given, int):
        raise ConfigError(f"{said}: how many jobs may run at once is a whole number, for example 2")
    if not 1 <= given <= LARGEST:
        raise ConfigError(f"{said}: from 1 to {LARGEST} jobs may run at once; to run none, pause their queue")
    return Concurrency(int(given))


def read_rate(given: object, said: str | None = None) -> Rate:
    """A rate, from how many starts in how long. Raises `ConfigError`; `said` is what it calls the option.

    Both numbers are whole; a unit is a letter or a name, in either case.

    >>> read_rate("5/2 minutes").interval
    24000000
    """
    said = said or f"rate={brief(given)}"
    if isinstance(given, int | float) and not isinstance(given, bool):
        raise ConfigError(f"{said} does not say in how long: write for example '10/m', which is ten a minute")
    found = _RATE.fullmatch(given) if isinstance(given, str) else None
    unit = None if found is None else _UNITS.get(found[3].lower())
    if found is None or unit is None:
        raise ConfigError(
            f"{said} is no rate: write how many starts in how long, in whole numbers, for example '10/m' or '1/30s'; "
            "the units are s, m, h and d, or seconds, minutes, hours and days"
        )
    starts, many = int(found[1]), int(found[2] or 1)
    if not starts or not many:
        raise ConfigError(f"{said}: both numbers are 1 or more; to run no jobs, pause their queue")
    rate = Rate(starts, many * unit)
    if rate.starts > rate.period:
        raise ConfigError(
            f"{said} is faster than the clock can space: the most is one start a microsecond, '1000000/s'; "
            "leave the rate out for no limit"
        )
    if rate.period > LONGEST:
        raise ConfigError(f"{said}: its period is longer than a century; say how many starts in a shorter one")
    return rate


def alike(one: Size, other: Size) -> bool:
    """Whether two sizes let the same through, however they were written.

    >>> alike(read_rate("10/m"), read_rate("1/6s"))
    True
    """
    match one, other:
        case Rate(), Rate():
            return one.interval == other.interval
        case _:
            return one == other


def in_words(size: Size) -> str:
    """A size for people.

    >>> in_words(Concurrency(2)), in_words(Rate(10, 60_000_000))
    ('2 at once', '10/m')
    """
    match size:
        case Concurrency(most):
            return f"{most} at once"
        case Rate():
            return f"{size}"
        case _:
            assert_never(size)


_LONGEST_FIRST = (("d", _DAY), ("h", _HOUR), ("m", _MINUTE), ("s", SECOND))
_UNITS: dict[str, Micros] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), _DAY),
}
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,15}\s*", re.ASCII)
_RATE = re.compile(r"\s*([0-9]{1,15})\s*/\s*([0-9]{1,15})?\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
