"""Finding out why a job is not running: what the store has of it, of the workers, and of the limit that holds it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rota.clock import Micros
from rota.errors import ArgumentsError
from rota.model import Filter, JobRow, State
from rota.queues import in_force
from rota.rules.explain import Explanation, explain
from rota.stores.base import Store

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.limiting import Limiting
    from rota.rules.rooms import Room

_LOOKED_AT = 1_000
"""Where a queue or a task has more jobs in the state that matters than this, they are not looked through."""


def explanation(store: Store, limiting: Limiting | None, job: JobRow, now: Micros | None) -> Explanation:
    """Why this job is where it is, by a few reads."""
    moment = store.vitals().now if now is None else now
    if job.state.final:
        return explain(job, moment)
    room = _room(store, limiting, job, now) if job.state in (State.HELD, State.QUEUED) else None
    holders = [] if room is None or not room.running else _holders(store, limiting, job, room)
    ahead = _ahead(store, job) if job.state is State.QUEUED else None
    pauses = [] if job.state is State.RUNNING else in_force(store.pauses(), moment)
    pause = next((pause for pause in pauses if pause.queue == job.queue), None)
    return explain(job, moment, store.workers(), room, holders, ahead, pause)


def _room(store: Store, limiting: Limiting | None, job: JobRow, now: Micros | None) -> Room | None:
    """The room that holds the job; of a queued one, the first of its rooms that is full."""
    wanted = [job.held_by] if job.state is State.HELD else [] if limiting is None else _rooms_of(limiting, job)
    if not wanted:
        return None
    from rota.rooms import rooms

    known = {(room.name, room.key): room for room in rooms(store, limiting, now)}
    found = [known[each] for each in wanted if each is not None and each in known]
    return next((room for room in found if room.full or job.state is State.HELD), None)


def _holders(store: Store, limiting: Limiting | None, job: JobRow, room: Room) -> list[str]:
    """The running jobs in the room, the first to be claimed first.

    Which they are is known where the tasks' code is. Without it they are for a limit that has the task's name and no keys.
    """
    here = (room.name, room.key)
    tasks = [] if limiting is None else limiting.tasks_of(room.name)
    inside: Callable[[JobRow], bool] = lambda other: limiting is not None and here in _rooms_of(limiting, other)  # noqa: E731
    if not tasks and not room.key and room.name.endswith(f" of {job.task}"):
        tasks, inside = [job.task], lambda other: True
    running = [row for task in tasks for row in store.find(Filter((State.RUNNING,), task=task), _LOOKED_AT) if inside(row)]
    return [row.id for row in sorted(running, key=lambda row: (row.claimed_at or 0, row.id))]


def _rooms_of(limiting: Limiting, job: JobRow) -> list[tuple[str, str]]:
    with suppress(ArgumentsError):  # a job without a key is in no room
        return [(room.limit, room.key) for room in limiting.rooms(job.task, job.args)]
    return []


def _ahead(store: Store, job: JobRow) -> int | None:
    queued = store.find(Filter((State.QUEUED,), queue=job.queue), _LOOKED_AT)
    if len(queued) == _LOOKED_AT:
        return None
    return sum((-other.priority, other.due, other.id) < (-job.priority, job.due, job.id) for other in queued)
