"""What is wrong with a deployment, judged from what its store holds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.model import Count, State, WorkerRow

_WAITING = frozenset({State.QUEUED, State.HELD})


class Trouble(StrEnum):
    """The kinds of problem that `check` knows."""

    LEASE = "lease"
    """A worker's lease ran out and nobody took its jobs back."""
    UNKNOWN_TASK = "unknown-task"
    """Jobs wait whose task no live worker registers."""
    UNSERVED_QUEUE = "unserved-queue"
    """Jobs wait under a queue that no live worker serves."""
    WAITING = "waiting"
    """A due job has waited for longer than allowed."""
    STORE = "store"
    """The store itself warns."""


class Problem(Struct, frozen=True):
    """One thing that someone should look at."""

    trouble: Trouble
    text: str
    jobs: int = 0


def problems(
    counts: Sequence[Count], workers: Sequence[WorkerRow], warnings: Sequence[str], max_wait: Micros | None, now: Micros
) -> list[Problem]:
    """Every problem there is, the gravest kind first."""
    live = [worker for worker in workers if worker.lease_until > now]
    waiting = [count for count in counts if count.state in _WAITING]
    found = _past_lease(counts, workers, now)
    found += _unserved(waiting, live)
    # A job of an unknown task is handed back again and again, so between looks it is scheduled.
    found += _unknown([count for count in counts if count.state in _WAITING or count.state is State.SCHEDULED], live)
    if max_wait is not None:
        found += _overdue(waiting, max_wait, now)
    return found + [Problem(Trouble.STORE, warning) for warning in warnings]


def _past_lease(counts: Sequence[Count], workers: Sequence[WorkerRow], now: Micros) -> list[Problem]:
    late = [worker for worker in workers if worker.lease_until <= now]
    running = sum(count.jobs for count in counts if count.state is State.RUNNING)
    if not late or not running:
        return []
    names = ", ".join(f"{worker.name} ({(now - worker.lease_until) / SECOND:.0f} s ago)" for worker in late)
    return [Problem(Trouble.LEASE, f"leases ran out and no worker took their jobs back: {names}; start a worker", running)]


def _unserved(waiting: Sequence[Count], live: Sequence[WorkerRow]) -> list[Problem]:
    if any(worker.queues is None for worker in live):
        return []
    served = {queue for worker in live for queue in worker.queues or ()}
    jobs: dict[str, int] = {}
    for count in waiting:
        if count.queue not in served:
            jobs[count.queue] = jobs.get(count.queue, 0) + count.jobs
    return [
        Problem(Trouble.UNSERVED_QUEUE, f"no live worker serves queue {queue!r}: start one with --queues {queue}", number)
        for queue, number in sorted(jobs.items())
    ]


def _unknown(unfinished: Sequence[Count], live: Sequence[WorkerRow]) -> list[Problem]:
    if not live:
        return []  # nothing is served at all, which is told already
    known = {task for worker in live for task in worker.tasks}
    jobs: dict[str, int] = {}
    for count in unfinished:
        if count.task not in known:
            jobs[count.task] = jobs.get(count.task, 0) + count.jobs
    return [
        Problem(Trouble.UNKNOWN_TASK, f"no live worker registers task {task!r}: deploy its code or delete its jobs", number)
        for task, number in sorted(jobs.items())
    ]


def _overdue(waiting: Sequence[Count], max_wait: Micros, now: Micros) -> list[Problem]:
    found = []
    for count in waiting:
        waited = now - count.oldest
        if waited > max_wait:
            text = (
                f"{count.task} on queue {count.queue!r} has waited for {waited / SECOND:.0f} s, "
                f"longer than {max_wait / SECOND:g} s: add workers or look at what they do"
            )
            found.append(Problem(Trouble.WAITING, text, count.jobs))
    return found
