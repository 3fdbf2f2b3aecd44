"""How finished jobs are forgotten."""

from __future__ import annotations

import pytest

from rota.clock import SECOND
from rota.model import FINAL, Move, State
from rota.stores.base import Store
from rota.testing.contract.scene import (
    CLAIMED_FIRST,
    MINUTE,
    NOW,
    OUTCOMES,
    change,
    everything,
    finish,
    found,
    job_in,
    join,
    queued,
    running,
    state,
)

Pruned = dict[State, int]


class Pruning:
    @pytest.mark.parametrize("final", sorted(FINAL))
    def test_a_finished_job_is_pruned_when_it_ended_longer_ago_than_the_age(self, store: Store, final: State) -> None:
        job = job_in(store, final, join(store))
        assert _told(store.prunable({final: MINUTE}, now=NOW + MINUTE)) == {}
        assert _told(store.prune({final: MINUTE}, 10, now=NOW + MINUTE)) == {}
        assert state(store, job.id) is final
        assert _told(store.prunable({final: MINUTE}, now=NOW + MINUTE + 1)) == {final: 1}
        assert _told(store.prune({final: MINUTE}, 10, now=NOW + MINUTE + 1)) == {final: 1}
        assert (everything(store), store.attempts(job.id), store.counts()) == ([], [], [])

    def test_each_state_has_its_own_age_and_those_without_one_stay(self, store: Store) -> None:
        worker = join(store)
        jobs = {final: job_in(store, final, worker).id for final in FINAL}
        ages = {State.SUCCEEDED: SECOND, State.FAILED: MINUTE}
        assert _told(store.prunable(ages, now=NOW + 2 * SECOND)) == {State.SUCCEEDED: 1}
        assert _told(store.prune(ages, 10, now=NOW + 2 * SECOND)) == {State.SUCCEEDED: 1}
        assert _told(store.prune(ages, 10, now=NOW + 2 * MINUTE)) == {State.FAILED: 1}
        assert found(store) == [jobs[State.CANCELLED]]

    def test_unfinished_jobs_are_never_pruned(self, store: Store) -> None:
        worker = join(store)
        jobs = [job_in(store, each, worker).id for each in CLAIMED_FIRST if each not in FINAL]
        ages = dict.fromkeys(State, 0)
        assert _told(store.prunable(ages, now=NOW + MINUTE)) == _told(store.prune(ages, 10, now=NOW + MINUTE)) == {}
        assert sorted(found(store)) == sorted(jobs)

    def test_a_pruning_takes_no_more_than_its_limit(self, store: Store) -> None:
        worker = join(store)
        for final in (State.SUCCEEDED, State.FAILED):
            for _ in range(4):
                job_in(store, final, worker)
        ages = {State.SUCCEEDED: 0, State.FAILED: 0}
        assert _told(store.prunable(ages, now=NOW + 1)) == {State.SUCCEEDED: 4, State.FAILED: 4}
        taken = [sum(store.prune(ages, 3, now=NOW + 1).values()) for _ in range(4)]
        assert taken == [3, 3, 2, 0]
        assert everything(store) == []

    def test_asking_what_could_be_pruned_prunes_nothing(self, store: Store) -> None:
        job = job_in(store, State.FAILED, join(store))
        store.prunable({State.FAILED: 0}, now=NOW + MINUTE)
        assert state(store, job.id) is State.FAILED

    def test_without_ages_nothing_is_pruned(self, store: Store) -> None:
        job_in(store, State.FAILED, join(store))
        assert _told(store.prune({}, 10, now=NOW + MINUTE)) == _told(store.prunable({}, now=NOW + MINUTE)) == {}

    def test_the_age_counts_from_the_end_and_not_from_the_start(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, OUTCOMES["failed"], now=NOW + MINUTE)
        assert _told(store.prune({State.FAILED: SECOND}, 10, now=NOW + MINUTE)) == {}
        assert state(store, claimed.id) is State.FAILED

    def test_a_job_cancelled_while_it_waited_is_pruned_too(self, store: Store) -> None:
        change(store, Move.CANCEL, queued(store))
        assert _told(store.prune({State.CANCELLED: 0}, 10, now=NOW + 1)) == {State.CANCELLED: 1}

    def test_a_retried_job_is_not_pruned_by_its_former_end(self, store: Store) -> None:
        job = job_in(store, State.FAILED, join(store))
        change(store, Move.RETRY, job.id)
        assert _told(store.prune({State.FAILED: 0}, 10, now=NOW + MINUTE)) == {}
        assert state(store, job.id) is State.QUEUED


def _told(counts: Pruned) -> Pruned:
    """The counts that are not zero: a store may tell zeros or leave them out."""
    return {state: count for state, count in counts.items() if count}
