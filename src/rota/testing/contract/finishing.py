"""What became of attempts whose bodies finish them within transactions of their own, and were perhaps undone."""

from __future__ import annotations

import pytest

from rota.model import Ended, Move, Settled, State, Succeeded
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    NOW,
    OUTCOMES,
    change,
    claim,
    finish,
    join,
    row,
    running,
    state,
)

NONE: frozenset[str] = frozenset()


class FinishingAfter:
    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_where_nothing_was_committed_the_outcome_is_written(self, store: Store, outcome: str) -> None:
        worker = join(store)
        plain, undone = running(store, worker), running(store, worker)
        assert finish(store, worker, plain, OUTCOMES[outcome])
        settled = store.finish_after(worker, [Ended(undone.id, undone.claim, OUTCOMES[outcome])], now=NOW)
        assert settled == Settled(done=NONE, counted=frozenset({undone.id}), open=NONE)
        assert state(store, undone.id) == state(store, plain.id)
        assert len(store.attempts(undone.id)) == len(store.attempts(plain.id))

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_a_job_that_was_finished_stays_as_it_is(self, store: Store, outcome: str) -> None:
        worker = join(store)
        done = running(store, worker)
        assert finish(store, worker, done, Succeeded('"paid"'))
        before = row(store, done.id)
        settled = store.finish_after(worker, [Ended(done.id, done.claim, OUTCOMES[outcome])], now=NOW + 1)
        assert settled == Settled(done=frozenset({done.id}), counted=NONE, open=NONE)
        assert (row(store, done.id), store.attempts(done.id)) == (before, [])

    @pytest.mark.parametrize("since", ["retried", "cancelled", "claimed", "succeeded", *OUTCOMES])
    def test_a_job_that_was_retried_by_hand_after_its_success_had_it_nevertheless(self, store: Store, since: str) -> None:
        worker, other = join(store), join(store)
        done = running(store, worker)
        assert finish(store, worker, done, Succeeded())
        change(store, Move.RETRY, done.id)
        if since == "cancelled":
            change(store, Move.CANCEL, done.id)
        elif since != "retried":
            (again,) = claim(store, other)
            if since != "claimed":
                assert finish(store, other, again, OUTCOMES.get(since, Succeeded()))
        before = row(store, done.id)
        settled = store.finish_after(worker, [Ended(done.id, done.claim, OUTCOMES["again"])], now=NOW)
        assert settled == Settled(done=frozenset({done.id}), counted=NONE, open=NONE)
        assert row(store, done.id) == before

    @pytest.mark.parametrize("since", ["claimed", "succeeded", "retried"])
    def test_a_job_that_was_lost_had_no_success_whatever_came_of_it_since(self, store: Store, since: str) -> None:
        stale = join(store)
        claimed = running(store, stale)
        store.lost(10, now=NOW + LEASE)
        fresh = join(store, now=NOW + LEASE)
        (taken,) = claim(store, fresh, now=NOW + LEASE)
        if since != "claimed":
            assert finish(store, fresh, taken, Succeeded(), now=NOW + LEASE)
        if since == "retried":
            change(store, Move.RETRY, claimed.id)
        settled = store.finish_after(stale, [Ended(claimed.id, claimed.claim, Succeeded())], now=NOW + LEASE)
        assert settled == Settled(done=NONE, counted=NONE, open=NONE)

    def test_of_a_job_that_is_gone_nothing_is_known(self, store: Store) -> None:
        """Another attempt may have succeeded, and not been kept."""
        worker = join(store)
        gone = running(store, worker)
        assert finish(store, worker, gone, Succeeded(), keep=False)
        settled = store.finish_after(worker, [Ended(gone.id, gone.claim, OUTCOMES["again"])], now=NOW)
        assert settled == Settled(done=NONE, counted=NONE, open=NONE)
        assert state(store, gone.id) is None

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_an_attempt_that_was_taken_over_changes_nothing(self, store: Store, outcome: str) -> None:
        stale = join(store)
        claimed = running(store, stale)
        store.lost(10, now=NOW + LEASE)
        fresh = join(store, now=NOW + LEASE)
        (taken,) = claim(store, fresh, now=NOW + LEASE)
        before = row(store, claimed.id)
        for worker, number in ((stale, claimed.claim), (stale, taken.claim), (fresh, claimed.claim)):
            settled = store.finish_after(worker, [Ended(claimed.id, number, OUTCOMES[outcome])], now=NOW + LEASE)
            assert settled == Settled(done=NONE, counted=NONE, open=NONE)
        assert row(store, claimed.id) == before
        assert finish(store, fresh, taken, Succeeded(), now=NOW + LEASE)
        assert store.finish_after(stale, [Ended(claimed.id, claimed.claim, OUTCOMES[outcome])], now=NOW + LEASE).done == NONE

    @pytest.mark.parametrize("outcome", sorted(OUTCOMES.keys() - {"succeeded"}))
    def test_an_attempt_that_ended_otherwise_is_in_no_part_of_the_answer(self, store: Store, outcome: str) -> None:
        worker = join(store)
        job = running(store, worker)
        assert finish(store, worker, job, OUTCOMES[outcome])
        before = row(store, job.id)
        settled = store.finish_after(worker, [Ended(job.id, job.claim, Succeeded())], now=NOW)
        assert settled == Settled(done=NONE, counted=NONE, open=NONE)
        assert row(store, job.id) == before

    def test_a_cancel_meanwhile_counts_where_the_outcome_would_have_the_job_wait_again(self, store: Store) -> None:
        worker = join(store)
        again, succeeded = running(store, worker), running(store, worker)
        for job in (again, succeeded):
            change(store, Move.CANCEL, job.id)
        ends = [Ended(again.id, 1, OUTCOMES["again"]), Ended(succeeded.id, 1, Succeeded())]
        assert store.finish_after(worker, ends, now=NOW).counted == {again.id, succeeded.id}
        assert (state(store, again.id), state(store, succeeded.id)) == (State.CANCELLED, State.SUCCEEDED)

    def test_nothing_to_look_at_is_fine(self, store: Store) -> None:
        assert store.finish_after(join(store), [], now=NOW) == Settled(NONE, NONE, NONE)
