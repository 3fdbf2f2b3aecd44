"""What is carried along with a job comes with every claim of it, whichever way the job went in and came back."""

from __future__ import annotations

import pytest

from rota.model import Filter, Move, State, Succeeded
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    NOW,
    OUTCOMES,
    change,
    claim,
    finish,
    job_in,
    join,
    new,
    put,
    row,
    state,
)

CONTEXT = '{"tenant":"acme \\\\ \\t","request":{"id":7}}'


class Carrying:
    @pytest.mark.parametrize("many", [1, 2, 300], ids=["alone", "with another", "with many"])
    def test_each_job_has_its_own_context(self, store: Store, many: int) -> None:
        jobs = [new(context=f'{{"number":{n}}}' if n % 2 == 0 else None) for n in range(many)]
        put(store, *jobs)
        claimed = claim(store, join(store), limit=many)
        assert {job.id: job.context for job in claimed} == {job.id: job.context for job in jobs}

    @pytest.mark.parametrize("many", [1, 2, 300], ids=["alone", "with another", "with many"])
    def test_a_context_comes_back_as_it_went_in(self, store: Store, many: int) -> None:
        put(store, *(new(context=CONTEXT) for _ in range(many)))
        assert {job.context for job in claim(store, join(store), limit=many)} == {CONTEXT}

    @pytest.mark.parametrize("there", [each for each in State if each is not State.HELD])
    def test_who_looks_at_a_job_sees_its_context(self, store: Store, there: State) -> None:
        job = job_in(store, there, join(store), context=CONTEXT, key="k")
        assert row(store, job.id).context == CONTEXT
        for key in (None, "k"):
            assert [found.context for found in store.find(Filter(states=(there,), key=key), 10)] == [CONTEXT]
        if there.final:
            assert [found.context for found in store.latest(there, 10)] == [CONTEXT]

    @pytest.mark.parametrize("outcome", ["again", "snoozed", "released"])
    def test_a_context_stays_with_a_job_that_waits_again(self, store: Store, outcome: str) -> None:
        worker = join(store)
        put(store, new(context=CONTEXT))
        (first,) = claim(store, worker)
        finish(store, worker, first, OUTCOMES[outcome])
        change(store, Move.RETRY, first.id)
        (second,) = claim(store, worker)
        assert (second.context, second.claim) == (CONTEXT, 2)

    @pytest.mark.parametrize("road", ["succeeded", "failed", "cancelled", "cancelled while waiting", "lost"])
    def test_a_context_stays_with_a_job_that_is_retried_by_hand(self, store: Store, road: str) -> None:
        worker = join(store)
        job = new(context=CONTEXT, max_attempts=1)
        put(store, job)
        if road == "cancelled while waiting":
            change(store, Move.CANCEL, job.id)
        else:
            (first,) = claim(store, worker)
            if road == "lost":
                store.lost(10, now=NOW + LEASE)
                worker = join(store, now=NOW + LEASE)
            else:
                finish(store, worker, first, Succeeded() if road == "succeeded" else OUTCOMES[road])
        assert (before := state(store, job.id)) is not None
        assert before.final
        change(store, Move.RETRY, job.id)
        assert state(store, job.id) is State.QUEUED
        assert [each.context for each in claim(store, worker)] == [CONTEXT]

    def test_a_cancel_that_is_met_at_the_end_of_an_attempt_keeps_the_context(self, store: Store) -> None:
        worker = join(store)
        put(store, new(context=CONTEXT))
        (first,) = claim(store, worker)
        change(store, Move.CANCEL, first.id)
        finish(store, worker, first, OUTCOMES["again"])
        assert state(store, first.id) is State.CANCELLED
        change(store, Move.RETRY, first.id)
        assert [each.context for each in claim(store, worker)] == [CONTEXT]
