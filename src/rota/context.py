"""The running job as its own body sees it."""

from __future__ import annotations

from contextvars import Context, ContextVar
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET

from rota.codec import clean
from rota.errors import LeaseLost
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
    worker: str


@runtime_checkable
class Finisher(Protocol):
    """Who runs the body and can finish its job before the body ends."""

    def finish_within(self, connection: object, result: object) -> None: ...
    async def afinish_within(self, connection: object, result: object) -> None: ...


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
    def priority(self) -> int:
        return self._claimed.priority

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
    def excused(self) -> int:
        """How many times it was begun without that being an attempt: it was snoozed, or handed back."""
        return self._claimed.excused

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as they are stored: plain JSON values by their names; those without one are a list under `*`."""
        return msgspec.json.decode(self._claimed.args, type=dict[str, Any])

    @property
    def worker(self) -> str:
        """The id of the worker that runs it; empty in eager mode, and where its worker was lost."""
        return self._run.worker

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

    def finish_within(self, connection: object, *, result: object = UNSET) -> None:
        """Record the job as succeeded in the transaction that is open on this connection, so that both happen or neither does.

        Call it last, then commit: what the body wrote in the transaction and the job's success come to the store together,
        whenever the process dies. After a rollback the job goes on as if nothing had been said, and what the body returns or
        raises counts. After the commit it is final: what follows in the body is logged where it fails, and changes nothing.

        `connection` is one that `using(connection=…)` takes, to the store's own database. `result` is kept for `job.result()`
        in place of what the body returns, where the task keeps results.
        Raises `LeaseLost` when the job is no longer this attempt's, and `MoveRefused` when it was finished already: either
        way the transaction must be rolled back, for its effects are another attempt's, or there already.
        In eager mode there is no store, and nothing is recorded.

        >>> import sqlite3
        >>> from rota import Rota, current_job
        >>> app = Rota("sqlite:///shop.db")
        >>> @app.task
        ... def pay(account: str, amount: int) -> None:
        ...     with sqlite3.connect("shop.db") as shop:
        ...         shop.execute("update accounts set balance = balance + ? where name = ?", (amount, account))
        ...         current_job().finish_within(shop)
        """
        self._finisher().finish_within(connection, result)

    async def afinish_within(self, connection: object, *, result: object = UNSET) -> None:
        """`finish_within` for connections whose methods are coroutines."""
        await self._finisher().afinish_within(connection, result)

    def _finisher(self) -> Finisher:
        if isinstance(self._run, Finisher):
            return self._run
        raise LeaseLost(f"the attempt of job {self.id} ({self.task}) has ended: only its body can finish it, while it runs")

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


def running_job() -> CurrentJob | None:
    """The same, or `None` outside of a job."""
    return _current.get(None)


def enter(job: CurrentJob) -> None:
    """Make `job` the current one of this context."""
    _current.set(job)


def entered(context: Context) -> CurrentJob | None:
    """The job that is the current one of this context, which may be another thread's."""
    return context.get(_current)
