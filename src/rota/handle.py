"""A job from outside: what `enqueue`, `get` and `jobs` answer, to look at, wait for and change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import msgspec

from rota.clock import SECOND, Micros, at, span
from rota.codec.wire import brief
from rota.errors import JobFailed, JobNotFound, MoveRefused, ResultNotKept, WaitTimeout
from rota.ids import is_id
from rota.model import MOVES, AttemptRow, Changed, Edit, JobRow, Move, Progress, State
from rota.options import edit_of

if TYPE_CHECKING:  # few look, and most of them do so from a process of their own
    from rota.rules.explain import Explanation

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Host(Protocol):
    """What a handle asks of the app it came from."""

    def rows(self, ids: Sequence[str]) -> list[JobRow]: ...
    def attempts_of(self, id: str) -> list[AttemptRow]: ...
    def change(self, move: Move, ids: Sequence[str]) -> list[Changed]: ...
    def edit(self, wanted: Edit, ids: Sequence[str]) -> list[Changed]: ...
    def read_result(self, task: str, text: str) -> Any: ...
    def explain(self, id: str) -> Explanation: ...
    async def in_thread(self, call: Callable[[], T]) -> T: ...


class Job(Generic[R_co]):
    """A job in the store. Its facts are those of the last `refresh`; the first look at one fetches them.

    From a coroutine, `await job.arefresh()` first, so that no look blocks the loop.
    """

    __slots__ = ("_host", "_row", "existed", "id")

    def __init__(self, host: Host, id: str, row: JobRow | None = None, existed: bool = False) -> None:
        self._host = host
        self._row = row
        self.id = id
        self.existed = existed
        """Whether `enqueue` found an unfinished job with the same key and answered that one."""

    # -- facts ----------------------------------------------------------------------------------

    @property
    def row(self) -> JobRow:
        """Every fact the store has, as plain values (`rota.model.JobRow`)."""
        return self._row if self._row is not None else self.refresh().row

    @property
    def status(self) -> State:
        return self.row.state

    @property
    def task(self) -> str:
        return self.row.task

    @property
    def queue(self) -> str:
        return self.row.queue

    @property
    def priority(self) -> int:
        return self.row.priority

    @property
    def key(self) -> str | None:
        return self.row.key

    @property
    def attempt(self) -> int:
        """How many attempts it has had, the running one included; releases and snoozes are not counted."""
        return self.row.attempt

    @property
    def max_attempts(self) -> int:
        return self.row.max_attempts

    @property
    def reason(self) -> str | None:
        """Why the last attempt failed, or why the job was cancelled or handed back."""
        return self.row.reason

    @property
    def progress(self) -> Progress | None:
        """How far the body last said it is; `None` when it said nothing, or nothing that can be read any more."""
        try:
            return None if self.row.progress is None else msgspec.json.decode(self.row.progress, type=Progress)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    @property
    def run_at(self) -> datetime:
        return at(self.row.due)

    @property
    def created_at(self) -> datetime:
        return at(self.row.created_at)

    @property
    def finished_at(self) -> datetime | None:
        return None if self.row.finished_at is None else at(self.row.finished_at)

    def __repr__(self) -> str:
        return f"<Job {self.id}>" if self._row is None else f"<Job {self.id} {self._row.task} {self._row.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    # -- looking --------------------------------------------------------------------------------

    def refresh(self) -> Self:
        """Fetch the facts anew. Raises `JobNotFound` when the job is gone."""
        rows = self._host.rows([self.id])
        if not rows:
            raise not_found(self.id)
        self._row = rows[0]
        return self

    async def arefresh(self) -> Self:
        return await self._host.in_thread(self.refresh)

    def wait(self, timeout: float | timedelta | None = None) -> Self:
        """Wait until the job is succeeded, failed or cancelled. Raises `WaitTimeout` after `timeout` seconds.

        Raises `JobNotFound` when it is gone, as one is that ended in a state that the app does not keep.
        """
        for pause in self._looks(timeout):
            if self.refresh().row.state.final:
                break
            time.sleep(pause)
        return self

    async def await_(self, timeout: float | timedelta | None = None) -> Self:
        """`wait` for coroutines; the underscore is there because `await` is Python's own word."""
        import asyncio

        for pause in self._looks(timeout):
            if (await self.arefresh()).row.state.final:
                break
            await asyncio.sleep(pause)
        return self

    def result(self) -> R_co:
        """What the task returned, of its declared type.

        Raises `JobFailed` with the reason when it failed or was cancelled, `ResultNotKept` when it succeeded but its task was
        not declared with `keep_result=True` or the value could not be stored, `WaitTimeout` when it is not finished, and
        `ResultError` when what is stored is not of the declared type.
        """
        row = self.row if self._row is not None and self._row.state.final else self.refresh().row
        if not row.state.final:
            raise WaitTimeout(f"job {self.id} is {row.state}, so it has no result yet: wait() for it first")
        if row.state is not State.SUCCEEDED:
            when = f" on attempt {row.attempt}" if row.attempt else ""
            raise JobFailed(f"{row.task} {row.state}{when}: {row.reason}")
        if row.result is None:
            raise ResultNotKept(
                f"no result of {row.task} is kept: declare it with @app.task(keep_result=True), "
                "and see the worker's log if it was and the value could not be stored"
            )
        value: R_co = self._host.read_result(row.task, row.result)
        return value

    async def aresult(self) -> R_co:
        return await self._host.in_thread(self.result)

    def attempts(self) -> list[AttemptRow]:
        """The attempts that did not succeed, oldest first, with their errors and traces."""
        return self._host.attempts_of(self.id)

    async def aattempts(self) -> list[AttemptRow]:
        return await self._host.in_thread(self.attempts)

    def explain(self) -> Explanation:
        """Why it is not running, or where it runs, or how it ended: `print` it, or look at its fields.

        Says when it is due, which limit holds it and which jobs fill that, that no live worker serves its queue or knows its
        task, and how many queued jobs come before it. Raises `JobNotFound`.
        """
        return self._host.explain(self.id)

    async def aexplain(self) -> Explanation:
        return await self._host.in_thread(self.explain)

    # -- changing -------------------------------------------------------------------------------

    def cancel(self) -> State:
        """Cancel the job and answer where that left it.

        `cancelled`: it will not run. `running`: its worker was asked to stop it, and tells within about a second.
        `succeeded` or `failed`: too late, nothing changed.
        """
        changed = self._change(Move.CANCEL)
        return changed.after or changed.before or State.CANCELLED

    async def acancel(self) -> State:
        return await self._host.in_thread(self.cancel)

    def retry(self) -> Self:
        """Queue the job to run now, with all of its attempts before it.

        Raises `MoveRefused` while it runs, and when another unfinished job has its key.
        """
        changed = self._change(Move.RETRY)
        if changed.after is not State.QUEUED or changed.before is State.RUNNING:
            raise MoveRefused(_refusal("retried", changed))
        return self

    async def aretry(self) -> Self:
        return await self._host.in_thread(self.retry)

    def delete(self) -> None:
        """Remove the job and its attempts from the store. Raises `MoveRefused` while it runs."""
        changed = self._change(Move.DELETE)
        if changed.after is not None:
            raise MoveRefused(_refusal("deleted", changed))

    async def adelete(self) -> None:
        await self._host.in_thread(self.delete)

    def edit(
        self,
        *,
        priority: int | None = None,
        queue: str | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
    ) -> Self:
        """Change the priority, the queue or the due time of the job while it waits.

        Due later it is `scheduled`, due now or before it is `queued`; held by a limit, it is queued for the limit to look at it
        anew. Raises `MoveRefused` when it runs or is finished, and `ConfigError` for what cannot be right.

        >>> from rota import Rota
        >>> app = Rota("memory://")
        >>> job = app.send("shop.remind", "Ada")
        >>> job.edit(priority=5, delay=3600).status
        <State.SCHEDULED: 'scheduled'>
        >>> app.close()
        """
        wanted = edit_of(queue, priority, delay, run_at)
        changed = self._seen(*self._host.edit(wanted, [self.id]))
        if changed.before not in MOVES[Move.EDIT]:
            so = "cancel it first, or wait for it" if changed.before is State.RUNNING else "retry it first, or enqueue another"
            raise MoveRefused(f"job {self.id} is {changed.before}, so it cannot be edited: {so}")
        return self

    async def aedit(
        self,
        *,
        priority: int | None = None,
        queue: str | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
    ) -> Self:
        return await self._host.in_thread(lambda: self.edit(priority=priority, queue=queue, delay=delay, run_at=run_at))

    def _change(self, move: Move) -> Changed:
        return self._seen(*self._host.change(move, [self.id]))

    def _seen(self, changed: Changed) -> Changed:
        self._row = None  # what was known of it is no longer so
        if changed.before is None:
            raise not_found(self.id)
        return changed

    def _looks(self, timeout: float | timedelta | None) -> Iterator[float]:
        """The pauses between looks: short at first, half a second at the most, ended by the time-out."""
        limit: Micros | None = None if timeout is None else span(timeout, "timeout")
        end = None if limit is None else time.monotonic() + limit / SECOND
        pause = 0.005
        while True:
            left = None if end is None else end - time.monotonic()
            yield pause if left is None else max(0.0, min(pause, left))
            if left is not None and left <= 0:
                raise WaitTimeout(f"job {self.id} was still {self.row.state} after {(limit or 0) / SECOND:g} s")
            pause = min(pause * 1.5, 0.5)


def not_found(id: object) -> JobNotFound:
    """What to raise where a store has no job with this id."""
    name = id if is_id(id) else brief(id)
    return JobNotFound(f"no job {name}: it never was, was deleted, or is not kept so long (see the keep_ settings)")


def _refusal(done: str, changed: Changed) -> str:
    if changed.before is State.RUNNING:
        return f"job {changed.id} is running, so it cannot be {done}: cancel it first, or wait for it"
    return f"job {changed.id} is {changed.before} and cannot be {done}: another unfinished job has its key"
