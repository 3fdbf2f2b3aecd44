"""Working through a stretch of time in a test: retries and delays, limits and pauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rota.app import Rota
from rota.clock import Micros, at, moment
from rota.desk import in_pool
from rota.errors import ConfigError, NotSupported
from rota.events import Event
from rota.testing.clock import Clock, after

_STEP = 500
"""Scheduled jobs that are queued together."""


def drain_through(
    app: Rota, span: timedelta | float = 0.0, /, *, queues: Sequence[str] | None = None, **units: float
) -> list[Event]:
    """Move the app's `Clock` on by `span`, and run in the caller what becomes due on the way, each job at its own moment.

    The span is seconds, a `timedelta`, or what that takes, such as `days=1`. Retries of what fails are among what runs, and so
    are jobs that a rate held, or a partner's limit, at the moment when it has room, those of paused queues when the pause ends,
    and those of workers that are gone when their lease runs out. Raises `ConfigError` where the app goes by another clock.

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
    clock = _clock_of(app)
    end = moment(after(clock, span, units), "span")
    if end < moment(clock.now, "clock"):
        raise ConfigError("drain_through goes forward in time: pass a span of zero or more")
    happened = app.drain(queues)
    while (then := _next(app)) is not None and then <= end:
        clock.set(at(then))
        happened += app.drain(queues)
    if end <= moment(clock.now, "clock"):  # a body may have moved it
        return happened
    clock.set(at(end))
    return happened + app.drain(queues)


async def adrain_through(
    app: Rota, span: timedelta | float = 0.0, /, *, queues: Sequence[str] | None = None, **units: float
) -> list[Event]:
    """`drain_through` for coroutines: it runs in another thread, as `app.adrain` does."""
    return await in_pool(lambda: drain_through(app, span, queues=queues, **units))


def _clock_of(app: Rota) -> Clock:
    if app.eager:
        raise NotSupported("eager mode runs jobs at once, so none is left to be drained: use rota.testing.fresh_store(app)")
    if not isinstance(app.clock, Clock):
        raise ConfigError(
            "drain_through moves the app's clock, and this app has none that can be moved: see rota.testing.Clock"
        )
    return app.clock


def _next(app: Rota) -> Micros | None:
    """The first moment after now at which time alone lets a job run, or may: what is due already has been looked at."""
    now = app.now()
    assert now is not None
    promoted = app.store.promote(_STEP, now)
    while promoted.count == _STEP:
        promoted = app.store.promote(_STEP, now)
    moments = [None if span is None else now + span for span in (promoted.next_in, app.store.paused(now).next_in)]
    moments += [worker.lease_until for worker in app.store.workers()]
    if app.limiting is not None:
        moments += [room.opens_at for room in app.limits() if room.held]
    return min((each for each in moments if each is not None and each > now), default=None)
