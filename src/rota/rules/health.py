"""What is wrong with a deployment, judged from what its store holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from shlex import quote

from msgspec import Struct

from rota.clock import SECOND, Micros
from rota.model import Count, PauseRow, State, WorkerRow

_DUE = frozenset({State.QUEUED, State.HELD})
_NAMED = 10
"""So many are named of many."""
_REMEMBERED: Micros = 600 * SECOND
"""For so long after a worker was started again it is told that the one before it fell."""


_DEPLOY: Micros = 3600 * SECOND
"""A deploy may take as long as this."""


class Trouble(StrEnum):
    """The kinds of problem that `check` knows."""

    LEASE = "lease"
    """A worker's lease ran out and nobody took its jobs back."""
    UNKNOWN_TASK = "unknown-task"
    """Jobs wait whose task no live worker of their queue registers."""
    UNSERVED_QUEUE = "unserved-queue"
    """Jobs wait under a queue that no live worker serves."""
    FALLEN = "fallen"
    """A worker beside a program fell: it is down until the next try, or was started again a short while ago."""
    WAITING = "waiting"
    """A due job has waited for longer than allowed."""
    PAUSED = "paused"
    """A queue has been paused for longer than allowed."""
    VERSIONS = "versions"
    """Workers of different versions of Rota have been at work side by side for longer than a deploy takes."""
    STORE = "store"
    """The store itself warns."""


class Problem(Struct, frozen=True):
    """One thing that someone should look at."""

    trouble: Trouble
    text: str
    jobs: int = 0
    """How many jobs it concerns at the most."""


def problems(
    counts: Sequence[Count],
    workers: Sequence[WorkerRow],
    running: Mapping[str, int],
    warnings: Sequence[str],
    max_wait: Micros | None,
    now: Micros,
    pauses: Sequence[PauseRow] = (),
    max_pause: Micros | None = None,
) -> list[Problem]:
    """Every problem there is, the gravest kind first. `running` says how many jobs a worker whose lease ran out still has.

    That jobs of a paused queue wait is no problem.
    """
    paused = {pause.queue: pause for pause in pauses if pause.until is None or pause.until > now}
    set_aside = [count for count in counts if count.queue in paused]
    counts = [count for count in counts if count.queue not in paused]
    heard = [worker for worker in workers if worker.lease_until > now]
    live = [worker for worker in heard if not worker.fallen]
    waiting = due(counts, now)
    found = _past_lease([worker for worker in late(workers, now) if running.get(worker.id)], running, now)
    found += _fallen(heard, now)
    found += _unserved(waiting, live)
    # A job of an unknown task is handed back again and again, so between looks it is scheduled.
    found += _unknown([count for count in counts if count.state in _DUE or count.state is State.SCHEDULED], live)
    if max_wait is not None:
        found += _overdue(waiting, max_wait, now)
    if max_pause is not None:
        found += _forgotten(paused.values(), due(set_aside, now), max_pause, now)
    found += _side_by_side(live, now)
    return found + [Problem(Trouble.STORE, warning) for warning in warnings]


def due(counts: Sequence[Count], now: Micros) -> list[Count]:
    """The counts of jobs that wait to be run. Where no worker promotes, jobs whose time has come are still scheduled."""
    return [count for count in counts if count.state in _DUE or (count.state is State.SCHEDULED and count.oldest <= now)]


def late(workers: Sequence[WorkerRow], now: Micros) -> list[WorkerRow]:
    """The workers whose lease ran out."""
    return [worker for worker in workers if worker.lease_until <= now]


def _several(names: Sequence[str]) -> str:
    """
    >>> _several(["a", "b"]), _several([str(number) for number in range(60)])
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 50 others')
    """
    others = len(names) - _NAMED
    return ", ".join(names) if others <= 1 else f"{', '.join(names[:_NAMED])} and {others} others"


def _past_lease(late: Sequence[WorkerRow], running: Mapping[str, int], now: Micros) -> list[Problem]:
    if not late:
        return []
    names = _several([f"{worker.name} ({(now - worker.lease_until) / SECOND:.0f} s ago)" for worker in late])
    jobs = sum(running[worker.id] for worker in late)
    return [Problem(Trouble.LEASE, f"leases ran out and no worker took their jobs back: {names}; start a worker", jobs)]


def _fallen(workers: Sequence[WorkerRow], now: Micros) -> list[Problem]:
    found = []
    for worker in workers:
        if worker.trouble is None or (not worker.fallen and now - worker.started_at >= _REMEMBERED):
            continue
        since = "it is down until it is started again" if worker.fallen else "it was started again"
        found.append(
            Problem(Trouble.FALLEN, f"the worker beside {worker.name} fell ({worker.trouble}); {since}: see the log there")
        )
    return found


def _unserved(waiting: Sequence[Count], live: Sequence[WorkerRow]) -> list[Problem]:
    if any(worker.queues is None for worker in live):
        return []
    if waiting and not live:
        names = _several(sorted({repr(count.queue) for count in waiting}))
        text = f"no worker is alive, and jobs wait on {names}: start one with rota worker"
        return [Problem(Trouble.UNSERVED_QUEUE, text, sum(count.jobs for count in waiting))]
    served = {queue for worker in live for queue in worker.queues or ()}
    jobs: dict[str, int] = {}
    for count in waiting:
        if count.queue not in served:
            jobs[count.queue] = jobs.get(count.queue, 0) + count.jobs
    return [
        Problem(
            Trouble.UNSERVED_QUEUE, f"no live worker serves queue {queue!r}: start one with --queues {quote(queue)}", number
        )
        for queue, number in sorted(jobs.items())
    ]


def _unknown(unfinished: Sequence[Count], live: Sequence[WorkerRow]) -> list[Problem]:
    jobs: dict[str, int] = {}
    for count in unfinished:
        serving = [worker for worker in live if worker.queues is None or count.queue in worker.queues]
        # Where nobody serves the queue, that is the trouble, and it is told already.
        if serving and not any(count.task in worker.tasks for worker in serving):
            jobs[count.task] = jobs.get(count.task, 0) + count.jobs
    return [
        Problem(
            Trouble.UNKNOWN_TASK,
            f"no live worker of its queue knows task {task!r}: deploy its code or delete its jobs",
            number,
        )
        for task, number in sorted(jobs.items())
    ]


def _side_by_side(live: Sequence[WorkerRow], now: Micros) -> list[Problem]:
    """Older workers do not heed what is new, so somebody should know that one was forgotten."""
    of_version: dict[str, list[WorkerRow]] = {}
    for worker in live:
        of_version.setdefault(worker.version, []).append(worker)
    since = max((min(worker.started_at for worker in workers) for workers in of_version.values()), default=now)
    if len(of_version) < 2 or now - since < _DEPLOY:
        return []
    who = "; ".join(
        f"{version}: {_several(sorted(worker.name for worker in of_version[version]))}" for version in sorted(of_version)
    )
    text = f"workers of several versions of Rota have run side by side for more than an hour, so restart the older ones ({who})"
    return [Problem(Trouble.VERSIONS, text)]


def _forgotten(pauses: Iterable[PauseRow], waiting: Sequence[Count], max_pause: Micros, now: Micros) -> list[Problem]:
    found = []
    for pause in pauses:
        lasted = now - pause.at
        if lasted > max_pause:
            who = f" by {pause.by}" if pause.by else ""
            text = (
                f"queue {pause.queue!r} was paused{who} {lasted / SECOND:.0f} s ago, longer than {max_pause / SECOND:g} s: "
                f"let it go on with rota queues resume {quote(pause.queue)}"
            )
            found.append(Problem(Trouble.PAUSED, text, sum(count.jobs for count in waiting if count.queue == pause.queue)))
    return found


def _overdue(waiting: Sequence[Count], max_wait: Micros, now: Micros) -> list[Problem]:
    found = []
    for count in waiting:
        waited = now - count.oldest
        if waited > max_wait:
            held = count.state is State.HELD
            text = (
                f"{count.task} on queue {count.queue!r} has {'been held' if held else 'waited'} for {waited / SECOND:.0f} s, "
                f"longer than {max_wait / SECOND:g} s: "
                f"{'its limit lets no more through, see rota limits' if held else 'add workers or look at what they do'}"
            )
            found.append(Problem(Trouble.WAITING, text, count.jobs))
    return found
