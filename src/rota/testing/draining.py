"""Working through a stretch of time in a test, retries and delays included."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rota.app import Rota
from rota.clock import at, moment
from rota.errors import ConfigError
from rota.events import Event
from rota.testing.clock import Clock


def drain_through(
    app: Rota, span: timedelta | float = 0.0, /, *, queues: Sequence[str] | None = None, **units: float
) -> list[Event]:
    """Move the app's `Clock` on by `span`, and run in the caller what becomes due on the way, each job at its own moment.

    The span is seconds, a `timedelta`, or what that takes, such as `days=1`. Retries of what fails are among what runs. Raises
    `ConfigError` where the app goes by another clock.

    >>> clock = Clock()
    >>> app = Rota("memory://", clock=clock)
    >>> @app.task(name="broken", max_attempts=3)
    ... def broken() -> None:
    ...     raise ValueError("it broke")
    >>> job = broken.enqueue()
    >>> for event in drain_through(app, minutes=1):
    ...     print(event)
    failed broken on attempt 1: it broke
    failed broken on attempt 2: it broke
    failed broken on attempt 3: it broke
    >>> app.close()
    """
    clock = app.clock
    if not isinstance(clock, Clock):
        raise ConfigError(
            "drain_through moves the app's clock, and this app has none that can be moved: see rota.testing.Clock"
        )
    end = moment(clock.now + (span if isinstance(span, timedelta) else timedelta(seconds=span)) + timedelta(**units), "span")
    happened = app.drain(queues)
    while (due := _next(app)) is not None and due <= end:
        clock.set(at(max(due, moment(clock.now, "clock"))))
        happened += app.drain(queues)
    clock.set(at(max(end, moment(clock.now, "clock"))))
    return happened + app.drain(queues)


def _next(app: Rota) -> int | None:
    """When the next scheduled job is due; those that are due already are queued."""
    now = app.now()
    assert now is not None
    promoted = app.store.promote(500, now)
    return None if promoted.next_in is None else now + promoted.next_in
