"""A clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota.clock import moment


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
        """Move on by seconds or a `timedelta`, or by what `timedelta` takes, such as `days=1`, and answer the new moment."""
        length = span if isinstance(span, timedelta) else timedelta(seconds=span)
        self.set(self.now + length + timedelta(**units))
        return self.now

    def set(self, now: datetime) -> None:
        """Go to this moment, forward or back. Raises `ConfigError` where it has no time zone."""
        moment(now, "now")
        self.now = now
