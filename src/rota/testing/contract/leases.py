"""Leases: renewing them, losing them, and what a worker that comes back too late is told."""

from __future__ import annotations

import pytest

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Lost, Move, Pulse, Reaped, Report, State, Succeeded
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

OVER = NOW + LEASE
"""The moment at which the lease of a worker that joined at `NOW` has run out."""


class Leases:
    # -- beating --------------------------------------------------------------------------------

    def test_a_beat_renews_the_lease_by_the_workers_own_length(self, store: Store) -> None:
        quick, slow = join(store, lease=SECOND), join(store, lease=MINUTE, now=NOW + 1)
        assert store.beat(quick, [], now=NOW + 900_000) == Pulse(alive=True)
        assert [(seen.id, seen.lease_until) for seen in store.workers()] == [
            (quick, NOW + 1_900_000),
            (slow, NOW + 1 + MINUTE),
        ]

    def test_a_job_is_kept_for_as_long_as_its_worker_beats(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        for step in range(1, 20):
            now = NOW + step * 20 * SECOND
            assert store.beat(worker, [Report(claimed.id, claimed.claim)], now=now) == Pulse(alive=True)
            assert store.lost(10, now=now).lost == []
        assert finish(store, worker, claimed, Succeeded(), now=NOW + 400 * SECOND)

    def test_a_claim_late_in_the_lease_is_protected_by_the_next_beat(self, store: Store) -> None:
        worker = join(store)
        store.beat(worker, [], now=OVER - 1)
        claimed = running(store, worker, now=OVER - 1)
        assert store.lost(10, now=OVER + LEASE - 2).lost == []
        assert state(store, claimed.id) == State.RUNNING

    def test_a_beat_that_comes_late_revives_a_worker_that_was_not_reaped(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert store.beat(worker, [Report(claimed.id, 1)], now=OVER + MINUTE) == Pulse(alive=True)
        assert store.lost(10, now=OVER + MINUTE).lost == []

    def test_a_beat_stores_progress_where_it_changed(self, store: Store) -> None:
        worker = join(store)
        one, two = running(store, worker), running(store, worker)
        store.beat(worker, [Report(one.id, 1, "[1,10]"), Report(two.id, 1)], now=NOW)
        assert (row(store, one.id).progress, row(store, two.id).progress) == ("[1,10]", None)
        store.beat(worker, [Report(one.id, 1), Report(two.id, 1, "[5,10]")], now=NOW)
        assert (row(store, one.id).progress, row(store, two.id).progress) == ("[1,10]", "[5,10]")

    def test_a_beat_tells_which_jobs_someone_asked_to_cancel(self, store: Store) -> None:
        worker = join(store)
        going, cancelled = running(store, worker), running(store, worker)
        change(store, Move.CANCEL, cancelled.id)
        reports = [Report(going.id, 1), Report(cancelled.id, 1)]
        for _ in range(2):
            assert store.beat(worker, reports, now=NOW) == Pulse(alive=True, cancelled=frozenset({cancelled.id}))
        assert row(store, cancelled.id).cancelling
        assert not row(store, going.id).cancelling

    def test_a_beat_tells_which_jobs_are_no_longer_the_workers(self, store: Store) -> None:
        worker, other = join(store), join(store)
        mine = running(store, worker)
        theirs = running(store, other)
        waiting, unknown = queued(store), new().id
        done = job_done(store, worker)
        reports = [Report(id, 1, "[1,2]") for id in (mine.id, theirs.id, waiting, unknown, done)]
        pulse = store.beat(worker, reports, now=NOW)
        assert pulse == Pulse(alive=True, lost=frozenset({theirs.id, waiting, unknown, done}))
        assert [each.progress for each in store.get([theirs.id, waiting, done])] == [None] * 3

    def test_a_beat_tells_a_claim_that_the_worker_itself_claimed_anew(self, store: Store) -> None:
        worker = join(store)
        first = running(store, worker)
        finish(store, worker, first, OUTCOMES["released"])
        (second,) = claim(store, worker)
        assert store.beat(worker, [Report(first.id, first.claim, "1")], now=NOW).lost == {first.id}
        assert store.beat(worker, [Report(first.id, second.claim)], now=NOW).lost == frozenset()
        assert row(store, first.id).progress is None

    @pytest.mark.parametrize("road", ["never joined", "left", "reaped"])
    def test_a_beat_brings_no_forgotten_worker_back(self, store: Store, road: str) -> None:
        worker = new_id() if road == "never joined" else join(store)
        id = queued(store)
        claim(store, worker)
        if road == "left":
            store.leave(worker, now=NOW)
        store.lost(10, now=OVER)
        before = row(store, id)
        assert not store.beat(worker, [Report(id, 1, "1")], now=OVER).alive
        assert (store.workers(), row(store, id)) == ([], before)

    # -- losing ---------------------------------------------------------------------------------

    def test_a_lost_job_is_queued_at_once_while_attempts_remain(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=2)
        reaped = store.lost(10, now=OVER)
        assert reaped == Reaped([Lost(claimed.id, "tests.task", "default", 1, worker, State.QUEUED, "w")], None)
        back = row(store, claimed.id)
        assert (back.state, back.worker, back.claim, back.attempt) == (State.QUEUED, None, 1, 1)
        (again,) = claim(store, join(store, now=OVER), now=OVER)
        assert (again.id, again.claim, again.attempt) == (claimed.id, 2, 2)

    def test_a_job_lost_on_its_last_attempt_fails_and_says_why(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=1)
        reaped = store.lost(10, now=OVER)
        assert reaped.lost == [Lost(claimed.id, "tests.task", "default", 1, worker, State.FAILED, "w")]
        failed = row(store, claimed.id)
        assert (failed.state, failed.finished_at, failed.attempt) == (State.FAILED, OVER, 1)
        assert str(failed.reason).startswith("worker lost")

    def test_excused_claims_do_not_bring_the_last_attempt_nearer(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=2)
        for _ in range(3):
            finish(store, worker, claimed, OUTCOMES["released"])
            (claimed,) = claim(store, worker)
        assert [lost.state for lost in store.lost(10, now=OVER).lost] == [State.QUEUED]

    def test_a_lost_job_that_someone_asked_to_cancel_is_cancelled(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        change(store, Move.CANCEL, claimed.id)
        assert [lost.state for lost in store.lost(10, now=OVER).lost] == [State.CANCELLED]
        assert (row(store, claimed.id).state, row(store, claimed.id).finished_at) == (State.CANCELLED, OVER)

    @pytest.mark.parametrize("max_attempts", [1, 5])
    def test_a_lost_attempt_is_remembered(self, store: Store, max_attempts: int) -> None:
        worker = join(store)
        claimed = running(store, worker, max_attempts=max_attempts)
        store.lost(10, now=OVER)
        (attempt,) = store.attempts(claimed.id)
        assert (attempt.claim, attempt.attempt, attempt.worker) == (1, 1, worker)
        assert (attempt.ended_at, attempt.outcome) == (OVER, "lost")
        assert attempt.failure is not None
        assert attempt.failure.type
        assert attempt.failure.message.startswith("worker lost")

    def test_nothing_is_lost_while_its_workers_lease_lasts(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        assert store.lost(10, now=OVER - 1) == Reaped([], 1)
        assert state(store, claimed.id) == State.RUNNING
        assert len(store.lost(10, now=OVER).lost) == 1

    def test_the_time_since_the_start_loses_nothing(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        store.beat(worker, [Report(claimed.id, 1)], now=NOW + 1000 * LEASE)
        assert store.lost(10, now=NOW + 1000 * LEASE).lost == []

    def test_reaping_tells_how_long_until_the_next_lease_runs_out(self, store: Store) -> None:
        assert store.lost(10, now=NOW) == Reaped([], None)
        join(store, lease=MINUTE)
        join(store, lease=SECOND)
        assert store.lost(10, now=NOW) == Reaped([], SECOND)
        assert store.lost(10, now=NOW + SECOND) == Reaped([], MINUTE - SECOND)
        assert store.lost(10, now=NOW + MINUTE) == Reaped([], None)

    def test_reaping_takes_no_more_than_its_limit_and_comes_back_for_the_rest(self, store: Store) -> None:
        workers = [join(store), join(store)]
        held = [running(store, worker).id for worker in workers for _ in range(5)]
        taken: list[str] = []
        for expected in (4, 4):
            reaped = store.lost(4, now=OVER)
            assert len(reaped.lost) == expected
            assert reaped.next_in == 0
            taken += ids_of(reaped.lost)
        reaped = store.lost(4, now=OVER)
        assert (len(reaped.lost), reaped.next_in) == (2, None)
        assert sorted(taken + ids_of(reaped.lost)) == sorted(held)
        assert store.workers() == []

    def test_a_lease_that_is_ended_early_loses_the_jobs_at_once_and_their_attempts_count(self, store: Store) -> None:
        fallen, living = join(store), join(store)
        job, other = running(store, fallen), running(store, living)
        store.expire(fallen, now=NOW + 2)
        store.expire("nobody", now=NOW + 2)
        (lost,) = store.lost(10, now=NOW + 2).lost
        assert (lost.id, lost.worker, lost.state) == (job.id, fallen, State.QUEUED)
        assert row(store, job.id).attempt == 1
        assert state(store, other.id) is State.RUNNING
        assert [worker.id for worker in store.workers()] == [living]

    def test_only_the_jobs_of_the_dead_worker_are_lost(self, store: Store) -> None:
        dead, alive = join(store), join(store)
        gone, kept = running(store, dead), running(store, alive)
        store.beat(alive, [], now=OVER - 1)
        assert ids_of(store.lost(10, now=OVER).lost) == [gone.id]
        assert [seen.id for seen in store.workers()] == [alive]
        assert (row(store, kept.id).state, row(store, kept.id).worker) == (State.RUNNING, alive)

    def test_a_reaped_worker_changes_nothing_any_more(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        store.lost(10, now=OVER)
        before = row(store, claimed.id)
        assert not store.beat(worker, [Report(claimed.id, 1, "1")], now=OVER).alive
        assert not finish(store, worker, claimed, Succeeded(), now=OVER)
        assert claim(store, worker, now=OVER) == []
        store.leave(worker, now=OVER)
        assert row(store, claimed.id) == before

    def test_a_job_that_always_loses_its_worker_ends(self, store: Store) -> None:
        id = queued(store, max_attempts=3)
        harmless = queued(store, priority=-1)
        states = []
        for turn in range(3):
            now = NOW + turn * LEASE
            assert ids(claim(store, join(store, now=now), 1, now=now)) == [id]
            states += [lost.state for lost in store.lost(10, now=now + LEASE).lost]
        assert states == [State.QUEUED, State.QUEUED, State.FAILED]
        assert ids(claim(store, join(store, now=now + LEASE), now=now + LEASE)) == [harmless]

    def test_a_retry_after_losses_starts_the_attempts_afresh(self, store: Store) -> None:
        claimed = running(store, join(store), max_attempts=1)
        store.lost(10, now=OVER)
        change(store, Move.RETRY, claimed.id, now=OVER)
        (again,) = claim(store, join(store, now=OVER), now=OVER)
        assert (again.attempt, again.max_attempts) == (1, 1)


def job_done(store: Store, worker: str) -> str:
    """The id of a job that this worker has finished, leaving other jobs alone."""
    job = new(queue="a queue of its own")
    put(store, job)
    (claimed,) = claim(store, worker, queues=(job.queue,))
    assert finish(store, worker, claimed, Succeeded())
    return job.id


def ids_of(losses: list[Lost]) -> list[str]:
    return [lost.id for lost in losses]
