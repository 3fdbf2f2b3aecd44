"""Jobs worked right here, without a worker process: one at a chosen moment, all that are due, or at the call (`eager`)."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from rota.attempt import Run, perform_here
from rota.clock import SECOND, Micros
from rota.events import Event, ended, tell
from rota.ids import new_id
from rota.isolation import Child
from rota.model import (
    Again,
    Ask,
    Cancelled,
    Claimed,
    Ended,
    Failed,
    Failure,
    JobRow,
    NewJob,
    Outcome,
    Released,
    Snoozed,
    State,
    Succeeded,
    WorkerRow,
)
from rota.rules.decide import Raised, decide, no_performer
from rota.rules.retry import Polynomial
from rota.stores.base import Store
from rota.task import Task

Tasks = Mapping[str, Task[..., Any, Any]]
LEASE: Micros = 300 * SECOND
"""Nothing beats while a body runs here, so the lease is the guide's five minutes: a longer body may be run a second time."""
_STEP = 500


def run_one(
    store: Store, tasks: Tasks, queues: Sequence[str] | None, kept: frozenset[State], now: Micros | None
) -> Event | None:
    """Claim and run the first due job of these queues (`None`: all) and say what happened, or `None` when nothing is due.

    A job whose task nobody registered fails as the guide has it, by the default retry policy.
    """
    worker = _worker(queues, tasks)
    store.join(worker, now)
    try:
        return _step(store, tasks, worker.id, queues, kept, now)
    finally:
        store.leave(worker.id, now)


def drain(store: Store, tasks: Tasks, queues: Sequence[str] | None, kept: frozenset[State], now: Micros | None) -> list[Event]:
    """Run due jobs one after the other until none is left, those that they enqueue included."""
    worker = _worker(queues, tasks)
    store.join(worker, now)
    try:
        happened = []
        while (event := _step(store, tasks, worker.id, queues, kept, now)) is not None:
            happened.append(event)
            store.beat(worker.id, [], now)
        return happened
    finally:
        store.leave(worker.id, now)


def run_eagerly(new: NewJob, task: Task[..., Any, Any], now: Micros) -> JobRow:
    """Run a job at its enqueue, once, without the store, and answer its row. Delays and retries are not waited for."""
    claimed = Claimed(new.id, new.task, new.queue, new.args, 1, 0, new.max_attempts, new.priority, now, new.key)
    run = Run(claimed, task)
    outcome = _perform(run)
    event = ended(claimed, Ended(claimed.id, 1, outcome, run.took))
    tell([event])
    state = State.SUCCEEDED if isinstance(outcome, Succeeded) else State.FAILED
    result = outcome.result if isinstance(outcome, Succeeded) else None
    return JobRow(
        id=new.id,
        task=new.task,
        queue=new.queue,
        state=state,
        priority=new.priority,
        due=now,
        created_at=now,
        claim=1,
        excused=0,
        max_attempts=new.max_attempts,
        args=new.args,
        key=new.key,
        claimed_at=now,
        finished_at=now,
        took=run.took,
        result=result,
        reason=event.reason,
    )


def keeps(outcome: Outcome, kept: frozenset[State]) -> bool:
    """Whether a job with this outcome stays in the history."""
    match outcome:
        case Succeeded():
            return State.SUCCEEDED in kept
        case Failed():
            return State.FAILED in kept
        case Cancelled():
            return State.CANCELLED in kept
        case Again() | Snoozed() | Released():
            return True


def _step(
    store: Store, tasks: Tasks, worker: str, queues: Sequence[str] | None, kept: frozenset[State], now: Micros | None
) -> Event | None:
    tell_lost(store, now)
    while store.promote(_STEP, now).count == _STEP:
        pass
    names = tuple(store.queues() if queues is None else queues)
    job = _claim_due(store, Ask(worker, names, 1), now) if names else None
    if job is None:
        return None
    task = tasks.get(job.task)
    if task is None:
        reason = no_performer(job.task)
        outcome = decide(Raised(LookupError(reason), Failure("UnknownTask", reason)), job, Polynomial(), 0.0)
        took = 0
    else:
        run = Run(job, task, worker)
        outcome = _perform(run)
        took = run.took
    end = Ended(job.id, job.claim, outcome, took, keeps(outcome, kept))
    store.finish(worker, [end], None, now)
    event = ended(job, end)
    tell([event])
    return event


def _claim_due(store: Store, ask: Ask, now: Micros | None) -> Claimed | None:
    """The first job that is due at the chosen moment. Where that lies in the past, what became due since is scheduled anew."""
    while claimed := store.claim(ask, now):
        (job,) = claimed
        if now is None or job.due <= now:
            return job
        store.finish(ask.worker, [Ended(job.id, job.claim, Released("it is not due yet", job.due - now))], None, now)
    return None


def tell_lost(store: Store, now: Micros | None) -> Micros | None:
    """Take back the jobs of lost workers, tell of each, and answer how long until the next lease runs out."""
    from rota.events import lost

    while True:
        reaped = store.lost(_STEP, now)
        tell([lost(job) for job in reaped.lost])
        if len(reaped.lost) < _STEP:
            return reaped.next_in


def _perform(run: Run) -> Outcome:
    """Run the body in this thread, or in a process of its own when it is isolated."""
    if not run.task.isolated:
        return _outside_of_loops(run)
    child = Child()
    try:
        return child.perform(run)
    finally:
        child.kill()


def _outside_of_loops(run: Run) -> Outcome:
    """A coroutine's body needs a loop of its own, which a thread that runs one already cannot have."""
    import sys

    asyncio = sys.modules.get("asyncio")
    if run.task.is_coroutine and asyncio is not None and asyncio._get_running_loop() is not None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="rota-inline") as pool:
            return pool.submit(perform_here, run).result()
    return perform_here(run)


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
