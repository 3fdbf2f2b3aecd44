"""A clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.clock import moment
from rota.errors import ConfigError


class Clock:
    """Stands still until it is moved. An app whose `clock` it is has no other time, so nothing waits for the real one.

    It begins at `now`, or at the real present.

    >>> clock = Clock(datetime(2030, 1, 1, tzinfo=UTC))
    >>> clock.move(hours=1, minutes=30).isoformat()
    '2030-01-01T01:30:00+00:00'
    >>> clock().isoformat()
    '2030-01-01T01:30:00+00:00'
    """

    def __init__(self, now: datetime | None = None) -> None:
        self.set(datetime.now(UTC) if now is None else now)

    def __call__(self) -> datetime:
        return self.now

    def __repr__(self) -> str:
        return f"<Clock {self.now.isoformat()}>"

    def move(self, span: timedelta | float = 0.0, /, **units: float) -> datetime:
        """Move on by seconds or a `timedelta`, or by what `timedelta` takes, such as `days=1`, and answer the new moment.

        A negative span moves back. Raises `ConfigError` for what is no span, and where the moment would be after the year 9999.
        """
        self.set(after(self, span, units))
        return self.now

    def set(self, now: datetime) -> None:
        """Go to this moment, forward or back. Raises `ConfigError` where it has no time zone."""
        moment(now, "now")
        self.now = now


def after(clock: Clock, span: timedelta | float, units: dict[str, float]) -> datetime:
    """The moment so long after the clock's. Raises `ConfigError` as `move` does."""
    said = ", ".join([*([repr(span)] if span or not units else []), *(f"{name}={value!r}" for name, value in units.items())])
    try:
        length = (span if isinstance(span, timedelta) else timedelta(seconds=span)) + timedelta(**units)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"({said}) is no span of time: pass seconds, a timedelta, or weeks, days, hours, minutes and seconds by name"
        ) from error
    except OverflowError:
        raise ConfigError(f"({said}) is longer than Python can count: it ends with the year 9999") from None
    try:
        return clock.now + length
    except OverflowError:
        raise ConfigError(f"({said}) from {clock.now.isoformat()} lies outside of the years 1 to 9999") from None
