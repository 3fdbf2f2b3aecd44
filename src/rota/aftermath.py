"""The hooks that are called once an attempt's end is recorded, `on_success` and `on_failure`: they change nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any, assert_never

from rota.attempt import Run
from rota.context import CurrentJob, enter
from rota.errors import StoreError
from rota.hooks import FailedAttempt, Hook, Hooks, When
from rota.model import Again, Cancelled, Claimed, Failed, JobRow, Lost, Outcome, Released, Snoozed, State, Succeeded
from rota.wrapping import HookLoop, tell_of

Restore = Callable[[str], None] | None
"""Sets the context variables that a job brought along; none where an app has declared none."""


def concerns(hooks: Hooks, run: Run, outcome: Outcome) -> bool:
    """Whether a hook wants to hear of this end. None does of a job that was snoozed, handed back or cancelled."""
    match outcome:
        case Succeeded():
            return bool(hooks.of(When.SUCCESS, run.job.task))
        case Failed() | Again():
            return bool(hooks.of(When.FAILURE, run.job.task))
        case Snoozed() | Released() | Cancelled():
            return False
        case _:
            assert_never(outcome)


class Aftermath:
    """Calls the hooks of ends, one after the other, in the thread that it is used by."""

    def __init__(self, hooks: Hooks, restore: Restore = None) -> None:
        self._hooks = hooks
        self._restore = restore
        self._loop = HookLoop()

    def __enter__(self) -> Aftermath:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.__exit__()

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Call the hooks for an attempt that ended."""
        job = CurrentJob(run.job, run)
        match outcome:
            case Succeeded():
                if hooks := self._hooks.of(When.SUCCESS, job.task):  # a result is read for those alone who want it
                    self._call(hooks, job, _result(run, outcome), run.job.context)
            case Failed(failure) | Again(failure):
                wait = outcome.wait if isinstance(outcome, Again) else None
                failed = FailedAttempt(
                    failure.type, failure.message, failure.trace, wait is None, wait=wait, error=run.error_behind(failure)
                )
                self._call(self._hooks.of(When.FAILURE, job.task), job, failed, run.job.context)
            case Snoozed() | Released() | Cancelled():
                pass
            case _:
                assert_never(outcome)

    def lost(self, jobs: Sequence[Lost], get: Callable[[Sequence[str]], list[JobRow]]) -> None:
        """Call the hooks for attempts whose worker was lost, except where their job ended cancelled, as it was asked to.

        `get` looks up what the store has of their jobs: they may run again already, or be gone.
        """
        told = [job for job in jobs if job.state is not State.CANCELLED and self._hooks.of(When.FAILURE, job.task)]
        try:
            rows = {row.id: row for row in get([job.id for job in told])} if told else {}
        except StoreError:  # the hooks hear what is known without it
            rows = {}
        for job in told:
            self._lost(job, rows.get(job.id))

    def _lost(self, job: Lost, row: JobRow | None) -> None:
        final = job.state is State.FAILED
        message = f"worker lost: the lease of {job.who} ran out"
        failed = FailedAttempt("WorkerLost", message, "", final, lost=True, wait=None if final else 0)
        claimed = _claimed(job, row)
        self._call(self._hooks.of(When.FAILURE, job.task), CurrentJob(claimed, _Gone()), failed, claimed.context)

    def _call(self, hooks: list[Hook], job: CurrentJob, said: object, context: str | None) -> None:
        for hook in hooks:
            copy_context().run(self._call_one, hook, job, said, context)

    def _call_one(self, hook: Hook, job: CurrentJob, said: object, context: str | None) -> None:
        enter(job)
        try:
            if context is not None and self._restore is not None:
                self._restore(context)
            answer = hook.function(job, said)
            if isinstance(answer, Coroutine):
                self._loop.run(answer, copy_context())
        except BaseException as error:  # noqa: BLE001  # told, or raised on
            tell_of(hook, job, error)


class _Gone:
    """What is asked of whoever runs a body, where nobody does any more."""

    stop: str | None = None
    noticed = False
    progress: str | None = None
    worker = ""


def _result(run: Run, outcome: Succeeded) -> Any:
    if outcome.result is None:
        return None
    return run.task.signature.decode_result(outcome.result)


def _claimed(job: Lost, row: JobRow | None) -> Claimed:
    """The job as the lost attempt had it."""
    if row is None:
        return Claimed(job.id, job.task, job.queue, "{}", job.attempt, 0, job.attempt)
    known = (row.max_attempts, row.priority, row.due, row.key)
    return Claimed(job.id, job.task, job.queue, row.args, job.attempt, 0, *known, context=row.context)
