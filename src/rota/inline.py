"""Jobs worked right here, without a worker process: one at a chosen moment, or all that are due."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rota.attempt import TIMED_OUT, Run, aperform, perform
from rota.clock import SECOND, Micros
from rota.events import Event, ended, lost, tell
from rota.ids import new_id
from rota.isolation import Child
from rota.model import (
    Again,
    Ask,
    Claimed,
    Ended,
    Failed,
    Failure,
    Outcome,
    Released,
    Report,
    State,
    WorkerRow,
)
from rota.rules.decide import Raised, decide, keeps, no_performer
from rota.rules.retry import Polynomial
from rota.stores.base import Store
from rota.task import Task

Tasks = Mapping[str, Task[..., Any, Any]]
LEASE: Micros = 300 * SECOND
"""Nothing beats while a body runs here, so the lease is the guide's five minutes: a longer body may be run a second time."""
INTERRUPTED = Released("interrupted from the keyboard")
_STEP = 500


@dataclass(frozen=True, slots=True)
class Moments:
    """Which moment counts for what. As everywhere, `None` is the store's own clock."""

    present: Callable[[], Micros | None]
    """The app's clock. Leases are judged by it alone: nobody is lost because of a moment that someone chose."""
    chosen: Micros | None = None

    def due(self) -> Micros | None:
        """The moment by which jobs are due, and at which they are said to run."""
        return self.present() if self.chosen is None else self.chosen


def run_one(store: Store, tasks: Tasks, queues: Sequence[str] | None, kept: frozenset[State], moments: Moments) -> Event | None:
    """Claim and run the first due job of these queues (`None`: all) and say what happened, or `None` when nothing is due.

    A job whose task nobody registered fails as the guide has it, by the default retry policy.
    """
    with _joined(store, tasks, queues, moments) as worker:
        return _step(store, tasks, worker, queues, kept, moments)


def drain(store: Store, tasks: Tasks, queues: Sequence[str] | None, kept: frozenset[State], moments: Moments) -> list[Event]:
    """Run due jobs one after the other until none is left, those that they enqueue included."""
    happened = []
    with _joined(store, tasks, queues, moments) as worker:
        while (event := _step(store, tasks, worker, queues, kept, moments)) is not None:
            happened.append(event)
            store.beat(worker, [], moments.present())
    return happened


@contextmanager
def _joined(store: Store, tasks: Tasks, queues: Sequence[str] | None, moments: Moments) -> Iterator[str]:
    """The id of a worker that the store knows until the end of the block."""
    worker = _worker(queues, tasks)
    store.join(worker, moments.present())
    try:
        yield worker.id
    finally:
        store.leave(worker.id, moments.due())


def _step(
    store: Store, tasks: Tasks, worker: str, queues: Sequence[str] | None, kept: frozenset[State], moments: Moments
) -> Event | None:
    _take_back_lost(store, moments.present())
    while store.promote(_STEP, moments.due()).count == _STEP:
        pass
    names = tuple(store.queues() if queues is None else queues)
    job = _claim_due(store, Ask(worker, names, 1), moments.due()) if names else None
    if job is None:
        return None
    outcome, took = _attempt(store, tasks, worker, job, moments)
    end = Ended(job.id, job.claim, outcome, took, keeps(outcome, kept))
    store.finish(worker, [end], None, moments.due())
    event = ended(job, end)
    tell([event])
    if outcome is INTERRUPTED:
        raise KeyboardInterrupt
    return event


def _attempt(store: Store, tasks: Tasks, worker: str, job: Claimed, moments: Moments) -> tuple[Outcome, Micros]:
    task = tasks.get(job.task)
    if task is None:
        reason = no_performer(job.task)
        return decide(Raised(LookupError(reason), Failure("UnknownTask", reason)), job, Polynomial(), 0.0), 0
    run = Run(job, task, worker)
    try:
        outcome = perform_inline(run)
    except KeyboardInterrupt:
        outcome = INTERRUPTED
    if run.progress is not None:
        store.beat(worker, [Report(job.id, job.claim, run.progress)], moments.present())
    return outcome, run.took


def _claim_due(store: Store, ask: Ask, now: Micros | None) -> Claimed | None:
    """The first job that is due at the chosen moment. Where that lies in the past, what became due since is scheduled anew."""
    while claimed := store.claim(ask, now):
        (job,) = claimed
        if now is None or job.due <= now:
            return job
        store.finish(ask.worker, [Ended(job.id, job.claim, Released("it is not due yet", job.due - now))], None, now)
    return None


def _take_back_lost(store: Store, now: Micros | None) -> None:
    """Take back the jobs of lost workers, and tell of each."""
    full = True
    while full:
        lost_jobs = store.lost(_STEP, now).lost
        tell([lost(job) for job in lost_jobs])
        full = len(lost_jobs) == _STEP


def perform_inline(run: Run) -> Outcome:
    """Run the body in this thread, or in a process of its own when it is isolated.

    The time-out ends a coroutine and an isolated body; a plain one runs on. Ctrl+C is meant for the caller, so it is no
    failure of the body's: `KeyboardInterrupt` is raised.
    """
    if run.task.isolated:
        return _in_process(run)
    if not run.task.is_coroutine:
        outcome = perform(run)
        if isinstance(outcome, Failed | Again) and outcome.failure.type == "KeyboardInterrupt":
            raise KeyboardInterrupt
        return outcome
    return _outside_of_loops(run)


def _in_process(run: Run) -> Outcome:
    child = Child()
    try:
        return child.perform(run)
    finally:
        child.kill()


def _outside_of_loops(run: Run) -> Outcome:
    """A coroutine's body needs a loop of its own, which a thread that runs one already cannot have."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="rota-inline") as pool:
            return pool.submit(_in_loop, run).result()
    return _in_loop(run)


def _in_loop(run: Run) -> Outcome:
    import asyncio

    outcomes: list[Outcome] = []

    async def live() -> None:
        task = asyncio.current_task()
        assert task is not None
        run.cancel = task.cancel
        if run.task.timeout is not None:
            asyncio.get_running_loop().call_later(run.task.timeout / SECOND, run.interrupt, TIMED_OUT)
        outcomes.append(await aperform(run))
        if run.stop is None and task.cancelling():
            raise asyncio.CancelledError  # where Ctrl+C was the cause, `asyncio.run` makes it a KeyboardInterrupt again

    with suppress(asyncio.CancelledError):
        asyncio.run(live())
    return outcomes[0]


def _worker(queues: Sequence[str] | None, tasks: Tasks) -> WorkerRow:
    from rota import __version__

    return WorkerRow(
        id=new_id(),
        name="inline",
        host=socket.gethostname(),
        pid=os.getpid(),
        queues=None if queues is None else list(queues),
        tasks=sorted(tasks),
        concurrency=1,
        lease=LEASE,
        version=__version__,
    )
