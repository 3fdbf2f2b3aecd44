"""What a task may raise to say more than "it failed"."""

from __future__ import annotations

from datetime import timedelta

from rota.clock import SECOND, Micros, span
from rota.errors import ConfigError


class Signal(Exception):
    """The base of what a task raises to speak to its worker."""


class Retry(Signal):
    """Fail this attempt and try again `after` seconds (or a `timedelta`), whatever the retry policy says.

    The attempt counts: on the last one the job fails, with `reason`.
    With `limit=True` no job starts meanwhile, on any worker, under the rates that this job is under, or under all of its limits
    where none is a rate: say so when a partner's own limit was met. The name of a limit picks that one. Where a limit has keys,
    only the jobs with this one's key wait.

    >>> raise Retry(after=30, reason="the partner is busy")
    Traceback (most recent call last):
    rota.signals.Retry: the partner is busy
    """

    def __init__(
        self, after: float | timedelta, reason: str = "the task asked for another attempt", *, limit: bool | str = False
    ) -> None:
        super().__init__(reason)
        self.wait: Micros = span(after, "after")
        if not isinstance(limit, bool | str):
            raise ConfigError(f"limit={limit!r}: it is True, or the name of a limit of the task")
        self.limit = limit


class Abandon(Signal):
    """Fail the job now, with this reason; attempts that are left are not used.

    >>> raise Abandon("order 42 was refunded")
    Traceback (most recent call last):
    rota.signals.Abandon: order 42 was refunded
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Snooze(Signal):
    """Run the job again after `delay` seconds (or a `timedelta`); this attempt does not count.

    A shorter delay than a tenth of a second is made one, so that a job that only snoozes does not keep a worker busy.

    >>> raise Snooze(60)
    Traceback (most recent call last):
    rota.signals.Snooze: snoozed for 60 s
    """

    def __init__(self, delay: float | timedelta) -> None:
        self.wait: Micros = max(span(delay, "delay"), SECOND // 10)
        super().__init__(f"snoozed for {self.wait / SECOND:g} s")
