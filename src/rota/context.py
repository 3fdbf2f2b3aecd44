"""The running job as its own body sees it."""

from __future__ import annotations

from contextvars import Context, ContextVar
from typing import Any, Protocol

import msgspec

from rota.codec import clean
from rota.model import Claimed, Progress

_MOST = 1e300
_NOTE = 500
"""How many characters of a note are kept."""

_current: ContextVar[CurrentJob] = ContextVar("rota_job")


class Stoppable(Protocol):
    """Who runs the body: knows whether it should stop, and passes its progress on."""

    stop: str | None
    noticed: bool
    progress: str | None


class CurrentJob:
    """The job that is running here; `current_job()` gives it to the body."""

    __slots__ = ("_claimed", "_run")

    def __init__(self, claimed: Claimed, run: Stoppable) -> None:
        self._claimed = claimed
        self._run = run

    @property
    def id(self) -> str:
        return self._claimed.id

    @property
    def task(self) -> str:
        return self._claimed.task

    @property
    def queue(self) -> str:
        return self._claimed.queue

    @property
    def key(self) -> str | None:
        return self._claimed.key

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self._claimed.attempt

    @property
    def max_attempts(self) -> int:
        return self._claimed.max_attempts

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as they are stored: plain JSON values by their names; those without one are a list under `*`."""
        return msgspec.json.decode(self._claimed.args, type=dict[str, Any])

    @property
    def should_stop(self) -> bool:
        """Whether the body should end soon: the job was cancelled or timed out, its lease was lost, or the worker shuts down.

        A coroutine is cancelled and an isolated body is killed; a plain function has to look here now and then.
        """
        if self._run.stop is None:
            return False
        self._run.noticed = True
        return True

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the body is. Cheap: the latest word is stored with the worker's next beat, about once a second.

        Raises `ValueError` for what is no finite number.
        """
        for number in (done, *(() if total is None else (total,))):
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= _MOST:
                raise ValueError(f"progress({done!r}, {total!r}): say how much is done, and of how much, as finite numbers")
        self._run.progress = msgspec.json.encode(Progress(done, total, clean(note, _NOTE))).decode()

    def __repr__(self) -> str:
        return f"<CurrentJob {self.id} {self.task} attempt {self.attempt} of {self.max_attempts}>"


def current_job() -> CurrentJob:
    """The job whose body is running in this thread or coroutine.

    Raises `LookupError` outside of a job.
    """
    try:
        return _current.get()
    except LookupError:
        raise LookupError("no job is running here: current_job() is for the body of a task") from None


def enter(job: CurrentJob) -> None:
    """Make `job` the current one of this context."""
    _current.set(job)


def entered(context: Context) -> CurrentJob | None:
    """The job that is the current one of this context, which may be another thread's."""
    return context.get(_current)
