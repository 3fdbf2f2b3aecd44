"""Jobs worked right here, without a worker process: one at a chosen moment, or all that are due."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rota.aftermath import Aftermath, Restore
from rota.attempt import TIMED_OUT, Run, aperform, perform, refused
from rota.block import Block
from rota.clock import SECOND, Micros
from rota.events import Event, ended, lost, tell, tell_overruled
from rota.hooks import Hooks
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
    Places,
    Released,
    Report,
    State,
    Succeeded,
    WorkerRow,
)
from rota.operate import free_held
from rota.rules.decide import Raised, decide, keeps, no_performer
from rota.rules.retry import Polynomial
from rota.stores.base import Store
from rota.stores.finishing import settle
from rota.task import Task

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.limiting import Limiting

Tasks = Mapping[str, Task[..., Any, Any]]
LEASE: Micros = 300 * SECOND
"""Nothing beats while a body runs here, so the lease is the guide's five minutes: a longer body may be run a second time."""
INTERRUPTED = Released("interrupted from the keyboard")
_STEP = 500
_NO_PLACES: Mapping[str, Places] = {}
_PATIENCE = 0.5
"""Seconds that a transaction in which a body finished its job has to end after the body; a driver may be a little behind."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Which moment counts for what. As everywhere, `None` is the store's own clock."""

    present: Callable[[], Micros | None]
    """The app's clock. Leases are judged by it alone: nobody is lost because of a moment that someone chose."""
    chosen: Micros | None = None

    def due(self) -> Micros | None:
        """The moment by which jobs are due, and at which they are said to run."""
        return self.present() if self.chosen is None else self.chosen


@dataclass(frozen=True, slots=True)
class Work:
    """Which jobs to work, by whose code, and when."""

    store: Store
    tasks: Tasks
    queues: Sequence[str] | None
    """`None` for all."""
    kept: frozenset[State]
    """The states whose jobs stay in the history."""
    moments: Moments
    hooks: Hooks
    limiting: Limiting | None = None
    restore: Restore = None


def run_one(work: Work) -> Event | None:
    """Claim and run the first due job of these queues and say what happened, or `None` when nothing is due.

    A job whose task nobody registered fails as the guide has it, by the default retry policy.
    """
    # Bodies are in no block, as in a worker.
    with Block.none(), _joined(work) as worker, Aftermath(work.hooks, work.restore) as after:
        return _step(work, worker, after)


def drain(work: Work) -> list[Event]:
    """Run due jobs one after the other until none is left, those that they enqueue included."""
    happened = []
    with Block.none(), _joined(work) as worker, Aftermath(work.hooks, work.restore) as after:
        while (event := _step(work, worker, after)) is not None:
            happened.append(event)
            work.store.beat(worker, [], work.moments.present())
    return happened


@contextmanager
def _joined(work: Work) -> Iterator[str]:
    """The id of a worker that the store knows until the end of the block."""
    if work.limiting is not None:
        work.limiting.check_store(work.store)
    worker = _worker(work.queues, work.tasks)
    work.store.join(worker, work.moments.present())
    try:
        if work.limiting is None:
            free_held(work.store, worker.id, work.moments.due())
        yield worker.id
    finally:
        work.store.leave(worker.id, work.moments.due())


def _step(work: Work, worker: str, after: Aftermath) -> Event | None:
    store, moments = work.store, work.moments
    _take_back_lost(store, moments.present(), after)
    while store.promote(_STEP, moments.due()).count == _STEP:
        pass
    taken = _first(work, worker)
    if taken is None:
        return None
    job, places = taken
    run, outcome = _attempt(work, worker, job)
    closes, closes_for = ((), 0) if work.limiting is None else work.limiting.closes(job, outcome)
    end = Ended(job.id, job.claim, outcome, run.took, keeps(outcome, work.kept), places, closes, closes_for)
    if run.finishing:
        end, counts = _finished_within(work, worker, run, end)
    else:
        counts = job.id in store.finish(worker, [end], None, moments.due()).counted
    event = ended(job, end)
    tell([event])
    if outcome is INTERRUPTED:
        raise KeyboardInterrupt
    if counts:
        after.ended(run, end.outcome)
    return event


def _finished_within(work: Work, worker: str, run: Run, end: Ended) -> tuple[Ended, bool]:
    """What became of a job that its body finished within a transaction of its own, and whether that counts.

    One that is still open is the caller's, perhaps, who commits it later: it is believed to be.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        settled = settle(work.store, worker, [end], work.moments.due())
        if end.id not in settled.open or time.monotonic() > until:
            break
        time.sleep(0.01)
    if end.id in settled.counted or not settled.done | settled.open:
        return end, bool(settled.counted)
    tell_overruled(run.job, end.outcome)
    return replace(end, outcome=Succeeded(run.result)), True


def _attempt(work: Work, worker: str, job: Claimed) -> tuple[Run, Outcome]:
    task = work.tasks.get(job.task)
    if task is None:
        reason = no_performer(job.task)
        end = Raised(LookupError(reason), Failure("UnknownTask", reason))
        return Run.unknown(job, worker), decide(end, job, Polynomial(), 0.0)
    run = Run(job, task, worker)
    bad = None if work.limiting is None else work.limiting.bad.pop(job.id, None)
    if bad is not None:
        return run, refused(run, bad)
    try:
        outcome = perform_inline(run)
    except KeyboardInterrupt:
        outcome = INTERRUPTED
    if run.progress is not None:
        work.store.beat(worker, [Report(job.id, job.claim, run.progress)], work.moments.present())
    return run, outcome


def _first(work: Work, worker: str) -> tuple[Claimed, Places] | None:
    """The first due job of the queues that are not paused, and whether it took a place of a limit."""
    paused = work.store.paused(work.moments.due()).queues
    if work.limiting is not None and work.queues is None:
        # What has room by now is queued before it is looked which queues there are.
        for _ in range(_STEP):
            if not work.store.admit(Ask(worker, (), 0), work.limiting, work.moments.due()).more:
                break
    names = tuple(name for name in (work.store.queues() if work.queues is None else work.queues) if name not in paused)
    taken = _claim_due(work, Ask(worker, names, 1, 1)) if names or work.limiting else None
    while taken is None and work.limiting is not None and work.queues is None:
        # That look may have queued what a limit held until now, under queues that had no queued job before it.
        more = tuple(set(work.store.queues()).difference(names, paused))
        if not more:
            break
        names += more
        taken = _claim_due(work, Ask(worker, names, 1, 1))
    return taken


def _claim_due(work: Work, ask: Ask) -> tuple[Claimed, Places] | None:
    """The first job that is due at the chosen moment, and the places of limits that it took.

    Where that moment lies in the past, what became due since is scheduled anew.
    """
    now = work.moments.due()
    while taken := _claim(work, ask, now):
        job, places = taken
        if now is None or job.due <= now:
            return taken
        released = Ended(job.id, job.claim, Released("it is not due yet", job.due - now), places=places)
        work.store.finish(ask.worker, [released], None, now)
    return None


def _claim(work: Work, ask: Ask, now: Micros | None) -> tuple[Claimed, Places] | None:
    if work.limiting is None:
        claimed, places = work.store.claim(ask, now), _NO_PLACES
    else:
        more = True
        while more:
            found = work.store.admit(ask, work.limiting, now)
            claimed, places, more = found.claimed, found.places, found.more and not found.claimed
    return (claimed[0], places.get(claimed[0].id, ())) if claimed else None


def _take_back_lost(store: Store, now: Micros | None, after: Aftermath) -> None:
    """Take back the jobs of lost workers, and tell of each."""
    full = True
    while full:
        lost_jobs = store.lost(_STEP, now).lost
        tell([lost(job) for job in lost_jobs])
        after.lost(lost_jobs, store.get)
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
