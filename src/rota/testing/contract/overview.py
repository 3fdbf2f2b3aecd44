"""What goes on at the moment: how many jobs wait and run, how many come in and end, and what ended last."""

from __future__ import annotations

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Flow, Move, NewJob, State, Unfinished
from rota.stores.base import Store
from rota.testing.contract.scene import MINUTE, NOW, OUTCOMES, change, claim, finish, ids, join, new, put, queued, running


class Overview:
    def test_unfinished_jobs_are_counted_by_queue_state_and_worker(self, store: Store) -> None:
        one, two = join(store), join(store)
        put(store, *(new(queue="mail") for _ in range(3)), new(queue="post"))
        claim(store, one, limit=2, queues=["mail"])
        claim(store, two, limit=1, queues=["mail"])
        put(store, *(new(queue="mail") for _ in range(4)), new(queue="mail", delay=MINUTE))
        finish(store, two, running(store, two, queue="other"), OUTCOMES["succeeded"])
        assert sorted(store.unfinished(), key=lambda each: (each.queue, each.state, -each.jobs)) == [
            Unfinished("mail", State.QUEUED, None, 4, NOW),
            Unfinished("mail", State.RUNNING, one, 2, NOW),
            Unfinished("mail", State.RUNNING, two, 1, NOW),
            Unfinished("mail", State.SCHEDULED, None, 1, NOW + MINUTE),
            Unfinished("post", State.QUEUED, None, 1, NOW),
        ]

    def test_the_first_to_become_due_is_told(self, store: Store) -> None:
        for due in (5, 3, 4):
            queued(store, run_at=NOW - due)
        assert [each.oldest for each in store.unfinished()] == [NOW - 5]

    def test_what_came_in_and_what_ended_lately_is_counted(self, store: Store) -> None:
        start = _present()
        worker = join(store, start)
        before = queued(store, start - MINUTE)
        [claimed] = claim(store, worker, now=start - MINUTE)
        finish(store, worker, claimed, OUTCOMES["succeeded"], start - MINUTE)
        for outcome in ("succeeded", "succeeded", "failed"):
            finish(store, worker, running(store, worker, start, queue="mail"), OUTCOMES[outcome], start)
        put(store, new(queue="mail"), new(queue="post", delay=MINUTE), now=start)
        change(store, Move.CANCEL, queued(store, start, queue="post"), start)
        assert sorted(store.flow(10 * SECOND, now=start), key=repr) == sorted(
            [
                Flow("mail", None, None, 4),
                Flow("mail", worker, State.SUCCEEDED, 2),
                Flow("mail", worker, State.FAILED, 1),
                Flow("post", None, None, 2),
                Flow("post", None, State.CANCELLED, 1),
            ],
            key=repr,
        )
        assert ids(store.get([before])) == [before]

    def test_nothing_flows_once_time_has_passed(self, store: Store) -> None:
        start = _present()
        worker = join(store, start)
        finish(store, worker, running(store, worker, start), OUTCOMES["succeeded"], start)
        assert store.flow(SECOND, now=start + SECOND) == []
        assert store.flow(SECOND + 1, now=start + SECOND) != []

    def test_by_the_stores_own_clock_the_last_moments_flow(self, store: Store) -> None:
        store.insert([NewJob(new_id(), "t", "mail", "[[],{}]") for _ in range(3)])
        assert store.flow(MINUTE) == [Flow("mail", None, None, 3)]

    def test_those_that_ended_last_come_first(self, store: Store) -> None:
        worker = join(store)
        jobs = [running(store, worker) for _ in range(3)]
        for at, number in enumerate((1, 0, 2)):
            finish(store, worker, jobs[number], OUTCOMES["failed"], NOW + at)
        finish(store, worker, running(store, worker), OUTCOMES["succeeded"], NOW + 9)
        assert ids(store.latest(State.FAILED, 2)) == [jobs[2].id, jobs[0].id]
        assert len(store.latest(State.FAILED, 10)) == 3
        assert store.latest(State.CANCELLED, 10) == []


def _present() -> int:
    """The moment of this machine, by which ids are made."""
    return int(new_id().replace("-", "")[:12], 16) * 1000
