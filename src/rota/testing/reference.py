"""What a store does to jobs, in plain Python: slow, unsafe and easy to check by eye. Real stores are compared with it.

It follows the promises of `rota.stores.base` alone. Where they leave a choice to the store (which of many jobs a limit
takes, where in the queue a job comes back), it is told what the store chose and says whether it was free to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rota.clock import Micros
from rota.model import (
    FINAL,
    MOVES,
    Again,
    Ask,
    Cancelled,
    Changed,
    Edit,
    Ended,
    Failed,
    Inserted,
    Move,
    NewJob,
    Paused,
    Released,
    Snoozed,
    State,
    Succeeded,
)


@dataclass
class Job:
    """A job as the reference knows it."""

    id: str
    task: str
    queue: str
    priority: int
    due: Micros
    max_attempts: int
    key: str | None
    key_waiting: bool
    state: State
    claim: int = 0
    excused: int = 0
    worker: str | None = None
    cancelling: bool = False
    finished_at: Micros | None = None
    claimed_by: str | None = None
    attempts: list[tuple[int, int, str | None]] = field(default_factory=list)
    """The claim, the attempt and the outcome of each attempt that did not succeed; `None` where it was cancelled on the way."""
    due_is_free: bool = False
    """Whether the store may choose where in the queue the job is, as long as it is due."""

    @property
    def attempt(self) -> int:
        return self.claim - self.excused

    @property
    def holds_key(self) -> bool:
        return self.key is not None and not self.state.final

    def place(self) -> tuple[int, Micros, str]:
        return (-self.priority, self.due, self.id)


class Reference:
    """Jobs and workers in two dictionaries."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.leases: dict[str, Micros] = {}
        self.pauses: dict[str, Micros | None] = {}
        """Until when each queue is paused."""

    # -- jobs come in ---------------------------------------------------------------------------

    def insert(self, jobs: Iterable[NewJob], now: Micros) -> list[Inserted]:
        return [self._insert_one(job, now) for job in jobs]

    def _insert_one(self, new: NewJob, now: Micros) -> Inserted:
        if new.id in self.jobs:
            return Inserted(new.id)
        if holder := self.holder(new.task, new.key):
            return Inserted(holder.id, existed=True)
        due = now + new.delay if new.run_at is None else new.run_at
        self.jobs[new.id] = Job(
            id=new.id,
            task=new.task,
            queue=new.queue,
            priority=new.priority,
            due=due,
            max_attempts=new.max_attempts,
            key=new.key,
            key_waiting=new.key_waiting,
            state=State.QUEUED if due <= now else State.SCHEDULED,
        )
        return Inserted(new.id)

    def holder(self, task: str, key: str | None) -> Job | None:
        """The job that has this key of this task now."""
        holders = [job for job in self.jobs.values() if job.holds_key and (job.task, job.key) == (task, key)]
        assert len(holders) <= 1, f"the key {key!r} is held by {len(holders)} jobs"
        return holders[0] if holders else None

    # -- workers --------------------------------------------------------------------------------

    def join(self, worker: str, lease: Micros, now: Micros) -> None:
        self.leases[worker] = now + lease

    def beat(self, worker: str, lease: Micros, now: Micros) -> bool:
        if worker not in self.leases:
            return False
        self.leases[worker] = now + lease
        return True

    def leave(self, worker: str, now: Micros) -> None:
        self.leases.pop(worker, None)
        self.reconcile(worker, (), now)

    def reconcile(self, worker: str, in_hand: Sequence[str], now: Micros) -> int:
        unheard = [job for job in self.claimed_by(worker) if job.id not in in_hand]
        for job in unheard:
            if job.cancelling:
                self._end(job, State.CANCELLED, now, None)
            else:
                self._put_back(job, "released", wait=0, now=now, excused=True)
        return len(unheard)

    def claimed_by(self, worker: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.worker == worker and job.state is State.RUNNING]

    def dead(self, now: Micros) -> list[str]:
        return [worker for worker, lease_until in self.leases.items() if lease_until <= now]

    def lose(self, id: str, now: Micros) -> State:
        """Take a job from a dead worker; the store chose which."""
        job = self.jobs[id]
        assert job.worker in self.dead(now), f"{id} is lost although {job.worker} lives"
        if job.cancelling:
            self._end(job, State.CANCELLED, now, None)
        elif job.attempt < job.max_attempts:
            self._put_back(job, "lost", wait=0, now=now, excused=False)
        else:
            self._end(job, State.FAILED, now, "lost")
        return job.state

    def forget_idle(self, now: Micros) -> None:
        for worker in self.dead(now):
            if not self.claimed_by(worker):
                del self.leases[worker]

    # -- the hot path ---------------------------------------------------------------------------

    def claim(self, ask: Ask) -> list[Job]:
        if ask.worker not in self.leases:
            return []
        ready = [job for job in self.jobs.values() if job.state is State.QUEUED and job.queue in ask.queues]
        taken = sorted(ready, key=Job.place)[: ask.limit]
        for job in taken:
            job.state = State.RUNNING
            job.claim += 1
            job.worker = job.claimed_by = ask.worker
            job.key = None if job.key_waiting else job.key
        return [replace(job) for job in taken]

    def finish(self, worker: str, ends: Sequence[Ended], now: Micros) -> set[str]:
        return {end.id for end in ends if self._finish_one(worker, end, now)}

    def _finish_one(self, worker: str, end: Ended, now: Micros) -> bool:
        job = self.jobs.get(end.id)
        if job is None or job.state is not State.RUNNING or (job.worker, job.claim) != (worker, end.claim):
            return False
        match end.outcome:
            case Succeeded():
                self._end(job, State.SUCCEEDED, now)
            case Failed():
                self._end(job, State.FAILED, now, "failed")
            case Cancelled():
                self._end(job, State.CANCELLED, now, "cancelled")
            case Again() | Snoozed() | Released() if job.cancelling:
                self._end(job, State.CANCELLED, now, None)
            case Again(wait=wait):
                self._put_back(job, "again", wait, now, excused=False)
            case Snoozed(wait=wait):
                self._put_back(job, "snoozed", wait, now, excused=True)
            case Released(wait=wait):
                self._put_back(job, "released", wait, now, excused=True)
        if not end.keep and isinstance(end.outcome, Succeeded | Failed | Cancelled):
            del self.jobs[job.id]
        return True

    def due_for_promotion(self, now: Micros) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state is State.SCHEDULED and job.due <= now]
        return sorted(waiting, key=lambda job: job.due)

    def next_due(self, now: Micros) -> Micros | None:
        return min((max(0, job.due - now) for job in self.jobs.values() if job.state is State.SCHEDULED), default=None)

    # -- pauses ---------------------------------------------------------------------------------

    def pause(self, queue: str, until: Micros | None) -> None:
        self.pauses[queue] = until

    def resume(self, queue: str, now: Micros) -> bool:
        return queue in self.paused(now).queues and self.pauses.pop(queue, 0) != 0

    def paused(self, now: Micros) -> Paused:
        there = {queue: until for queue, until in self.pauses.items() if until is None or until > now}
        return Paused(frozenset(there), min((until - now for until in there.values() if until is not None), default=None))

    # -- changing -------------------------------------------------------------------------------

    def change(self, move: Move, ids: Sequence[str], now: Micros) -> list[Changed]:
        return [self._change_one(move, id, now) for id in ids]

    def _change_one(self, move: Move, id: str, now: Micros) -> Changed:
        job = self.jobs.get(id)
        if job is None:
            return Changed(id, None, None)
        before = job.state
        if before not in MOVES[move]:
            return Changed(id, before, before)
        match move:
            case Move.DELETE:
                del self.jobs[id]
                return Changed(id, before, None)
            case Move.CANCEL if before is State.RUNNING:
                job.cancelling = True
            case Move.CANCEL:
                self._end(job, State.CANCELLED, now)
            case Move.RETRY:
                self._retry(job, now)
            case _:
                raise AssertionError(f"{move} is no change by hand")
        return Changed(id, before, job.state)

    def edit(self, edit: Edit, ids: Sequence[str], now: Micros) -> list[Changed]:
        return [self._edit_one(edit, id, now) for id in ids]

    def _edit_one(self, edit: Edit, id: str, now: Micros) -> Changed:
        job = self.jobs.get(id)
        if job is None:
            return Changed(id, None, None)
        before = job.state
        if before not in MOVES[Move.EDIT]:
            return Changed(id, before, before)
        job.priority = job.priority if edit.priority is None else edit.priority
        job.queue = job.queue if edit.queue is None else edit.queue
        due = edit.run_at if edit.delay is None else now + edit.delay
        if due is not None:
            job.due, job.state = due, State.SCHEDULED if due > now else State.QUEUED
        return Changed(id, before, job.state)

    def _retry(self, job: Job, now: Micros) -> None:
        if job.key is not None and self.holder(job.task, job.key) not in (None, job):
            return
        job.due_is_free = job.state is State.QUEUED
        if not job.due_is_free:
            job.due = now
        job.state, job.excused = State.QUEUED, job.claim
        job.worker = job.claimed_by = job.finished_at = None

    def prunable(self, ages: Mapping[State, Micros], now: Micros) -> list[Job]:
        return [
            job
            for job in self.jobs.values()
            if job.finished_at is not None and job.state in ages and job.finished_at < now - ages[job.state]
        ]

    # -- how a job goes on ----------------------------------------------------------------------

    def _end(self, job: Job, state: State, now: Micros, *outcomes: str | None) -> None:
        """End a job; `outcomes` is what is remembered of its attempt, where it was in one that did not succeed."""
        assert state in FINAL
        job.attempts += [(job.claim, job.attempt, outcome) for outcome in outcomes]
        job.state, job.finished_at, job.cancelling = state, now, False
        job.worker = job.claimed_by

    def _put_back(self, job: Job, outcome: str, wait: Micros, now: Micros, excused: bool) -> None:
        job.attempts.append((job.claim, job.attempt, outcome))
        job.excused += excused
        job.worker = job.claimed_by = None
        job.state = State.SCHEDULED if wait else State.QUEUED
        job.due_is_free = not wait
        if wait:
            job.due = now + wait
