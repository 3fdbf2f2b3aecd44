"""What can happen to a job in each state, cell by cell of `rota.model.MOVES`, and changes made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from rota.clock import SECOND
from rota.model import MOVES, Again, Changed, Claimed, Edit, Ended, Failed, Move, Outcome, Released, Snoozed, State, Succeeded
from rota.stores.base import Store
from rota.testing.contract.scene import (
    BROKEN,
    CLAIMED_FIRST,
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    STATES,
    change,
    claim,
    everything,
    finish,
    ids,
    job_in,
    join,
    new,
    put,
    queued,
    row,
    running,
    state,
)

Try = Callable[[Store, str, Claimed], object]


def _by_hand(move: Move) -> Try:
    return lambda store, worker, job: change(store, move, job.id)


def _by_finish(outcome: Outcome) -> Try:
    """Finish the job with its last claim, and with the claim that would come next."""

    def attempt(store: Store, worker: str, job: Claimed) -> None:
        store.finish(worker, [Ended(job.id, job.claim, outcome)], now=NOW)
        store.finish(worker, [Ended(job.id, job.claim + 1, outcome)], now=NOW)

    return attempt


TRIES: Mapping[Move, Try] = {
    Move.PROMOTE: lambda store, worker, job: store.promote(10, now=NOW + MINUTE),
    Move.CLAIM: lambda store, worker, job: claim(store, worker),
    Move.SUCCEED: _by_finish(Succeeded()),
    Move.FAIL: _by_finish(Failed(BROKEN)),
    Move.AGAIN: _by_finish(Again(BROKEN, SECOND)),
    Move.RELEASE: _by_finish(Released("shutting down")),
    Move.SNOOZE: _by_finish(Snoozed(SECOND)),
    Move.LOSE: lambda store, worker, job: store.lost(10, now=NOW + LEASE),
    Move.CANCEL: _by_hand(Move.CANCEL),
    Move.RETRY: _by_hand(Move.RETRY),
    Move.DELETE: _by_hand(Move.DELETE),
    Move.EDIT: lambda store, worker, job: store.edit(Edit(priority=1), [job.id], now=NOW),
}
"""How each move is attempted. Only limits hold a job, so `hold` and `held` are not tried here."""

CELLS = [(move, state) for move in TRIES for state in STATES]


class Changing:
    @pytest.mark.parametrize(("move", "before"), CELLS)
    def test_every_move_does_what_the_table_says(self, store: Store, move: Move, before: State) -> None:
        worker = join(store)
        job = job_in(store, before, worker)
        kept, remembered = row(store, job.id), store.attempts(job.id)
        TRIES[move](store, worker, job)
        allowed = MOVES[move].get(before)
        if allowed is None:
            assert row(store, job.id) == kept
            assert store.attempts(job.id) == remembered
        elif allowed:
            assert state(store, job.id) in allowed
        else:
            assert state(store, job.id) is None

    @pytest.mark.parametrize("move", [Move.CANCEL, Move.RETRY, Move.DELETE])
    @pytest.mark.parametrize("before", STATES)
    def test_a_change_tells_the_state_before_and_after(self, store: Store, move: Move, before: State) -> None:
        job = job_in(store, before, join(store))
        changed = change(store, move, job.id)
        assert changed == Changed(job.id, before, state(store, job.id))

    # -- cancel ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("before", [State.SCHEDULED, State.QUEUED])
    def test_a_waiting_job_is_cancelled_at_once(self, store: Store, before: State) -> None:
        job = job_in(store, before, join(store))
        assert store.change(Move.CANCEL, [job.id], now=NOW + 5) == [Changed(job.id, before, State.CANCELLED)]
        kept = row(store, job.id)
        assert (kept.state, kept.finished_at, kept.attempt) == (State.CANCELLED, NOW + 5, 0)
        assert kept.reason

    def test_a_running_job_is_asked_to_stop(self, store: Store) -> None:
        claimed = running(store, join(store))
        assert change(store, Move.CANCEL, claimed.id) == Changed(claimed.id, State.RUNNING, State.RUNNING)
        assert (state(store, claimed.id), row(store, claimed.id).cancelling) == (State.RUNNING, True)

    def test_a_retried_job_is_not_being_cancelled_any_more(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        change(store, Move.CANCEL, claimed.id)
        finish(store, worker, claimed, OUTCOMES["cancelled"])
        change(store, Move.RETRY, claimed.id)
        assert not row(store, claimed.id).cancelling
        (again,) = claim(store, worker)
        assert finish(store, worker, again, OUTCOMES["again"])
        assert state(store, claimed.id) == State.SCHEDULED

    # -- retry ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("before", [State.SCHEDULED, State.SUCCEEDED, State.FAILED, State.CANCELLED])
    def test_a_retried_job_is_due_now_with_its_attempts_before_it(self, store: Store, before: State) -> None:
        worker = join(store)
        job = job_in(store, before, worker, args="[[1],{}]", priority=3, max_attempts=1, task="t")
        store.change(Move.RETRY, [job.id], now=NOW + 5)
        kept = row(store, job.id)
        assert (kept.state, kept.due, kept.attempt, kept.max_attempts) == (State.QUEUED, NOW + 5, 0, 1)
        assert (kept.task, kept.args, kept.priority, kept.created_at) == ("t", "[[1],{}]", 3, NOW)
        assert (kept.finished_at, kept.result, kept.worker) == (None, None, None)
        (again,) = claim(store, worker, now=NOW + 5)
        assert (again.id, again.claim, again.attempt, again.args) == (job.id, job.claim + 1, 1, "[[1],{}]")
        assert finish(store, worker, again, Succeeded('"second"'), now=NOW + 6)
        assert (row(store, job.id).result, row(store, job.id).finished_at) == ('"second"', NOW + 6)

    @pytest.mark.parametrize("wait", [0, MINUTE], ids=["queued", "scheduled"])
    def test_a_retry_of_a_job_that_waits_for_another_attempt_starts_them_afresh(self, store: Store, wait: int) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=2)
        finish(store, worker, claimed, Again(BROKEN, wait))
        assert change(store, Move.RETRY, claimed.id).after is State.QUEUED
        assert row(store, claimed.id).attempt == 0
        (again,) = claim(store, worker)
        assert (again.claim, again.attempt, again.max_attempts) == (2, 1, 2)

    def test_a_retry_keeps_the_attempts_that_were_remembered(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=1)
        finish(store, worker, claimed, OUTCOMES["failed"])
        change(store, Move.RETRY, claimed.id)
        (again,) = claim(store, worker)
        finish(store, worker, again, OUTCOMES["failed"])
        assert [(each.claim, each.attempt) for each in store.attempts(claimed.id)] == [(1, 1), (2, 1)]

    def test_a_job_can_be_retried_again_and_again(self, store: Store) -> None:
        worker = join(store)
        id = queued(store)
        for number in range(1, 5):
            (claimed,) = claim(store, worker)
            assert (claimed.id, claimed.claim, claimed.attempt) == (id, number, 1)
            finish(store, worker, claimed, OUTCOMES["failed"])
            assert change(store, Move.RETRY, id).after is State.QUEUED

    # -- delete ---------------------------------------------------------------------------------

    def test_a_deleted_job_leaves_nothing(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, OUTCOMES["failed"])
        assert change(store, Move.DELETE, claimed.id) == Changed(claimed.id, State.FAILED, None)
        assert (everything(store), store.attempts(claimed.id), store.counts()) == ([], [], [])
        assert change(store, Move.DELETE, claimed.id) == Changed(claimed.id, None, None)

    # -- many at once ---------------------------------------------------------------------------

    @pytest.mark.parametrize("move", [Move.CANCEL, Move.RETRY, Move.DELETE])
    def test_answers_come_in_the_order_asked_and_unknown_jobs_are_told(self, store: Store, move: Move) -> None:
        worker = join(store)
        wanted = (State.FAILED, State.RUNNING, State.SUCCEEDED, State.SCHEDULED, State.QUEUED)
        jobs = {job_in(store, before, worker).id: before for before in wanted}
        unknown = new().id
        asked = [*sorted(jobs, reverse=True), unknown]
        changed = store.change(move, asked, now=NOW)
        assert [each.id for each in changed] == asked
        assert [each.before for each in changed] == [jobs.get(id) for id in asked]
        assert [each.after for each in changed] == [state(store, id) for id in asked]

    @pytest.mark.parametrize("move", [Move.CANCEL, Move.RETRY, Move.DELETE])
    def test_only_jobs_in_the_states_asked_for_are_changed(self, store: Store, move: Move) -> None:
        worker = join(store)
        wanted = (State.FAILED, State.RUNNING, State.SUCCEEDED, State.SCHEDULED, State.QUEUED)
        jobs = {job_in(store, before, worker).id: before for before in wanted}
        assert {each.before: each.after for each in store.change(move, list(jobs), NOW, [State.CANCELLED])} == {
            before: before for before in wanted
        }
        assert not any(row(store, id).cancelling for id in jobs)
        changed = store.change(move, list(jobs), NOW, [State.FAILED, State.SCHEDULED])
        assert {each.before for each in changed if each.after != each.before} <= {State.FAILED, State.SCHEDULED}
        assert any(each.after != each.before for each in changed)

    def test_changing_nothing_is_fine(self, store: Store) -> None:
        assert store.change(Move.CANCEL, [], now=NOW) == []

    def test_other_jobs_are_left_alone(self, store: Store) -> None:
        worker = join(store)
        others = [job_in(store, before, worker).id for before in CLAIMED_FIRST]
        before = sorted(store.get(others), key=lambda kept: kept.id)
        jobs = [new(), new(), new()]
        put(store, *jobs)
        for job, move in zip(jobs, (Move.CANCEL, Move.RETRY, Move.DELETE), strict=True):
            change(store, move, job.id)
        assert sorted(store.get(others), key=lambda kept: kept.id) == before
        assert len(ids(everything(store))) == len(others) + 2
