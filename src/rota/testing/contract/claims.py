"""How workers take jobs: in which order, which ones, and how time makes them ready."""

from __future__ import annotations

from random import Random

import pytest

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, Move, Promoted, State
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    change,
    claim,
    finish,
    ids,
    join,
    new,
    put,
    queued,
    row,
    running,
    state,
)


class Claiming:
    def test_claims_come_by_priority_then_due_then_id_over_all_queues(self, store: Store) -> None:
        jobs = [
            new(queue=queue, priority=priority, run_at=NOW - age)
            for queue in ("one", "two", "three")
            for priority in (-5, 0, 7)
            for age in (0, SECOND, MINUTE)
            for _ in range(2)
        ]
        shuffled = Random(4).sample(jobs, len(jobs))
        put(store, *shuffled)
        expected = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))
        worker = join(store)
        taken = []
        for limit in (1, 4, 20, 100):
            taken += claim(store, worker, limit, ("three", "one", "two"))
        assert ids(taken) == [job.id for job in expected]

    def test_only_the_queues_asked_for_are_claimed_from(self, store: Store) -> None:
        worker = join(store)
        a, b, c = (queued(store, queue=queue) for queue in ("a", "b", "c"))
        assert ids(claim(store, worker, queues=("a", "c", "nothing here"))) == [a, c]
        assert claim(store, worker, queues=("a", "c")) == []
        assert claim(store, worker, queues=()) == []
        assert ids(claim(store, worker, queues=("b",))) == [b]

    def test_a_claim_takes_no_more_than_its_limit(self, store: Store) -> None:
        worker = join(store)
        put(store, *(new() for _ in range(5)))
        assert [len(claim(store, worker, limit)) for limit in (0, 2, 1, 100, 100)] == [0, 2, 1, 2, 0]

    def test_many_queues_are_asked_for_at_once(self, store: Store) -> None:
        names = [f"queue {n}" for n in range(200)]
        jobs = [new(queue=name, priority=n % 5) for n, name in enumerate(names)]
        put(store, *jobs)
        first = claim(store, join(store), 150, names)
        assert ids(first) == [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.id))][:150]

    def test_a_claimed_job_carries_what_its_worker_needs(self, store: Store) -> None:
        worker = join(store)
        job = new(task="shop.send", args='[[1],{"a":2}]', priority=2, max_attempts=3, key="k", run_at=NOW - 5)
        put(store, job)
        (claimed,) = claim(store, worker)
        assert (claimed.id, claimed.task, claimed.queue, claimed.args) == (job.id, job.task, job.queue, job.args)
        assert (claimed.claim, claimed.excused, claimed.attempt, claimed.max_attempts) == (1, 0, 1, 3)
        assert (claimed.priority, claimed.due, claimed.key) == (2, NOW - 5, "k")

    def test_a_claimed_job_is_running_under_its_worker(self, store: Store) -> None:
        worker = join(store)
        id = queued(store)
        claim(store, worker, now=NOW + SECOND)
        kept = row(store, id)
        assert (kept.state, kept.worker, kept.claim, kept.attempt) == (State.RUNNING, worker, 1, 1)
        assert (kept.claimed_at, kept.finished_at) == (NOW + SECOND, None)

    def test_a_job_is_claimed_once(self, store: Store) -> None:
        one, two = join(store), join(store)
        queued(store)
        assert len(claim(store, one)) == 1
        assert claim(store, two) == claim(store, one) == []

    def test_an_unknown_worker_claims_nothing(self, store: Store) -> None:
        id = queued(store)
        assert claim(store, new_id()) == []
        gone = join(store)
        store.leave(gone, now=NOW)
        assert claim(store, gone) == []
        reaped = join(store)
        store.lost(10, now=NOW + LEASE)
        assert claim(store, reaped) == []
        assert (state(store, id), row(store, id).claim) == (State.QUEUED, 0)

    def test_an_unknown_worker_claims_nothing_with_its_finishes_either(self, store: Store) -> None:
        id = queued(store)
        stranger = new_id()
        turn = store.finish(stranger, [], Ask(stranger, ("default",), 10), now=NOW)
        assert (turn.claimed, state(store, id)) == ([], State.QUEUED)

    @pytest.mark.parametrize("outcome", ["again", "snoozed", "released"])
    def test_every_claim_is_counted_and_only_attempts_that_count_are(self, store: Store, outcome: str) -> None:
        worker = join(store)
        claimed = running(store, worker)
        for number in (2, 3, 4):
            now = NOW + number * MINUTE
            assert finish(store, worker, claimed, OUTCOMES[outcome], now=now - 30 * SECOND)
            store.promote(10, now=now)
            (claimed,) = claim(store, worker, now=now)
            excused = 0 if outcome == "again" else number - 1
            assert (claimed.claim, claimed.excused, claimed.attempt) == (number, excused, number - excused)
            kept = row(store, claimed.id)
            assert (kept.claim, kept.excused, kept.attempt) == (number, excused, number - excused)

    # -- time -----------------------------------------------------------------------------------

    def test_a_job_that_is_not_due_is_never_claimed(self, store: Store) -> None:
        worker = join(store)
        id = queued(store, delay=SECOND, priority=100)
        assert store.promote(10, now=NOW + SECOND - 1) == Promoted(0, 1)
        assert claim(store, worker, now=NOW + SECOND - 1) == []
        assert store.promote(10, now=NOW + SECOND) == Promoted(1, None)
        assert ids(claim(store, worker, now=NOW + SECOND)) == [id]

    def test_a_claim_does_not_look_at_jobs_that_were_not_promoted(self, store: Store) -> None:
        id = queued(store, delay=SECOND)
        assert claim(store, join(store), now=NOW + MINUTE) == []
        assert state(store, id) == State.SCHEDULED

    def test_promotion_takes_the_earliest_first_up_to_its_limit_and_tells_when_the_next_is_due(self, store: Store) -> None:
        late, early, middle = (queued(store, delay=delay, priority=delay) for delay in (30 * SECOND, 10 * SECOND, 20 * SECOND))
        assert store.promote(10, now=NOW) == Promoted(0, 10 * SECOND)
        assert store.promote(1, now=NOW + MINUTE) == Promoted(1, 0)
        assert [state(store, id) for id in (early, middle, late)] == ["queued", "scheduled", "scheduled"]
        assert store.promote(10, now=NOW + 20 * SECOND) == Promoted(1, 10 * SECOND)
        assert [state(store, id) for id in (early, middle, late)] == ["queued", "queued", "scheduled"]
        assert store.promote(10, now=NOW + 30 * SECOND) == Promoted(1, None)
        assert store.promote(10, now=NOW + MINUTE) == Promoted(0, None)

    def test_promotion_does_not_change_when_a_job_was_due(self, store: Store) -> None:
        jobs = [new(delay=delay) for delay in (30, 20, 10)]
        put(store, *jobs)
        store.promote(10, now=NOW + MINUTE)
        assert ids(claim(store, join(store), now=NOW + MINUTE)) == [job.id for job in jobs[::-1]]
        assert [row(store, job.id).due for job in jobs] == [NOW + 30, NOW + 20, NOW + 10]

    def test_promotion_with_nothing_scheduled_has_nothing_next(self, store: Store) -> None:
        queued(store)
        assert store.promote(10, now=NOW) == Promoted(0, None)

    def test_an_attempt_to_come_is_promoted_like_any_other(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, OUTCOMES["again"])
        assert store.promote(10, now=NOW) == Promoted(0, SECOND)
        assert store.promote(10, now=NOW + SECOND) == Promoted(1, None)

    def test_a_cancelled_job_is_not_claimed(self, store: Store) -> None:
        worker = join(store)
        change(store, Move.CANCEL, queued(store))
        change(store, Move.CANCEL, queued(store, delay=SECOND))
        assert store.promote(10, now=NOW + MINUTE) == Promoted(0, None)
        assert claim(store, worker, now=NOW + MINUTE) == []
