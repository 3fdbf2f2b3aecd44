"""How jobs come in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rota.clock import SECOND
from rota.errors import NotSupported
from rota.model import Inserted, Move, NewJob, State
from rota.stores.base import Store
from rota.testing.contract.scene import (
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
    row,
    running,
    state,
)


class Inserting:
    def test_a_job_comes_back_as_it_went_in(self, store: Store) -> None:
        job = new(task="shop.send", queue="mail", args='[[1],{"a":2}]', priority=-3, max_attempts=9, key="k", delay=MINUTE)
        assert put(store, job) == [Inserted(job.id)]
        kept = row(store, job.id)
        assert (kept.task, kept.queue, kept.args) == ("shop.send", "mail", '[[1],{"a":2}]')
        assert (kept.priority, kept.max_attempts, kept.key) == (-3, 9, "k")
        assert (kept.state, kept.created_at, kept.due) == (State.SCHEDULED, NOW, NOW + MINUTE)
        assert (kept.claim, kept.excused, kept.attempt, kept.cancelling) == (0, 0, 0, False)
        assert {kept.worker, kept.claimed_at, kept.finished_at, kept.took, kept.result, kept.reason, kept.progress} == {None}

    @pytest.mark.parametrize(
        ("times", "due", "expected"),
        [
            ({}, NOW, State.QUEUED),
            ({"delay": SECOND}, NOW + SECOND, State.SCHEDULED),
            ({"run_at": NOW - SECOND}, NOW - SECOND, State.QUEUED),
            ({"run_at": NOW}, NOW, State.QUEUED),
            ({"run_at": NOW + 1}, NOW + 1, State.SCHEDULED),
        ],
        ids=["at once", "after a delay", "in the past", "now", "in the future"],
    )
    def test_a_job_is_queued_when_due_and_scheduled_before(
        self, store: Store, times: dict[str, Any], due: int, expected: State
    ) -> None:
        job = new(**times)
        put(store, job)
        assert (row(store, job.id).due, row(store, job.id).state) == (due, expected)

    def test_answers_come_in_the_order_of_the_jobs(self, store: Store) -> None:
        jobs = [new(priority=n % 3, key=f"k{n % 7}") for n in range(20)][::-1]
        holders: dict[str | None, str] = {}
        expected = []
        for job in jobs:
            existed = job.key in holders
            expected.append(Inserted(holders.setdefault(job.key, job.id), existed))
        assert put(store, *jobs) == expected

    def test_inserting_nothing_is_fine(self, store: Store) -> None:
        assert store.insert([], now=NOW) == []

    def test_an_iterator_is_read_to_its_end_and_keeps_its_order(self, store: Store) -> None:
        jobs = [new() for _ in range(5000)]
        assert ids(store.insert(iter(jobs), now=NOW)) == ids_of(jobs)
        assert ids(claim(store, join(store), limit=10_000)) == ids_of(jobs)

    def test_jobs_are_added_all_or_none(self, store: Store) -> None:
        def broken() -> Iterator[NewJob]:
            yield from [new() for _ in range(5000)]
            raise OSError("the source of the jobs broke")

        with pytest.raises(OSError, match="the source of the jobs broke"):
            store.insert(broken(), now=NOW)
        assert everything(store) == []
        job = new()
        put(store, job)
        assert ids(everything(store)) == [job.id]

    def test_an_insert_sent_twice_makes_one_job(self, store: Store) -> None:
        jobs = [new(), new(key="k"), new(delay=MINUTE)]
        assert put(store, *jobs) == put(store, *jobs) == [Inserted(job.id) for job in jobs]
        assert ids(everything(store)) == ids_of(jobs)

    def test_an_id_that_comes_twice_in_a_batch_makes_one_job(self, store: Store) -> None:
        job = new()
        assert put(store, job, job) == [Inserted(job.id)] * 2
        assert ids(everything(store)) == [job.id]

    def test_an_insert_sent_again_leaves_a_running_job_as_it_is(self, store: Store) -> None:
        worker = join(store)
        job = new(key="k")
        put(store, job)
        claim(store, worker)
        before = row(store, job.id)
        assert put(store, job, now=NOW + MINUTE) == [Inserted(job.id)]
        assert row(store, job.id) == before

    @pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled"])
    def test_an_insert_sent_again_leaves_a_finished_job_as_it_is(self, store: Store, outcome: str) -> None:
        worker = join(store)
        job = new(key="k")
        put(store, job)
        (claimed,) = claim(store, worker)
        finish(store, worker, claimed, OUTCOMES[outcome])
        before = row(store, job.id)
        assert put(store, new(), job, now=NOW + MINUTE)[1] == Inserted(job.id)
        assert row(store, job.id) == before
        assert len(everything(store)) == 2
        assert len(claim(store, worker)) == 1

    def test_an_insert_sent_again_does_not_touch_the_job_that_holds_the_key_by_now(self, store: Store) -> None:
        job = new(key="k")
        put(store, job)
        change(store, Move.CANCEL, job.id)
        successor = new(key="k")
        assert put(store, successor) == [Inserted(successor.id)]
        assert put(store, job) == [Inserted(job.id)]
        assert (state(store, job.id), state(store, successor.id)) == (State.CANCELLED, State.QUEUED)

    def test_old_and_new_jobs_mix_in_a_batch(self, store: Store) -> None:
        worker = join(store)
        old = running(store, worker)
        fresh = new()
        again = NewJob(id=old.id, task=old.task, queue=old.queue, args=old.args)
        assert put(store, again, fresh) == [Inserted(old.id), Inserted(fresh.id)]
        assert (state(store, old.id), state(store, fresh.id)) == (State.RUNNING, State.QUEUED)

    def test_it_tells_how_its_queries_are_put_to_connections_of_others_or_refuses(self, store: Store) -> None:
        try:
            dialect = store.dialect()
        except NotSupported:
            return
        assert dialect.system
        assert dialect.place
        [statement] = dialect.statements("holder", {"task": "t", "key": "k"})
        assert sorted(statement.named()[1].items()) == [("key", "k"), ("task", "t")]


def ids_of(jobs: list[NewJob]) -> list[str]:
    return [job.id for job in jobs]
