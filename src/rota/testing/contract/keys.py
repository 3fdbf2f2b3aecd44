"""What makes two jobs of a task the same job while one of them is unfinished."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from rota.clock import SECOND
from rota.model import Filter, Inserted, Move, Promoted, State
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    change,
    claim,
    everything,
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


def _finish_with(outcome: str, keep: bool = True) -> Callable[[Store], None]:
    def end(store: Store) -> None:
        worker = join(store)
        assert finish(store, worker, running(store, worker, key="k"), OUTCOMES[outcome], keep=keep)

    return end


def _changed(move: Move, **options: int) -> Callable[[Store], None]:
    def end(store: Store) -> None:
        change(store, move, queued(store, key="k", **options))

    return end


def _lost_on_its_last_attempt(store: Store) -> None:
    running(store, join(store), key="k", max_attempts=1)
    assert [lost.state for lost in store.lost(10, now=NOW + LEASE).lost] == [State.FAILED]


def _cancelled_while_running_and_lost(store: Store) -> None:
    change(store, Move.CANCEL, running(store, join(store), key="k").id)
    assert [lost.state for lost in store.lost(10, now=NOW + LEASE).lost] == [State.CANCELLED]


def _finished_and_pruned(store: Store) -> None:
    _finish_with("succeeded")(store)
    assert store.prune({State.SUCCEEDED: 0}, 10, now=NOW + SECOND) == {State.SUCCEEDED: 1}


ENDS: Mapping[str, Callable[[Store], None]] = {
    "success": _finish_with("succeeded"),
    "success that is not kept": _finish_with("succeeded", keep=False),
    "failure": _finish_with("failed"),
    "failure that is not kept": _finish_with("failed", keep=False),
    "cancelled by its worker": _finish_with("cancelled"),
    "cancelled while queued": _changed(Move.CANCEL),
    "cancelled while scheduled": _changed(Move.CANCEL, delay=MINUTE),
    "deleted while queued": _changed(Move.DELETE),
    "deleted while scheduled": _changed(Move.DELETE, delay=MINUTE),
    "lost on its last attempt": _lost_on_its_last_attempt,
    "cancelled while running and lost": _cancelled_while_running_and_lost,
    "finished and pruned": _finished_and_pruned,
}
"""Every road by which a job that holds the key `k` ends."""

GOING_ON = {
    "scheduled": lambda store: queued(store, key="k", delay=MINUTE),
    "queued": lambda store: queued(store, key="k"),
    "running": lambda store: running(store, join(store), key="k").id,
    "waiting for another attempt": lambda store: _after(store, "again"),
    "snoozed": lambda store: _after(store, "snoozed"),
    "released": lambda store: _after(store, "released"),
}
"""Every way in which a job that holds the key `k` is unfinished."""


def _after(store: Store, outcome: str) -> str:
    worker = join(store)
    claimed = running(store, worker, key="k")
    assert finish(store, worker, claimed, OUTCOMES[outcome])
    return claimed.id


class Keys:
    @pytest.mark.parametrize("stage", GOING_ON)
    def test_a_key_is_taken_while_its_job_is_unfinished(self, store: Store, stage: str) -> None:
        holder = GOING_ON[stage](store)
        other = new(key="k")
        assert put(store, other) == [Inserted(holder, existed=True)]
        assert state(store, other.id) is None

    @pytest.mark.parametrize("road", ENDS)
    def test_a_key_is_free_after_its_job_ended(self, store: Store, road: str) -> None:
        ENDS[road](store)
        successor = new(key="k")
        assert put(store, successor) == [Inserted(successor.id)]
        assert put(store, new(key="k")) == [Inserted(successor.id, existed=True)]

    def test_a_key_belongs_to_its_task(self, store: Store) -> None:
        jobs = [new(task="a", key="k"), new(task="b", key="k"), new(task="b", key="k2"), new(task="b"), new(task="b")]
        assert put(store, *jobs) == [Inserted(job.id) for job in jobs]

    def test_a_key_is_the_same_on_every_queue(self, store: Store) -> None:
        holder = queued(store, queue="one", key="k")
        assert put(store, new(queue="two", key="k")) == [Inserted(holder, existed=True)]

    def test_an_empty_key_is_a_key(self, store: Store) -> None:
        holder = queued(store, key="")
        assert put(store, new(key="")) == [Inserted(holder, existed=True)]

    def test_jobs_with_a_taken_key_do_not_stop_the_others_of_their_batch(self, store: Store) -> None:
        holder = queued(store, key="k")
        batch = [new(), new(key="k"), new(key="other"), new(key="other"), new()]
        assert put(store, *batch) == [
            Inserted(batch[0].id),
            Inserted(holder, existed=True),
            Inserted(batch[2].id),
            Inserted(batch[2].id, existed=True),
            Inserted(batch[4].id),
        ]
        assert ids(everything(store)) == [holder, batch[0].id, batch[2].id, batch[4].id]

    def test_a_waiting_key_is_taken_until_the_first_claim(self, store: Store) -> None:
        worker = join(store)
        holder = queued(store, key="k", key_waiting=True)
        assert put(store, new(key="k", key_waiting=True)) == [Inserted(holder, existed=True)]
        claim(store, worker)
        assert row(store, holder).key is None
        successor = new(key="k", key_waiting=True)
        assert put(store, successor) == [Inserted(successor.id)]

    @pytest.mark.parametrize("waiting", [False, True])
    def test_until_when_a_key_counts_is_known_of_jobs_in_all_states(self, store: Store, waiting: bool) -> None:
        worker = join(store)
        scheduled = queued(store, key="later", key_waiting=waiting, delay=SECOND)
        failed = running(store, worker, key="k", key_waiting=waiting)
        finish(store, worker, failed, OUTCOMES["failed"])
        done = running(store, worker, key="k", key_waiting=waiting)
        finish(store, worker, done, OUTCOMES["succeeded"])
        begun = running(store, worker, key="k", key_waiting=waiting)
        expected = {scheduled: waiting, failed.id: waiting, done.id: waiting, begun.id: waiting}
        assert {each.id: each.key_waiting for each in store.get(list(expected))} == expected
        assert {each.id: each.key_waiting for each in everything(store)} == expected
        [by_state] = store.find(Filter((State.FAILED,)), 10)
        [by_key] = store.find(Filter(key="later"), 10)
        [latest] = store.latest(State.SUCCEEDED, 10)
        assert [by_state.key_waiting, by_key.key_waiting, latest.key_waiting] == [waiting] * 3

    @pytest.mark.parametrize("outcome", ["again", "snoozed", "released"])
    def test_a_waiting_key_stays_free_when_its_job_goes_back_to_waiting(self, store: Store, outcome: str) -> None:
        worker = join(store)
        first = running(store, worker, key="k", key_waiting=True)
        second = queued(store, key="k", key_waiting=True)
        assert finish(store, worker, first, OUTCOMES[outcome])
        assert put(store, new(key="k", key_waiting=True)) == [Inserted(second, existed=True)]
        store.promote(10, now=NOW + MINUTE)
        assert {claimed.id for claimed in claim(store, worker, now=NOW + MINUTE)} == {first.id, second}

    def test_jobs_whose_waiting_keys_others_have_by_now_keep_nothing_from_being_promoted(self, store: Store) -> None:
        worker = join(store)
        for outcome in ("again", "snoozed"):
            first = running(store, worker, queue=outcome, key=outcome, key_waiting=True)
            queued(store, queue=outcome, key=outcome, key_waiting=True, delay=SECOND)
            assert finish(store, worker, first, OUTCOMES[outcome])
        others = [new(queue=f"q{number % 10}", key=f"k{number}", delay=SECOND) for number in range(100)]
        put(store, *others)
        assert store.promote(1000, now=NOW + SECOND) == Promoted(104, None)
        claims = claim(store, worker, 1000, ["again", "snoozed", *(f"q{number}" for number in range(10))], now=NOW + SECOND)
        assert len(claims) == 104
        assert {job.id for job in others} < set(ids(claims))

    @pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "is lost"])
    def test_a_waiting_key_stays_free_when_its_worker(self, store: Store, leaves: bool) -> None:
        worker = join(store)
        first = running(store, worker, key="k", key_waiting=True)
        second = queued(store, key="k", key_waiting=True)
        if leaves:
            store.leave(worker, now=NOW)
        else:
            store.lost(10, now=NOW + LEASE)
        assert {claimed.id for claimed in claim(store, join(store, now=NOW + LEASE), now=NOW + LEASE)} == {first.id, second}

    @pytest.mark.parametrize("road", ["succeeded", "failed", "cancelled"])
    def test_a_retry_takes_the_key_again(self, store: Store, road: str) -> None:
        worker = join(store)
        claimed = running(store, worker, key="k")
        finish(store, worker, claimed, OUTCOMES[road])
        assert change(store, Move.RETRY, claimed.id).after is State.QUEUED
        assert put(store, new(key="k")) == [Inserted(claimed.id, existed=True)]

    @pytest.mark.parametrize("waiting", [False, True], ids=["until finished", "while waiting"])
    @pytest.mark.parametrize("end", ["failed", "cancelled before its first claim"])
    def test_a_retry_is_refused_while_another_job_has_the_key(self, store: Store, end: str, waiting: bool) -> None:
        worker = join(store)
        if end == "failed":
            claimed = running(store, worker, key="k")
            finish(store, worker, claimed, OUTCOMES["failed"])
            old = claimed.id
        else:
            old = queued(store, key="k", key_waiting=waiting)
            change(store, Move.CANCEL, old)
        holder = queued(store, key="k", key_waiting=waiting)
        before = row(store, old)
        changed = change(store, Move.RETRY, old)
        assert changed.after is changed.before is before.state
        assert row(store, old) == before
        change(store, Move.CANCEL, holder)
        assert change(store, Move.RETRY, old).after is State.QUEUED
        assert put(store, new(key="k")) == [Inserted(old, existed=True)]

    def test_a_waiting_key_does_not_come_back_with_a_retry_after_a_claim(self, store: Store) -> None:
        worker = join(store)
        old = running(store, worker, key="k", key_waiting=True)
        finish(store, worker, old, OUTCOMES["failed"])
        holder = queued(store, key="k", key_waiting=True)
        assert change(store, Move.RETRY, old.id).after is State.QUEUED
        assert put(store, new(key="k", key_waiting=True)) == [Inserted(holder, existed=True)]
        change(store, Move.CANCEL, holder)
        successor = new(key="k", key_waiting=True)
        assert put(store, successor) == [Inserted(successor.id)]

    def test_of_two_jobs_with_one_key_a_single_change_retries_one(self, store: Store) -> None:
        worker = join(store)
        ended = []
        for _ in range(2):
            claimed = running(store, worker, key="k")
            finish(store, worker, claimed, OUTCOMES["failed"])
            ended.append(claimed.id)
        changed = store.change(Move.RETRY, ended, now=NOW)
        assert sorted(str(each.after) for each in changed) == ["failed", "queued"]
        assert sorted(each.state for each in store.get(ended)) == ["failed", "queued"]

    def test_a_refused_retry_does_not_stop_the_others_of_its_batch(self, store: Store) -> None:
        worker = join(store)
        old = [running(store, worker, key=key) for key in ("a", "b", "c")]
        for claimed in old:
            finish(store, worker, claimed, OUTCOMES["failed"])
        queued(store, key="b")
        changed = store.change(Move.RETRY, ids(old), now=NOW)
        assert [each.after for each in changed] == [State.QUEUED, State.FAILED, State.QUEUED]
