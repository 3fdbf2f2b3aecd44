"""Jobs that run at their enqueue, in the caller, without the store: `Rota(eager=True)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rota.aftermath import Aftermath
from rota.attempt import Run
from rota.clock import Micros
from rota.errors import NotSupported
from rota.events import Event, ended, tell
from rota.handle import Job
from rota.inline import perform_inline
from rota.model import Again, AttemptRow, Changed, Claimed, Edit, Ended, Failed, JobRow, Move, NewJob, Outcome, State, Succeeded
from rota.rules.explain import Explanation, explain
from rota.task import Task

T = TypeVar("T")


class App(Protocol):
    """What an eager job asks of its app."""

    def read_result(self, task: str, text: str) -> Any: ...
    async def in_thread(self, call: Callable[[], T]) -> T: ...


class Kept:
    """The host of a job that no store has: what is known of it is what it ended with."""

    def __init__(self, app: App, row: JobRow, attempts: list[AttemptRow]) -> None:
        self._app = app
        self._row = row
        self._attempts = attempts

    def rows(self, ids: Sequence[str]) -> list[JobRow]:
        return [self._row]

    def attempts_of(self, id: str) -> list[AttemptRow]:
        return self._attempts

    def change(self, move: Move, ids: Sequence[str]) -> list[Changed]:
        raise NotSupported(f"eager mode keeps no jobs, so none can be changed ({move}): enqueue it again instead")

    def edit(self, wanted: Edit, ids: Sequence[str]) -> list[Changed]:
        raise NotSupported("eager mode keeps no jobs, so none can be edited: enqueue it again instead")

    def read_result(self, task: str, text: str) -> Any:
        return self._app.read_result(task, text)

    def explain(self, id: str) -> Explanation:
        return explain(self._row, self._row.finished_at or self._row.due)

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await self._app.in_thread(call)


def run_eagerly(app: App, new: NewJob, task: Task[..., Any, Any], now: Micros) -> Job[Any]:
    """Run a job once, and answer it finished. Delays are not waited for, and there are no further attempts."""
    claimed = Claimed(new.id, new.task, new.queue, new.args, 1, 0, new.max_attempts, new.priority, now, new.key, 0, new.context)
    run = Run(claimed, task)
    outcome = perform_inline(run)
    if run.finishing and isinstance(outcome, Succeeded):
        outcome = Succeeded(run.result)  # as after its commit
    event = ended(claimed, Ended(claimed.id, 1, outcome, run.took))
    tell([event])
    with Aftermath(task.hooks, task.desk.restore) as after:
        after.ended(run, Failed(outcome.failure) if isinstance(outcome, Again) else outcome)  # there is no other attempt
    row = _row(new, run, outcome, event, now)
    return Job(Kept(app, row, _attempts(run, outcome, event, now)), new.id, row)


def _row(new: NewJob, run: Run, outcome: Outcome, event: Event, now: Micros) -> JobRow:
    done = isinstance(outcome, Succeeded)
    return JobRow(
        id=new.id,
        task=new.task,
        queue=new.queue,
        state=State.SUCCEEDED if done else State.FAILED,
        priority=new.priority,
        due=now,
        created_at=now,
        claim=1,
        excused=0,
        max_attempts=new.max_attempts,
        args=new.args,
        key=new.key,
        claimed_at=now,
        finished_at=now + run.took,
        took=run.took,
        result=outcome.result if isinstance(outcome, Succeeded) else None,
        reason=None if done else event.reason or f"{event.kind}: eager mode runs a job once",
        progress=run.progress,
        key_waiting=new.key_waiting,
        context=new.context,
    )


def _attempts(run: Run, outcome: Outcome, event: Event, now: Micros) -> list[AttemptRow]:
    if isinstance(outcome, Succeeded):
        return []
    failure = outcome.failure if isinstance(outcome, Failed | Again) else None
    return [AttemptRow(1, 1, None, now + run.took, event.kind.value, run.took, failure)]
