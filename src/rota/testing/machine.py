"""Random operations on a store and on the reference, compared after every step.

def test_my_store_does_what_the_reference_does(store):
    compare(store, examples=200, steps=12)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from rota.clock import SECOND, Micros
from rota.ids import new_id
from rota.model import (
    FINAL,
    Again,
    Ask,
    Cancelled,
    Edit,
    Ended,
    Failed,
    Failure,
    Filter,
    JobRow,
    Move,
    NewJob,
    Outcome,
    Released,
    Report,
    Snoozed,
    State,
    Succeeded,
    WorkerRow,
)
from rota.stores.base import Store
from rota.testing.reference import Job, Reference

T = TypeVar("T")

Made = tuple[str, str, int]
"""A claim that was made: the worker, the job and the claim's number."""

START: Micros = 1_750_000_000 * SECOND
LEASE: Micros = 60 * SECOND
ALL = 1_000_000

TASKS = ("a", "b")
QUEUES = ("x", "y")
WAITS = (0, SECOND, 30 * SECOND)

COMPARED = ("task", "queue", "state", "priority", "due", "claim", "attempt", "key", "worker", "finished_at", "cancelling")
"""What the store and the reference must agree on of each job."""

BROKEN = Failure("E", "it broke")

new_jobs = st.builds(
    NewJob,
    id=st.builds(new_id),
    task=st.sampled_from(TASKS),
    queue=st.sampled_from(QUEUES),
    args=st.just("[[],{}]"),
    priority=st.sampled_from((0, 1, -1)),
    run_at=st.sampled_from((None, START, START + 5 * SECOND)),
    delay=st.sampled_from(WAITS),
    max_attempts=st.sampled_from((1, 2, 5)),
    key=st.sampled_from((None, "k", "l")),
    key_waiting=st.booleans(),
)
waits = st.sampled_from(WAITS)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded),
    st.builds(Failed, st.just(BROKEN)),
    st.builds(Again, st.just(BROKEN), waits),
    st.builds(Snoozed, waits),
    st.builds(Released, st.just("stopping"), waits),
    st.builds(Cancelled),
)
asked_queues = st.sampled_from((("x",), ("y",), ("x", "y")))
edits = st.builds(
    Edit,
    priority=st.sampled_from((None, 0, 1)),
    queue=st.sampled_from((None, *QUEUES)),
    run_at=st.sampled_from((None, START, START + 30 * SECOND)),
) | st.builds(Edit, priority=st.sampled_from((None, 2)), delay=waits)
few = st.sampled_from((1, 2, 100))
picks = st.lists(st.integers(0, 50), min_size=1, max_size=3)


def compare(store: Store, examples: int, steps: int) -> None:
    """Run so many random sequences of operations against this empty store; raises what differed first, made small.

    The sequences are the same at every run.
    """
    run_state_machine_as_test(
        lambda: StoreMachine(store),  # type: ignore[arg-type]
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


class StoreMachine(RuleBasedStateMachine):
    """One sequence of operations. It leaves the store as empty as it found it, so that one store serves them all."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.reference = Reference()
        self.now = START
        self.sent: list[NewJob] = []
        self.workers: list[str] = []
        self.claims: list[Made] = []
        """Every claim that was ever answered."""
        self.numbered: set[tuple[str, int]] = set()
        """The numbers under which the jobs that are known were claimed."""
        self.ended: dict[str, tuple[State, int]] = {}
        """The final state and the claim of each job that has ended, from which only a retry or a deletion brings it back."""
        assert store.find(Filter(), 1) == []

    def teardown(self) -> None:
        self.attempts_are_remembered()
        for worker in self.workers:
            self.store.leave(worker, now=self.now)
        for pause in self.store.pauses():
            self.store.resume(pause.queue, now=self.now)
        left = [row.id for row in self.store.find(Filter(), ALL)]
        assert all(each.after is None for each in self.store.change(Move.DELETE, left, now=self.now))
        assert self.store.workers() == []

    # -- what may happen ------------------------------------------------------------------------

    @initialize(jobs=st.lists(new_jobs, max_size=4))
    def begin(self, jobs: list[NewJob]) -> None:
        self.join()
        self.join()
        self.insert(jobs)

    @rule(span=st.sampled_from((1, SECOND, 30 * SECOND, LEASE)))
    def time_passes(self, span: Micros) -> None:
        self.now += span

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=4))
    def insert(self, jobs: list[NewJob]) -> None:
        self.sent += jobs
        assert self.store.insert(jobs, now=self.now) == self.reference.insert(jobs, self.now)

    @precondition(lambda self: self.sent)
    @rule(which=picks)
    def insert_again(self, which: list[int]) -> None:
        jobs = _picked(self.sent, which)
        assert self.store.insert(jobs, now=self.now) == self.reference.insert(jobs, self.now)

    @precondition(lambda self: len(self.reference.leases) < 3)
    @rule()
    def join(self) -> None:
        worker = WorkerRow(new_id(), "w", "here", 1, None, list(TASKS), 8, LEASE, "1")
        self.workers.append(worker.id)
        self.store.join(worker, now=self.now)
        self.reference.join(worker.id, LEASE, self.now)

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5))
    def leave(self, which: int) -> None:
        (worker,) = _picked(self.workers, [which])
        self.store.leave(worker, now=self.now)
        self.reference.leave(worker, self.now)

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 5), in_hand=picks)
    def reconcile(self, which: int, in_hand: list[int]) -> None:
        (worker,) = _picked(self.workers, [which])
        ids = [id for _, id, _ in _picked(self.claims, in_hand)]
        assert self.store.reconcile(worker, ids, now=self.now) == self.reference.reconcile(worker, ids, self.now)

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5))
    def beat(self, which: int) -> None:
        """A worker reports everything that it ever claimed."""
        (worker,) = _picked(self.workers, [which])
        latest = {id: claim for by, id, claim in self.claims if by == worker}
        pulse = self.store.beat(worker, [Report(id, claim) for id, claim in latest.items()], now=self.now)
        assert pulse.alive == self.reference.beat(worker, LEASE, self.now)
        if pulse.alive:
            held = {job.id: job for job in self.reference.claimed_by(worker)}
            kept = {id for id, claim in latest.items() if id in held and held[id].claim == claim}
            assert pulse.lost == latest.keys() - kept
            assert pulse.cancelled == {id for id in kept if held[id].cancelling}

    @rule(limit=few)
    def promote(self, limit: int) -> None:
        due = self.reference.due_for_promotion(self.now)
        promoted = self.store.promote(limit, now=self.now)
        assert promoted.count == min(limit, len(due))
        chosen = [job for job in due if self.store.get([job.id])[0].state is State.QUEUED]
        assert len(chosen) == promoted.count
        assert [job.due for job in chosen] == [job.due for job in due[: len(chosen)]]
        for job in chosen:
            job.state = State.QUEUED
        assert promoted.next_in == self.reference.next_due(self.now)

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5), queues=asked_queues, limit=few)
    def claim(self, which: int, queues: tuple[str, ...], limit: int) -> None:
        (worker,) = _picked(self.workers, [which])
        ask = Ask(worker, queues, limit)
        claimed = self.store.claim(ask, now=self.now)
        expected = self.reference.claim(ask)
        assert [(each.id, each.claim, each.attempt) for each in claimed] == [
            (job.id, job.claim, job.attempt) for job in expected
        ]
        self._note_claims(worker, expected)

    @precondition(lambda self: self._held())
    @rule(which=picks, outcome=outcomes, keep=st.booleans())
    def finish(self, which: list[int], outcome: Outcome, keep: bool) -> None:
        """A worker ends attempts that are its own."""
        chosen = _picked(self._held(), which)
        self._finish(chosen, outcome, keep)

    @precondition(lambda self: self.claims)
    @rule(which=picks, outcome=outcomes)
    def finish_too_late(self, which: list[int], outcome: Outcome) -> None:
        """A worker ends attempts that it once made, of which most are long over."""
        held = self._held()
        chosen = _picked([claim for claim in self.claims if claim not in held] or held, which)
        self._finish(chosen, outcome, keep=False)

    @precondition(lambda self: self._held())
    @rule(which=st.integers(0, 5), by=st.integers(0, 5), off=st.sampled_from((-1, 0, 1)), outcome=outcomes)
    def finish_anothers(self, which: int, by: int, off: int, outcome: Outcome) -> None:
        """Some worker ends a running attempt that may be another's, under a number that may be wrong."""
        [(_, id, claim)] = _picked(self._held(), [which])
        (worker,) = _picked(self.workers, [by])
        self._finish([(worker, id, claim + off)], outcome, keep=False)

    @precondition(lambda self: self._held())
    @rule(which=picks, limit=few, failed=st.booleans())
    def finish_and_claim(self, which: list[int], limit: int, failed: bool) -> None:
        chosen = _picked(self._held(), which)
        ask = Ask(chosen[0][0], QUEUES, limit)
        self._finish(chosen, Failed(BROKEN) if failed else Succeeded(), ask=ask)

    def _finish(self, chosen: list[Made], outcome: Outcome, keep: bool = True, ask: Ask | None = None) -> None:
        """Write the outcome for those of the chosen claims that are of the first one's worker."""
        worker = chosen[0][0]
        ends = [
            Ended(id, claim, outcome, keep=keep)
            for id, claim in {id: claim for by, id, claim in chosen if by == worker}.items()
        ]
        turn = self.store.finish(worker, ends, ask, now=self.now)
        assert turn.counted == self.reference.finish(worker, ends, self.now)
        expected = self.reference.claim(ask) if ask else []
        assert [(each.id, each.claim, each.attempt) for each in turn.claimed] == [
            (job.id, job.claim, job.attempt) for job in expected
        ]
        self._note_claims(worker, expected)

    def _held(self) -> list[Made]:
        """The claims that are running, in the order in which they were made."""
        held = {(job.worker, job.id, job.claim) for job in self.reference.jobs.values() if job.state is State.RUNNING}
        return [claim for claim in self.claims if claim in held]

    @rule(which=st.integers(0, 5), limit=few)
    def die(self, which: int, limit: int) -> None:
        """A worker is not heard of for the length of its lease while the others beat; then someone looks."""
        self.now += LEASE
        dead = _picked(self.workers, [which])
        for worker in self.reference.leases.keys() - set(dead):
            self.store.beat(worker, [], now=self.now)
            self.reference.beat(worker, LEASE, self.now)
        self.reap(limit)

    @rule(limit=few)
    def reap(self, limit: int) -> None:
        dead = self.reference.dead(self.now)
        held = sum(len(self.reference.claimed_by(worker)) for worker in dead)
        reaped = self.store.lost(limit, now=self.now)
        assert len(reaped.lost) == min(limit, held)
        for lost in reaped.lost:
            job = self.reference.jobs[lost.id]
            assert (lost.worker, lost.attempt) == (job.worker, job.attempt)
            assert lost.state is self.reference.lose(lost.id, self.now)
        # A store that took as many as it may need not look whether its workers hold more.
        known = {seen.id for seen in self.store.workers()}
        if len(reaped.lost) == limit and known != self.reference.leases.keys() - set(dead):
            for worker in set(dead) - known:
                del self.reference.leases[worker]
        else:
            self.reference.forget_idle(self.now)
        ends = [max(0, lease_until - self.now) for lease_until in self.reference.leases.values()]
        assert reaped.next_in == min(ends, default=None)

    @precondition(lambda self: self.sent)
    @rule(which=picks, move=st.sampled_from((Move.CANCEL, Move.RETRY, Move.DELETE)))
    def change(self, which: list[int], move: Move) -> None:
        self._change(move, list(dict.fromkeys(job.id for job in _picked(self.sent, which))))

    @precondition(lambda self: self._held())
    @rule(which=picks)
    def cancel_running(self, which: list[int]) -> None:
        self._change(Move.CANCEL, list(dict.fromkeys(id for _, id, _ in _picked(self._held(), which))))

    def _change(self, move: Move, ids: list[str]) -> None:
        before = {id: job.key for id, job in self.reference.jobs.items() if id in ids}
        keys = [key for key in before.values() if key is not None]
        if move is Move.RETRY and len(keys) != len(set(keys)):
            ids = ids[:1]  # which of two jobs with one key is retried is the store's choice
        for id in ids if move in (Move.RETRY, Move.DELETE) else ():
            self.ended.pop(id, None)
        assert self.store.change(move, ids, now=self.now) == self.reference.change(move, ids, self.now)

    @precondition(lambda self: self.sent)
    @rule(which=picks, edit=edits)
    def edit(self, which: list[int], edit: Edit) -> None:
        ids = list(dict.fromkeys(job.id for job in _picked(self.sent, which)))
        assert self.store.edit(edit, ids, now=self.now) == self.reference.edit(edit, ids, self.now)

    @rule(queue=st.sampled_from(QUEUES), span=st.sampled_from((None, 1, 30 * SECOND)))
    def pause(self, queue: str, span: Micros | None) -> None:
        self.store.pause(queue, span=span, now=self.now)
        self.reference.pause(queue, None if span is None else self.now + span)

    @precondition(lambda self: self.reference.pauses)
    @rule(queue=st.sampled_from(QUEUES))
    def resume(self, queue: str) -> None:
        assert self.store.resume(queue, now=self.now) == self.reference.resume(queue, self.now)

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5), limit=few)
    def claim_what_is_not_paused(self, which: int, limit: int) -> None:
        paused = self.store.paused(now=self.now)
        assert paused == self.reference.paused(self.now)
        self.claim(which, tuple(queue for queue in QUEUES if queue not in paused.queues), limit)

    @rule(age=st.sampled_from((0, 10 * SECOND)), state=st.sampled_from(sorted(FINAL)), limit=few)
    def prune(self, age: Micros, state: State, limit: int) -> None:
        old = self.reference.prunable({state: age}, self.now)
        assert self.store.prunable({state: age}, now=self.now).get(state, 0) == len(old)
        assert self.store.prune({state: age}, limit, now=self.now).get(state, 0) == min(limit, len(old))
        left = {row.id for row in self.store.get([job.id for job in old])}
        assert len(left) == max(0, len(old) - limit)
        for job in old:
            if job.id not in left:
                del self.reference.jobs[job.id]
                self.ended.pop(job.id, None)

    # -- what always holds ----------------------------------------------------------------------

    @invariant()
    def pauses_are_the_same(self) -> None:
        assert self.store.paused(now=self.now) == self.reference.paused(self.now)

    @invariant()
    def workers_are_the_same(self) -> None:
        assert {seen.id: seen.lease_until for seen in self.store.workers()} == self.reference.leases

    @invariant()
    def jobs_are_the_same(self) -> None:
        rows = self.store.find(Filter(), ALL)
        assert {row.id for row in rows} == self.reference.jobs.keys()
        self.numbered = {(id, claim) for id, claim in self.numbered if id in self.reference.jobs}
        for row in rows:
            job = self.reference.jobs[row.id]
            self._adopt_place(job, row)
            assert _compared(row) == _compared(job)
        self._a_key_has_one_unfinished_job(rows)
        self._what_ended_stays_as_it_is(rows)

    def _a_key_has_one_unfinished_job(self, rows: Sequence[JobRow]) -> None:
        keys = [(row.task, row.key) for row in rows if row.key is not None and not row.state.final]
        assert len(keys) == len(set(keys))

    def _what_ended_stays_as_it_is(self, rows: Sequence[JobRow]) -> None:
        ended = {row.id: (row.state, row.claim) for row in rows if row.state.final}
        assert self.ended.items() <= ended.items()
        self.ended = ended

    def attempts_are_remembered(self) -> None:
        for id, job in self.reference.jobs.items():
            told = [(each.claim, each.attempt, each.outcome) for each in self.store.attempts(id)]
            assert len(told) == len(job.attempts), (told, job.attempts)
            for seen, known in zip(told, job.attempts, strict=True):
                assert seen[:2] == known[:2]
                assert known[2] in (None, seen[2])

    def _note_claims(self, worker: str, jobs: Sequence[Job]) -> None:
        """A job is never claimed under a number that it had before; one that was deleted may come in again as a new one."""
        for job in jobs:
            assert (job.id, job.claim) not in self.numbered
            self.numbered.add((job.id, job.claim))
            self.claims.append((worker, job.id, job.claim))

    def _adopt_place(self, job: Job, row: JobRow) -> None:
        """Where the store may choose when a job that comes back was due, take its choice, which lies in the past."""
        if job.due_is_free:
            assert row.due <= self.now
            job.due, job.due_is_free = row.due, False


def _picked(among: Sequence[T], which: Sequence[int]) -> list[T]:
    return [among[number % len(among)] for number in which]


def _compared(job: Job | JobRow) -> dict[str, object]:
    return {name: getattr(job, name) for name in COMPARED}
