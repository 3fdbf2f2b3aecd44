"""One attempt: a claimed job's body is run, and how it ends becomes an outcome. Used by workers and by `run_one` alike."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from msgspec import UNSET

from rota.clock import SECOND, Micros
from rota.codec import failure_of
from rota.codec.wire import weigh
from rota.context import CurrentJob, enter
from rota.errors import ConfigError, LeaseLost
from rota.model import Claimed, Ended, Failed, Failure, Outcome, Places, Succeeded
from rota.rules.decide import End, Interrupted, Raised, Returned, Stopped, decide
from rota.signals import Signal
from rota.task import Task

log = logging.getLogger("rota")

CANCELLED = "cancelled"
TIMED_OUT = "timed out"
LOST = "lost"
SHUTDOWN = "shutdown"


class Run:
    """A job in a worker's hands: what it is, whether it should stop, and how far it says it is."""

    __slots__ = (
        "cancel", "deadline", "ended", "finished", "finishing", "interrupted", "job", "noticed", "places", "progress",
        "raised", "refusal", "result", "started", "stop", "tallied", "task", "worker",
    )  # fmt: skip

    def __init__(self, job: Claimed, task: Task[..., Any, Any], worker: str = "") -> None:
        self.job = job
        self.task = task
        self.worker = worker
        self.stop: str | None = None
        """Why the body should end soon: one of the words above. The first for an interruption stays."""
        self.interrupted = False
        """Whether it is being made to end, where that is possible."""
        self.noticed = False
        """Whether the body saw that it should stop."""
        self.progress: str | None = None
        self.started: int | None = None
        """When the body began, by `time.monotonic_ns`."""
        self.ended: int | None = None
        self.deadline: float | None = None
        self.cancel: Callable[[], object] | None = None
        """Interrupts the body from another thread, where it can be."""
        self.places: Places = ()
        """The places of limits that it took."""
        self.tallied = False
        """Whether the worker alone counts them."""
        self.refusal: Exception | None = None
        """Why its body cannot begin, where that is known before."""
        self.raised: Raised | None = None
        """How it failed, kept for hooks that want the exception itself."""
        self.finishing = False
        """Whether the body finished, or tried to finish, the job within a transaction of its own; perhaps it was undone."""
        self.finished = False
        """Whether the store was seen to have that."""
        self.result: str | None = None
        """The result as JSON that the body finished the job with, if any."""

    @staticmethod
    def unknown(job: Claimed, worker: str) -> Run:
        """The run of a job whose task is not known here, so that it can only be told what became of it."""
        return Run(job, None, worker)  # type: ignore[arg-type]  # it is never run

    @property
    def took(self) -> Micros:
        """How long the body has run, by now or until it ended."""
        return 0 if self.started is None else ((self.ended or time.monotonic_ns()) - self.started) // 1000

    @property
    def on_loop(self) -> bool:
        """Whether the body runs on the worker's event loop."""
        return self.task.on_loop

    def error_behind(self, failure: Failure) -> BaseException | None:
        """The exception of which this failure tells, where it was raised here and is kept."""
        return self.raised.error if self.raised is not None and self.raised.failure.type == failure.type else None

    def start_clock(self) -> None:
        """The body begins now; a time-out counts from here."""
        self.started = time.monotonic_ns()
        if self.task.timeout is not None:
            self.deadline = time.monotonic() + self.task.timeout / SECOND

    def stop_clock(self) -> None:
        """The body ended, or was given up; what comes until that is recorded is not its time. Only the first call counts."""
        if self.ended is None:
            self.ended = time.monotonic_ns()

    def warn(self, why: str) -> None:
        """Make `should_stop` true."""
        if self.stop is None:
            self.stop = why

    def interrupt(self, why: str) -> None:
        """Make `should_stop` true, and end a coroutine's or an isolated body from outside."""
        if not self.interrupted:
            self.stop = why
        self.interrupted = True
        if self.cancel is not None:
            self.cancel()

    def lose(self) -> None:
        """Stop it, for it is another worker's now."""
        if not self.interrupted:
            log.warning("the lease of job %s (%s) was lost while it ran: it is being stopped", self.job.id, self.job.task)
            self.interrupt(LOST)

    # -- for the body ---------------------------------------------------------------------------

    def finish_within(self, connection: object, result: object) -> None:
        """See `CurrentJob.finish_within`."""
        self.task.desk.finish_within(connection, self.worker, *self._finishing(result))

    async def afinish_within(self, connection: object, result: object) -> None:
        await self.task.desk.afinish_within(connection, self.worker, *self._finishing(result))

    def _finishing(self, result: object) -> tuple[Ended, str | None]:
        """The success on its way into the store, and how far the body says it is.

        It is noted before it is looked whether the attempt was given up meanwhile: who gives it up does that first, and then
        looks at the note, so one of both sees the other.
        """
        if result is not UNSET and not self.task.keep_result:
            raise ConfigError(
                f"finish_within got a result, and {self.task.name} keeps none: declare it with @app.task(keep_result=True)"
            )
        kept = Returned() if result is UNSET else _kept(self, result)
        self.finishing = True
        if self.ended is not None:
            raise LeaseLost(
                f"job {self.job.id} ({self.job.task}) is not this body's any more: its attempt has ended without it, "
                "so roll back what was done"
            )
        self.result = kept.result
        success = Succeeded(kept.result)
        return Ended(self.job.id, self.job.claim, success, self.took, places=self.places), self.progress


def perform(run: Run) -> Outcome:
    """Run a plain function's body to its end in this thread. Raises nothing, whatever the body does."""
    if run.stop is not None:
        return conclude(run, unbegun(run))
    if run.refusal is not None:
        return refused(run, run.refusal)
    try:
        args, kwargs = run.task.signature.decode(run.job.args)
        value = copy_context().run(_call, run, args, kwargs)
        _check_awaited(run, value)
    except BaseException as error:  # noqa: BLE001  # SystemExit of a body must not end the worker, and is a failure like others
        return conclude(run, raised(run, error))
    return conclude(run, returned(run, value))


async def aperform(run: Run) -> Outcome:
    """Run a coroutine function's body to its end, in a context of its own. Raises nothing, whatever the body does."""
    if run.stop is not None:
        return conclude(run, unbegun(run))
    if run.refusal is not None:
        return refused(run, run.refusal)
    try:
        args, kwargs = run.task.signature.decode(run.job.args)
        job = CurrentJob(run.job, run)
        enter(job)
        if run.job.context is not None:
            run.task.desk.restore(run.job.context)
        if run.task.hooks.inside:
            value = await _awrapped(run, job, args, kwargs)
        else:
            value = await run.task.function(*args, **kwargs)
        _check_awaited(run, value)
    except BaseException as error:  # noqa: BLE001  # as above; a cancellation arrives here too
        return conclude(run, raised(run, error))
    return conclude(run, returned(run, value))


def perform_here(run: Run) -> Outcome:
    """Run any body to its end in this thread: a coroutine function gets an event loop of its own."""
    if not run.task.is_coroutine:
        return perform(run)
    import asyncio

    return asyncio.run(aperform(run))


def raised(run: Run, error: BaseException) -> End:
    """The end of a body that raised: its own failure, or the way in which it was asked to stop.

    A warning alone does not excuse a failure: the body must have been interrupted, or have looked at `should_stop`.
    """
    asked = run.stop if run.interrupted or run.noticed else None
    if asked == TIMED_OUT:
        return timed_out(run)
    if asked is None or isinstance(error, Signal):
        return Raised(error, failure_of(error))
    return _stopped(asked)


def unbegun(run: Run) -> End:
    """The end of a job that was told to stop before its body began."""
    return _stopped(run.stop or SHUTDOWN)


def timed_out(run: Run) -> Raised:
    """The end of a body whose time is up."""
    limit = (run.task.timeout or 0) / SECOND
    error = TimeoutError(f"timed out after {limit:g} s")
    return Raised(error, failure_of(error))


def returned(run: Run, value: object) -> Returned:
    """The end of a body that returned. A result that cannot be stored is told and dropped: the work is done and stays so."""
    if not run.task.keep_result:
        return Returned()
    return _kept(run, value, aloud=not run.finishing)  # else it counts only where that transaction was undone


def _kept(run: Run, value: object, *, aloud: bool = True) -> Returned:
    try:
        result = run.task.signature.encode_result(value)
        weigh(result.encode(), run.task.desk.max_payload, f"the result of {run.task.name}")
        return Returned(result)
    except Exception as error:  # noqa: BLE001  # the value's own code may raise anything
        with suppress(Exception):  # nor must a log that fails: the work is done
            if aloud:
                log.warning("the result of %s (job %s) is not kept: %s", run.task.name, run.job.id, failure_of(error).message)
        return Returned()


def failed_to_run(run: Run, error: Exception) -> Outcome:
    """The outcome of a body that could not be run, or whose end could not be told: what went wrong is its failure."""
    with suppress(Exception):  # what went wrong may have been the log itself
        log.exception("%s (job %s) could not be run to its end", run.task.name, run.job.id)
    return conclude(run, Raised(error, failure_of(error)))


def refused(run: Run, error: Exception) -> Outcome:
    """The outcome of a job that was claimed and cannot begin, for a reason that is its own: a failed attempt."""
    return conclude(run, Raised(error, failure_of(error)))


def conclude(run: Run, end: End) -> Outcome:
    """The outcome of an end, by the task's retry policy."""
    run.stop_clock()
    if run.task.hooks.after and run.raised is None and isinstance(end, Raised):
        run.raised = end
    try:
        return decide(end, run.job, run.task.policy, random.random(), run.task.limits)  # noqa: S311  # chance for jitter, not for secrets
    except BaseException as error:  # a retry function of the user's may even exit
        log.exception("the retry policy of %s failed, so job %s fails", run.task.name, run.job.id)
        return Failed(failure_of(error))


def _stopped(why: str) -> End:
    match why:
        case "cancelled":
            return Stopped()
        case "lost":
            return Interrupted("the lease was lost")
        case _:
            return Interrupted("the worker was shut down")


def _call(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    job = CurrentJob(run.job, run)
    enter(job)
    if run.job.context is not None:
        run.task.desk.restore(run.job.context)
    if run.task.hooks.inside:
        return _wrapped(run, job, args, kwargs)
    return run.task.function(*args, **kwargs)


def _wrapped(run: Run, job: CurrentJob, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Run the body within its hooks, which see it fail also where it returns what nobody awaited."""
    from rota.wrapping import call_wrapped

    def body() -> object:
        _check_wanted(run)
        value = run.task.function(*args, **kwargs)
        _check_awaited(run, value)
        return value

    return call_wrapped(run.task.hooks.around_bodies(run.task.name), job, body)


async def _awrapped(run: Run, job: CurrentJob, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    from rota.wrapping import acall_wrapped

    async def body() -> object:
        _check_wanted(run)
        value = await run.task.function(*args, **kwargs)
        _check_awaited(run, value)
        return value

    return await acall_wrapped(run.task.hooks.around_bodies(run.task.name), job, body)


def _check_wanted(run: Run) -> None:
    """Raise `LeaseLost` where the attempt ended, or was told to, while its hooks were called: its body does not begin."""
    if run.ended is not None or run.stop is not None:
        run.noticed = True
        raise LeaseLost(f"the attempt of job {run.job.id} ({run.job.task}) was over before its body began")


def _check_awaited(run: Run, value: object) -> None:
    """Raise `TypeError` where the body returned work that is not done: a coroutine, or from a plain body any awaitable."""
    if not hasattr(type(value), "__await__"):
        return
    if isinstance(value, Coroutine):
        value.close()  # or Python would warn that it was never awaited
    elif run.task.is_coroutine:
        return  # perhaps a task on the loop, which goes on
    kind = type(value).__name__
    if run.task.is_coroutine:
        raise TypeError(f"{run.task.name} returned something that it did not await ({kind}): write `return await …`")
    raise TypeError(
        f"{run.task.name} is run as a plain function, but returned something to be awaited ({kind}), and nobody does: "
        "declare it with `async def`; if it is, a decorator hides that and must use functools.wraps"
    )


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """Whether calling it answers a coroutine: `async def`, also behind `functools.partial` or a callable object."""
    from inspect import iscoroutinefunction, unwrap

    inner = unwrap(function)
    return iscoroutinefunction(inner) or iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004
