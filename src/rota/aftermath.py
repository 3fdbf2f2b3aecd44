"""The hooks that are called once an attempt's end is recorded: `on_success` and `on_failure`. They change nothing any more."""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any

from rota.attempt import Run
from rota.context import CurrentJob, enter
from rota.hooks import FailedAttempt, Hook, Hooks, When
from rota.model import Again, Claimed, Failed, JobRow, Lost, Outcome, State, Succeeded
from rota.wrapping import HookLoop, tell_of


class Aftermath:
    """Calls the hooks of ends, one after the other, in the thread that it is used by."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._loop = HookLoop()

    def concerns(self, outcome: Outcome) -> bool:
        """Whether any hook wants to hear of such an end. Nobody does of jobs that were snoozed, handed back or cancelled."""
        return self._hooks.after and isinstance(outcome, Succeeded | Failed | Again)

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Call the hooks for an attempt that ended."""
        job = CurrentJob(run.job, run)
        match outcome:
            case Succeeded():
                if hooks := self._hooks.of(When.SUCCESS, job.task):
                    self._call(hooks, job, _result(run, outcome))
            case Failed(failure) | Again(failure):
                wait = outcome.wait if isinstance(outcome, Again) else None
                failed = FailedAttempt(
                    failure.type, failure.message, failure.trace, wait is None, wait=wait, error=run.error_behind(failure)
                )
                self._call(self._hooks.of(When.FAILURE, job.task), job, failed)
            case _:
                pass

    def lost(self, job: Lost, row: JobRow | None) -> None:
        """Call the hooks for an attempt whose worker was lost; `row` is what the store has of its job, if it is still there."""
        if job.state is State.CANCELLED:
            return  # it ended as it was asked to
        final = job.state is State.FAILED
        message = f"worker lost: the lease of {job.worker} ran out"
        failed = FailedAttempt("WorkerLost", message, "", final, lost=True, wait=None if final else 0)
        self._call(self._hooks.of(When.FAILURE, job.task), CurrentJob(_claimed(job, row), _Gone()), failed)

    def close(self) -> None:
        self._loop.__exit__()

    def _call(self, hooks: list[Hook], job: CurrentJob, said: object) -> None:
        for hook in hooks:
            copy_context().run(self._call_one, hook, job, said)

    def _call_one(self, hook: Hook, job: CurrentJob, said: object) -> None:
        enter(job)
        try:
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


def _result(run: Run, outcome: Succeeded) -> Any:
    if outcome.result is None:
        return None
    return run.task.signature.decode_result(outcome.result)


def _claimed(job: Lost, row: JobRow | None) -> Claimed:
    """The job as the lost attempt had it. It may run again already, or be gone."""
    if row is None:
        return Claimed(job.id, job.task, job.queue, "{}", job.attempt, 0, job.attempt)
    return Claimed(job.id, job.task, job.queue, row.args, job.attempt, 0, row.max_attempts, row.priority, row.due, row.key)
