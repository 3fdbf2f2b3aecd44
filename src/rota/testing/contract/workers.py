"""Workers: joining, leaving and being seen; and what they declare of their tasks."""

from __future__ import annotations

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Move, State, Succeeded, TaskRow
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    MINUTE,
    NOW,
    change,
    claim,
    finish,
    ids,
    join,
    queued,
    row,
    running,
    state,
    worker_row,
)


class Workers:
    def test_a_worker_is_seen_as_it_joined(self, store: Store) -> None:
        worker = worker_row(
            name="w-1", host="box", pid=42, queues=["a", "b"], tasks=["t.one", "t.two"], concurrency=3, version="9"
        )
        store.join(worker, now=NOW)
        (seen,) = store.workers()
        assert (seen.id, seen.name, seen.host, seen.pid, seen.version) == (worker.id, "w-1", "box", 42, "9")
        assert (seen.queues, seen.tasks, seen.concurrency, seen.lease) == (["a", "b"], ["t.one", "t.two"], 3, LEASE)
        assert (seen.started_at, seen.lease_until, seen.asleep) == (NOW, NOW + LEASE, False)

    def test_a_worker_is_seen_with_what_befell_the_one_before_it(self, store: Store) -> None:
        join(store, now=NOW)
        join(store, trouble="RuntimeError: it broke\0", concurrency=0, queues=[], now=NOW + 1)
        plain, fallen = store.workers()
        assert (plain.trouble, plain.fallen) == (None, False)
        assert fallen.trouble is not None
        assert fallen.trouble.startswith("RuntimeError: it broke")
        assert (fallen.fallen, fallen.queues) == (True, [])

    def test_a_worker_of_all_queues_is_told_from_one_of_none(self, store: Store) -> None:
        join(store, queues=None, now=NOW)
        join(store, queues=[], now=NOW + 1)
        assert [seen.queues for seen in store.workers()] == [None, []]

    def test_workers_are_told_oldest_first_until_they_leave(self, store: Store) -> None:
        young, old, gone = join(store, now=NOW + SECOND), join(store, now=NOW), join(store, now=NOW - SECOND)
        store.leave(gone, now=NOW)
        assert [seen.id for seen in store.workers()] == [old, young]

    def test_a_worker_whose_lease_ran_out_is_seen_until_it_is_reaped(self, store: Store) -> None:
        worker = join(store)
        store.lost(10, now=NOW + LEASE - 1)
        assert [seen.id for seen in store.workers()] == [worker]
        store.lost(10, now=NOW + LEASE)
        assert store.workers() == []

    def test_workers_of_one_name_on_one_host_are_two(self, store: Store) -> None:
        first, second = join(store, name="same", host="same", pid=1), join(store, name="same", host="same", pid=1)
        claimed = running(store, first)
        store.leave(second, now=NOW)
        assert (state(store, claimed.id), row(store, claimed.id).worker) == (State.RUNNING, first)

    # -- leaving --------------------------------------------------------------------------------

    def test_a_worker_that_leaves_hands_its_jobs_back_without_using_an_attempt(self, store: Store) -> None:
        worker, other = join(store), join(store)
        held = [running(store, worker, max_attempts=1) for _ in range(3)]
        kept = running(store, other)
        store.leave(worker, now=NOW + SECOND)
        for claimed in held:
            back = row(store, claimed.id)
            assert (back.state, back.worker, back.claim, back.attempt) == (State.QUEUED, None, 1, 0)
            assert [each.outcome for each in store.attempts(claimed.id)] in ([], ["released"])
        assert row(store, kept.id).worker == other
        taken = claim(store, other, now=NOW + SECOND)
        assert sorted(ids(taken)) == sorted(ids(held))
        assert {(each.claim, each.attempt) for each in taken} == {(2, 1)}

    def test_leaving_cancels_a_job_that_someone_asked_to_cancel(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        change(store, Move.CANCEL, claimed.id)
        store.leave(worker, now=NOW)
        assert state(store, claimed.id) == State.CANCELLED

    def test_a_worker_that_left_changes_nothing_any_more(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        store.leave(worker, now=NOW)
        before = row(store, claimed.id)
        assert not finish(store, worker, claimed, Succeeded())
        assert not store.beat(worker, [], now=NOW).alive
        assert row(store, claimed.id) == before

    def test_leaving_twice_or_without_having_joined_is_fine(self, store: Store) -> None:
        worker, id = join(store), queued(store)
        store.leave(worker, now=NOW)
        store.leave(worker, now=NOW)
        store.leave(new_id(), now=NOW)
        assert (store.workers(), state(store, id)) == ([], State.QUEUED)

    # -- reconciling ----------------------------------------------------------------------------

    def test_reconciling_puts_back_what_the_worker_never_heard_of(self, store: Store) -> None:
        worker, other = join(store), join(store)
        kept, unheard, theirs = running(store, worker), running(store, worker, max_attempts=1), running(store, other)
        before = sorted(store.get([kept.id, theirs.id]), key=lambda job: job.id)
        assert store.reconcile(worker, [kept.id], now=NOW + SECOND) == 1
        assert sorted(store.get([kept.id, theirs.id]), key=lambda job: job.id) == before
        back = row(store, unheard.id)
        assert (back.state, back.worker, back.claim, back.attempt) == (State.QUEUED, None, 1, 0)
        assert not finish(store, worker, unheard, Succeeded())
        assert [(each.id, each.claim, each.attempt) for each in claim(store, other)] == [(unheard.id, 2, 1)]

    def test_reconciling_with_everything_held_changes_nothing(self, store: Store) -> None:
        worker = join(store)
        held = [running(store, worker).id for _ in range(3)]
        waiting = queued(store)
        assert store.reconcile(worker, [*held, waiting, new_id()], now=NOW) == 0
        assert [state(store, id) for id in (*held, waiting)] == ["running"] * 3 + ["queued"]

    def test_reconciling_cancels_a_job_that_someone_asked_to_cancel(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        change(store, Move.CANCEL, claimed.id)
        store.reconcile(worker, [], now=NOW)
        assert state(store, claimed.id) == State.CANCELLED

    def test_reconciling_for_an_unknown_worker_does_nothing(self, store: Store) -> None:
        running(store, join(store))
        assert store.reconcile(new_id(), [], now=NOW) == 0

    # -- resting --------------------------------------------------------------------------------

    def test_a_resting_worker_is_seen_asleep(self, store: Store) -> None:
        worker, other = join(store, now=NOW), join(store, now=NOW + 1)
        store.rest(worker, True)
        assert {seen.id: seen.asleep for seen in store.workers()} == {worker: True, other: False}
        store.rest(worker, False)
        assert {seen.id: seen.asleep for seen in store.workers()} == {worker: False, other: False}

    def test_resting_brings_no_forgotten_worker_back(self, store: Store) -> None:
        worker = join(store)
        store.leave(worker, now=NOW)
        store.rest(worker, True)
        store.rest(new_id(), True)
        assert store.workers() == []

    def test_resting_does_not_renew_the_lease(self, store: Store) -> None:
        worker = join(store)
        store.rest(worker, True)
        assert [seen.lease_until for seen in store.workers()] == [NOW + LEASE]

    # -- declaring ------------------------------------------------------------------------------

    def test_the_last_declaration_of_a_task_counts(self, store: Store) -> None:
        store.declare([TaskRow("a", "one", 1, 5), TaskRow("b", "two", -2, 9)])
        store.declare([TaskRow("a", "three", 3, 1)])
        assert store.declared("a") == TaskRow("a", "three", 3, 1)
        assert store.declared("b") == TaskRow("b", "two", -2, 9)

    def test_of_a_task_declared_twice_at_once_the_last_counts(self, store: Store) -> None:
        store.declare([TaskRow("a", "one", 1, 5), TaskRow("a", "two", 2, 6)])
        assert store.declared("a") == TaskRow("a", "two", 2, 6)

    def test_a_task_that_nobody_declared_is_not_known(self, store: Store) -> None:
        store.declare([])
        assert store.declared("a") is None

    def test_declarations_outlive_the_worker(self, store: Store) -> None:
        worker = join(store)
        store.declare([TaskRow("a", "one", 1, 5)])
        store.leave(worker, now=NOW + MINUTE)
        assert store.declared("a") == TaskRow("a", "one", 1, 5)
