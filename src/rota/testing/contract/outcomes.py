"""What becomes of an attempt: each outcome, the fence around it, and the attempts that are remembered."""

from __future__ import annotations

import pytest

from rota.clock import SECOND
from rota.model import (
    Again,
    Cancelled,
    Ended,
    Failed,
    Failure,
    Move,
    Outcome,
    Released,
    Snoozed,
    State,
    Succeeded,
    Turn,
)
from rota.stores.base import Store
from rota.testing.contract.scene import (
    BROKEN,
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    ask,
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

LATER = NOW + 5 * SECOND
FINAL = ("succeeded", "failed", "cancelled")


class Outcomes:
    @pytest.mark.parametrize(
        ("outcome", "expected", "reason"),
        [
            (Succeeded('{"a":1}'), State.SUCCEEDED, None),
            (Succeeded(), State.SUCCEEDED, None),
            (Failed(BROKEN), State.FAILED, "it broke"),
            (Cancelled("not wanted"), State.CANCELLED, "not wanted"),
        ],
        ids=["success with a result", "success", "failure", "cancellation"],
    )
    def test_a_final_outcome_ends_the_job(self, store: Store, outcome: Outcome, expected: State, reason: str | None) -> None:
        worker = join(store)
        job = new(task="shop.send", queue="mail", args='[[1],{"a":2}]', priority=2, max_attempts=3, key="k")
        put(store, job)
        (claimed,) = claim(store, worker, queues=("mail",))
        assert finish(store, worker, claimed, outcome, now=LATER, took=123)
        kept = row(store, job.id)
        assert (kept.state, kept.finished_at, kept.took, kept.claimed_at) == (expected, LATER, 123, NOW)
        assert (kept.task, kept.queue, kept.args, kept.key) == ("shop.send", "mail", '[[1],{"a":2}]', "k")
        assert (kept.priority, kept.max_attempts, kept.claim, kept.excused, kept.attempt) == (2, 3, 1, 0, 1)
        assert kept.result == ('{"a":1}' if outcome == Succeeded('{"a":1}') else None)
        assert (reason or "") in (kept.reason or "")
        assert (kept.created_at, kept.worker) == (NOW, worker)

    @pytest.mark.parametrize(
        ("outcome", "wait"),
        [
            (Again(BROKEN, wait=SECOND), SECOND),
            (Snoozed(wait=SECOND), SECOND),
            (Released("shutting down", wait=SECOND), SECOND),
            (Again(BROKEN, wait=0), 0),
            (Snoozed(wait=0), 0),
            (Released("shutting down"), 0),
        ],
        ids=["again", "snoozed", "released", "again at once", "snoozed for nothing", "released at once"],
    )
    def test_other_outcomes_send_the_job_back_to_wait(self, store: Store, outcome: Outcome, wait: int) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert finish(store, worker, claimed, outcome, now=LATER)
        kept = row(store, claimed.id)
        assert kept.state == (State.SCHEDULED if wait else State.QUEUED)
        assert (kept.worker, kept.finished_at, kept.claim) == (None, None, 1)
        assert kept.attempt == (1 if isinstance(outcome, Again) else 0)
        if wait:
            assert kept.due == LATER + wait
        else:
            assert kept.due <= LATER
            assert ids(claim(store, worker, now=LATER)) == [claimed.id]

    def test_a_failed_attempt_leaves_its_reason_with_the_waiting_job(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, Again(Failure("ValueError", "the first try broke"), wait=0))
        assert "the first try broke" in str(row(store, claimed.id).reason)

    @pytest.mark.parametrize("outcome", FINAL)
    def test_a_final_job_that_is_not_kept_is_gone(self, store: Store, outcome: str) -> None:
        worker = join(store)
        kept, dropped = running(store, worker), running(store, worker)
        ends = [Ended(kept.id, kept.claim, OUTCOMES[outcome]), Ended(dropped.id, dropped.claim, OUTCOMES[outcome], keep=False)]
        assert store.finish(worker, ends, now=NOW).counted == {kept.id, dropped.id}
        assert (state(store, kept.id), state(store, dropped.id)) == (outcome, None)
        assert store.attempts(dropped.id) == []

    @pytest.mark.parametrize("outcome", ["again", "snoozed", "released"])
    def test_a_job_that_goes_on_is_kept_whatever_was_said(self, store: Store, outcome: str) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert finish(store, worker, claimed, OUTCOMES[outcome], keep=False)
        assert state(store, claimed.id) in ("scheduled", "queued")

    def test_outcomes_of_every_kind_are_written_together(self, store: Store) -> None:
        worker = join(store)
        claims = {name: running(store, worker) for name in OUTCOMES}
        ends = [Ended(claimed.id, claimed.claim, OUTCOMES[name]) for name, claimed in claims.items()]
        assert store.finish(worker, ends, now=NOW) == Turn(frozenset(end.id for end in ends), [])
        states = {name: state(store, claimed.id) for name, claimed in claims.items()}
        expected = {"again": "scheduled", "snoozed": "scheduled", "released": "queued"}
        assert states == {name: expected.get(name, name) for name in OUTCOMES}

    def test_one_round_trip_finishes_and_claims(self, store: Store) -> None:
        worker = join(store)
        old = running(store, worker)
        jobs = [new(priority=priority) for priority in (1, 3, 2)]
        put(store, *jobs)
        turn = store.finish(worker, [Ended(old.id, old.claim, Succeeded())], ask(worker, 2), now=LATER)
        assert (turn.counted, ids(turn.claimed)) == (frozenset({old.id}), [jobs[1].id, jobs[2].id])
        assert row(store, jobs[1].id).claimed_at == LATER
        turn = store.finish(worker, [], ask(worker, 2), now=LATER)
        assert (turn.counted, ids(turn.claimed)) == (frozenset(), [jobs[0].id])

    def test_finishing_nothing_is_fine(self, store: Store) -> None:
        assert store.finish(join(store), [], now=NOW) == Turn(frozenset(), [])

    # -- the fence ------------------------------------------------------------------------------

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_an_attempt_that_was_taken_over_changes_nothing(self, store: Store, outcome: str) -> None:
        stale = join(store)
        claimed = running(store, stale, key="k")
        store.lost(10, now=NOW + LEASE)
        fresh = join(store, now=NOW + LEASE)
        (taken,) = claim(store, fresh, now=NOW + LEASE)
        before = row(store, claimed.id)
        assert not finish(store, stale, claimed, OUTCOMES[outcome], now=NOW + LEASE, keep=False)
        assert not finish(store, stale, taken, OUTCOMES[outcome], now=NOW + LEASE, keep=False)
        assert not finish(store, fresh, claimed, OUTCOMES[outcome], now=NOW + LEASE, keep=False)
        assert row(store, claimed.id) == before
        assert finish(store, fresh, taken, Succeeded(), now=NOW + LEASE)

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_an_attempt_that_its_own_worker_claimed_anew_changes_nothing(self, store: Store, outcome: str) -> None:
        worker = join(store)
        first = running(store, worker)
        finish(store, worker, first, Released("handed back"))
        (second,) = claim(store, worker)
        before = row(store, first.id)
        assert not finish(store, worker, first, OUTCOMES[outcome], keep=False)
        assert row(store, first.id) == before
        assert finish(store, worker, second, OUTCOMES[outcome])

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_an_outcome_counts_once(self, store: Store, outcome: str) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert finish(store, worker, claimed, OUTCOMES[outcome])
        before, attempts = row(store, claimed.id), store.attempts(claimed.id)
        assert not finish(store, worker, claimed, OUTCOMES[outcome])
        assert not finish(store, worker, claimed, Succeeded())
        assert (row(store, claimed.id), store.attempts(claimed.id)) == (before, attempts)

    def test_looks_for_an_unknown_task_are_counted_until_an_attempt_or_a_retry_by_hand(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        for looks in (1, 2):
            finish(store, worker, claimed, Released("no such task", looks=looks))
            (claimed,) = claim(store, worker)
            assert claimed.looks == looks
        finish(store, worker, claimed, Released("no such task", looks=3))
        change(store, Move.RETRY, claimed.id)
        (claimed,) = claim(store, worker)
        assert claimed.looks == 0
        finish(store, worker, claimed, Released("no such task", looks=1))
        (claimed,) = claim(store, worker)
        finish(store, worker, claimed, Again(BROKEN, 0))
        (claimed,) = claim(store, worker)
        assert claimed.looks == 0

    def test_a_claim_from_before_a_retry_by_hand_changes_nothing(self, store: Store) -> None:
        worker = join(store)
        first = running(store, worker)
        finish(store, worker, first, OUTCOMES["failed"])
        change(store, Move.RETRY, first.id)
        (second,) = claim(store, worker)
        assert second.claim > first.claim
        assert not finish(store, worker, first, Succeeded())
        assert state(store, first.id) == State.RUNNING

    def test_stale_outcomes_do_not_stop_the_others_of_their_batch(self, store: Store) -> None:
        worker = join(store)
        good, stale, unknown = running(store, worker), running(store, worker), new()
        finish(store, worker, stale, Succeeded("1"))
        ends = [
            Ended(stale.id, stale.claim, OUTCOMES["failed"]),
            Ended(good.id, good.claim, Succeeded()),
            Ended(unknown.id, 1, Succeeded()),
        ]
        assert store.finish(worker, ends, now=NOW).counted == {good.id}
        assert (row(store, stale.id).result, state(store, good.id), state(store, unknown.id)) == ("1", "succeeded", None)

    def test_an_outcome_that_comes_late_counts_while_nobody_took_the_job(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert finish(store, worker, claimed, Succeeded(), now=NOW + 10 * LEASE)

    # -- cancelled meanwhile --------------------------------------------------------------------

    @pytest.mark.parametrize("outcome", OUTCOMES)
    def test_a_job_that_someone_asked_to_cancel_does_not_go_back_to_wait(self, store: Store, outcome: str) -> None:
        worker = join(store)
        claimed = running(store, worker)
        change(store, Move.CANCEL, claimed.id)
        assert finish(store, worker, claimed, OUTCOMES[outcome], keep=outcome in FINAL)
        assert state(store, claimed.id) == (outcome if outcome in FINAL else State.CANCELLED)

    # -- attempts -------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("outcome", "failure"),
        [
            ("failed", BROKEN),
            ("again", BROKEN),
            ("snoozed", None),
            ("released", None),
            ("cancelled", None),
        ],
    )
    def test_an_attempt_that_did_not_succeed_is_remembered(self, store: Store, outcome: str, failure: Failure | None) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, OUTCOMES[outcome], now=LATER, took=55)
        (attempt,) = store.attempts(claimed.id)
        assert (attempt.claim, attempt.attempt, attempt.worker) == (1, 1, worker)
        assert (attempt.ended_at, attempt.outcome, attempt.took) == (LATER, outcome, 55)
        if failure:
            assert attempt.failure == failure

    def test_attempts_are_told_oldest_first_and_a_success_adds_none(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        for outcome in (Again(BROKEN, 0), Released("x"), Snoozed(0), Again(BROKEN, 0)):
            finish(store, worker, claimed, outcome)
            (claimed,) = claim(store, worker)
        finish(store, worker, claimed, Succeeded())
        told = [(each.claim, each.attempt, each.outcome) for each in store.attempts(claimed.id)]
        assert told == [(1, 1, "again"), (2, 2, "released"), (3, 2, "snoozed"), (4, 2, "again")]

    def test_a_job_that_never_failed_has_no_attempts_to_tell(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, Succeeded())
        assert store.attempts(claimed.id) == store.attempts(queued(store)) == store.attempts(new().id) == []

    def test_attempts_belong_to_their_job(self, store: Store) -> None:
        worker = join(store)
        one, two = running(store, worker), running(store, worker)
        finish(store, worker, one, Failed(Failure("A", "of one", "trace of one")), now=NOW + MINUTE)
        finish(store, worker, two, Failed(Failure("B", "of two", "trace of two")), now=NOW + MINUTE)
        assert [each.failure for each in store.attempts(one.id)] == [Failure("A", "of one", "trace of one")]
        assert [each.failure for each in store.attempts(two.id)] == [Failure("B", "of two", "trace of two")]
