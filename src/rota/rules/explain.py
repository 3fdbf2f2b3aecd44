"""Why a job is where it is, in sentences, from what the store knows."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct

from rota.clock import SECOND, Micros, at
from rota.model import JobRow, PauseRow, State, WorkerRow

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.rules.rooms import Room

_NAMED = 10
"""So many of the jobs that fill a room are named in the sentences."""


class Explanation(Struct, frozen=True):
    """Why a job is not running, or where it runs, or how it ended. Its `str` has the sentences, one a line."""

    id: str
    task: str
    queue: str
    status: State
    due: Micros
    """When it became or becomes due."""
    sentences: list[str]
    room: Room | None = None
    """The room of the limit that holds it, or, where it is queued, that is full and would."""
    holders: list[str] = []
    """The ids of jobs that run in that room, as far as they are known here."""
    ahead: int | None = None
    """How many queued jobs of its queue come before it; `None` where it is not queued, or there are too many to look at."""
    pause: PauseRow | None = None
    """The pause of its queue, where it is unfinished and does not run."""

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def explain(
    job: JobRow,
    now: Micros,
    workers: Sequence[WorkerRow] = (),
    room: Room | None = None,
    holders: Sequence[str] = (),
    ahead: int | None = None,
    pause: PauseRow | None = None,
) -> Explanation:
    """The explanation of a job, from what the store has of it, the workers, the full room that holds it or would, and the
    pause of its queue."""
    said = [each for each in _sentences(job, now, workers, room, holders, ahead, pause) if each]
    return Explanation(job.id, job.task, job.queue, job.state, job.due, said, room, list(holders), ahead, pause)


def _sentences(
    job: JobRow,
    now: Micros,
    workers: Sequence[WorkerRow],
    room: Room | None,
    holders: Sequence[str],
    ahead: int | None,
    pause: PauseRow | None,
) -> list[str]:
    paused = "" if pause is None else _paused(pause, now)
    match job.state:
        case State.SCHEDULED:
            return [_due(job, now), _last(job), paused, _unserved(job, now, workers)]
        case State.QUEUED:
            trouble = _unserved(job, now, workers)
            full = _full(job, now, room, holders) if room is not None and room.full else []
            return [_waiting(job, now), _last(job), paused, *full, trouble or ("" if paused else _before(ahead))]
        case State.HELD:
            return [_waiting(job, now), paused, *_full(job, now, room, holders), _last(job), _unserved(job, now, workers)]
        case State.RUNNING:
            return [_running(job, now, workers), "It was asked to stop." if job.cancelling else ""]
        case State.FAILED:
            return [_finished(job, now), f"With rota jobs retry {job.id} it runs again, once what was wrong is mended."]
        case State.SUCCEEDED | State.CANCELLED:
            return [_finished(job, now)]
        case _:
            assert_never(job.state)


def _due(job: JobRow, now: Micros) -> str:
    if job.due > now:
        return f"It is due at {_moment(job.due)}, in {_span(job.due - now)}."
    return f"It became due {_span(now - job.due)} ago, at {_moment(job.due)}: the next worker that looks queues it."


def _waiting(job: JobRow, now: Micros) -> str:
    return f"It has been due for {_span(max(0, now - job.due))}, since {_moment(job.due)}."


def _last(job: JobRow) -> str:
    """What became of it when a worker last had it, where one had."""
    if job.reason is None:
        return ""
    if not job.attempt:
        return f"A worker handed it back: {job.reason}."
    return f"Its last run ended so: {job.reason} (attempts so far: {job.attempt} of {job.max_attempts})."


def _paused(pause: PauseRow, now: Micros) -> str:
    who = f" by {pause.by}" if pause.by else ""
    said = f"Queue {pause.queue!r} has been paused{who} for {_span(max(0, now - pause.at))}"
    if pause.until is not None:
        return f"{said}, until {_moment(pause.until)}, for another {_span(max(0, pause.until - now))}."
    return f"{said}: let it go on with rota queues resume {quote(pause.queue)}."


def _before(ahead: int | None) -> str:
    if ahead is None:
        return "It waits for a free slot of a worker, among many others of its queue."
    if ahead == 0:
        return "It is the next of its queue, and waits for a free slot of a worker."
    return f"It waits for a free slot of a worker behind {_jobs(ahead)} of its queue, with more priority or due before it."


def _unserved(job: JobRow, now: Micros, workers: Sequence[WorkerRow]) -> str:
    """Why no worker would take it, where none would."""
    live = [worker for worker in workers if worker.lease_until > now]
    if not live:
        return "No worker is alive: start one with rota worker."
    serving = [worker for worker in live if worker.queues is None or job.queue in worker.queues]
    if not serving:
        return f"No live worker serves queue {job.queue!r}: start one with --queues {quote(job.queue)}."
    if not any(job.task in worker.tasks for worker in serving):
        return f"No live worker of its queue knows task {job.task!r}: deploy its code, or delete the job."
    return ""


def _full(job: JobRow, now: Micros, room: Room | None, holders: Sequence[str]) -> list[str]:
    if room is None:
        return ["A limit holds it."]
    name = f"Limit {room.name!r}" + (f" has no room for key {room.key}" if room.key else " has no room")
    others = f"It holds {_jobs(room.held)}." if room.held > (job.state is State.HELD) else ""
    until = "" if room.opens_at is None else f"until {_moment(room.opens_at)}, for another {_span(room.opens_at - now)}"
    if room.closed_until is not None:
        return [f"{name} {until or 'now'}: a job reported that a limit of somebody else was met.", others]
    if room.size is None:
        return [f"{name.replace('has no', 'had no')}. Which size it has is known where the code of its task is.", others]
    if not room.full:
        return [f"{name.replace('has no', 'had no')}, and has some by now: the next worker that looks queues it.", others]
    if until:
        return [f"{name} {until}: starts under {room.size} are evenly spaced.", others]
    return [f"{name}: {room.running} of {room.size} run{_who(holders)}.", others]


def _who(holders: Sequence[str]) -> str:
    if not holders:
        return ""
    more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
    return f", {', '.join(holders[:_NAMED])}{more}"


def _running(job: JobRow, now: Micros, workers: Sequence[WorkerRow]) -> str:
    since = "" if job.claimed_at is None else f"for {_span(max(0, now - job.claimed_at))} "
    said = f"It has been running {since}on {{}}, attempt {job.attempt} of {job.max_attempts}."
    worker = next((worker for worker in workers if worker.id == job.worker), None)
    if worker is None:
        return said.format(f"worker {job.worker}")
    said = said.format(f"worker {worker.name} ({worker.id})")
    if worker.lease_until > now:
        return said
    late = _span(now - worker.lease_until)
    return f"{said} The lease of that worker ran out {late} ago: any other worker takes the job back."


def _finished(job: JobRow, now: Micros) -> str:
    when = "" if job.finished_at is None else f" {_span(max(0, now - job.finished_at))} ago, at {_moment(job.finished_at)}"
    attempt = f", on attempt {job.attempt} of {job.max_attempts}" if job.attempt else ""
    ran = "" if job.took is None else f", after {_took(job.took)}"
    reason = "" if job.reason is None or job.state is State.SUCCEEDED else f": {job.reason}"
    verb = "was cancelled" if job.state is State.CANCELLED else str(job.state)
    return f"It {verb}{when}{attempt}{ran}{reason}."


def _moment(micros: Micros) -> str:
    return at(micros).isoformat(sep=" ", timespec="seconds")


def _span(micros: Micros) -> str:
    """
    >>> _span(4_200_000), _span(61_000_000), _span(7_300_000_000)
    ('4.2 s', '61 s', '2 h 2 min')
    """
    seconds = micros / SECOND
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} days {minutes % 1440 // 60} h"


def _took(micros: Micros) -> str:
    return f"{micros / 1000:.3g} ms" if micros < SECOND else f"{micros / SECOND:.3g} s"


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
