"""Finding jobs, live and finished alike, and counting them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Filter, JobRow, Move, NewJob, State
from rota.stores.base import Store
from rota.testing.contract.scene import (
    CLAIMED_FIRST,
    NOW,
    OUTCOMES,
    STATES,
    change,
    everything,
    finish,
    found,
    ids,
    job_in,
    join,
    new,
    put,
    queued,
    running,
)


def _populated(store: Store) -> dict[str, JobRow]:
    """Jobs in every state on two queues, of two tasks, with and without keys, held by two workers."""
    workers = [join(store), join(store)]
    for number, (wanted, queue, task) in enumerate(product(CLAIMED_FIRST, ("mail", "reports"), ("shop.a", "shop.b"))):
        job_in(store, wanted, workers[number % 2], queue=queue, task=task)
        if wanted.final or (wanted is State.RUNNING and queue == "mail"):
            key = "k1" if task == "shop.a" else "k2"
            job_in(store, wanted, workers[number % 3 % 2], queue=queue, task=task, key=key)
    return {each.id: each for each in everything(store)}


class Looking:
    # -- get ------------------------------------------------------------------------------------

    def test_jobs_are_got_in_every_state_and_unknown_ones_left_out(self, store: Store) -> None:
        worker = join(store)
        jobs = {job_in(store, wanted, worker).id: wanted for wanted in CLAIMED_FIRST}
        rows = store.get([*jobs, new_id()])
        assert {each.id: each.state for each in rows} == jobs
        assert len(rows) == len(jobs)

    def test_getting_nothing_is_fine(self, store: Store) -> None:
        queued(store)
        assert store.get([]) == store.get([new_id()]) == []

    # -- find -----------------------------------------------------------------------------------

    def test_jobs_are_found_newest_first_live_and_finished_alike(self, store: Store) -> None:
        worker = join(store)
        jobs: list[str] = []
        for wanted in (*CLAIMED_FIRST, *STATES[2:]):
            jobs.append(job_in(store, wanted, worker, queue=f"queue {len(jobs)}").id)
        assert found(store) == jobs[::-1]

    def test_newest_means_the_id_whenever_the_job_came_in(self, store: Store) -> None:
        jobs = [new() for _ in range(4)]
        for job in (jobs[2], jobs[0], jobs[3], jobs[1]):
            put(store, job)
        assert found(store) == ids_descending(jobs)

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_pages_join_without_a_gap_or_a_double(self, store: Store, size: int) -> None:
        rows = _populated(store)
        told: list[str] = []
        before = None
        while page := found(store, limit=size, before=before):
            assert len(page) <= size
            told += page
            before = page[-1]
        assert told == sorted(rows, reverse=True)

    def test_a_page_of_nothing_is_empty(self, store: Store) -> None:
        id = queued(store)
        assert found(store, limit=0) == found(store, before=id) == []

    def test_a_page_may_begin_anywhere(self, store: Store) -> None:
        jobs = [new() for _ in range(5)]
        put(store, jobs[0], jobs[2], jobs[4])
        assert found(store, before=jobs[3].id) == [jobs[2].id, jobs[0].id]

    def test_every_filter_narrows_live_and_finished_jobs_alike(self, store: Store) -> None:
        rows = _populated(store)
        workers = sorted({each.worker for each in rows.values() if each.worker})
        assert len(workers) == 2
        filters = [
            Filter(states, queue, task, key, worker)
            for states in ((), (State.RUNNING,), (State.FAILED, State.QUEUED), (State.SUCCEEDED, State.CANCELLED))
            for queue in (None, "mail")
            for task in (None, "shop.b")
            for key in (None, "k1", "k2")
            for worker in (None, workers[0])
        ]
        for which in filters:
            expected = [id for id in sorted(rows, reverse=True) if _matches(rows[id], which)]
            assert ids(store.find(which, 1000)) == expected, which
            assert ids(store.find(which, 2)) == expected[:2], which
            if expected:
                assert ids(store.find(which, 2, expected[0])) == expected[1:3], which

    @pytest.mark.parametrize("each", STATES)
    def test_each_state_is_found_alone(self, store: Store, each: State) -> None:
        rows = _populated(store)
        expected = [id for id in sorted(rows, reverse=True) if rows[id].state is each]
        assert expected
        assert found(store, states=(each,)) == expected

    @pytest.mark.parametrize("nothing", [{"queue": "x"}, {"task": "x"}, {"key": "x"}, {"worker": new_id()}])
    def test_what_no_job_has_finds_none(self, store: Store, nothing: dict[str, Any]) -> None:
        queued(store, key="k")
        assert found(store, **nothing) == []

    def test_a_job_is_found_by_its_key_after_it_finished(self, store: Store) -> None:
        worker = join(store)
        first = running(store, worker, key="k")
        finish(store, worker, first, OUTCOMES["succeeded"])
        second = queued(store, key="k")
        assert found(store, key="k") == [second, first.id]

    def test_a_running_job_is_found_by_its_worker(self, store: Store) -> None:
        one, two = join(store), join(store)
        mine, theirs = running(store, one), running(store, two)
        queued(store)
        assert (found(store, worker=one), found(store, worker=two)) == ([mine.id], [theirs.id])

    # -- counts ---------------------------------------------------------------------------------

    def test_counts_tell_jobs_by_queue_task_and_state_and_the_oldest_due(self, store: Store) -> None:
        _populated(store)
        queued(store, queue="mail", task="shop.a", run_at=NOW - 5)
        rows = {each.id: each for each in everything(store)}
        counts = store.counts()
        told = {(each.queue, each.task, each.state): each.jobs for each in counts}
        assert told == Counter((each.queue, each.task, each.state) for each in rows.values())
        assert len(told) == len(counts)
        for count in counts:
            if not count.state.final:
                dues = [each.due for each in rows.values() if _counted(each, count.queue, count.task, count.state)]
                assert count.oldest == min(dues)

    def test_an_empty_store_counts_nothing(self, store: Store) -> None:
        assert store.counts() == []

    # -- queues ---------------------------------------------------------------------------------

    def test_queues_are_those_under_which_jobs_may_be_claimed(self, store: Store) -> None:
        worker = join(store)
        assert store.queues() == []
        finish(store, worker, running(store, worker, queue="done"), OUTCOMES["succeeded"])
        change(store, Move.CANCEL, queued(store, queue="cancelled"))
        for queue in ("b", "a", "a", "c"):
            queued(store, queue=queue)
        queued(store, queue="later", delay=SECOND)
        assert sorted(store.queues()) == ["a", "b", "c"]
        store.promote(10, now=NOW + SECOND)
        assert sorted(store.queues()) == ["a", "b", "c", "later"]

    def test_many_queues_are_all_named(self, store: Store) -> None:
        names = [f"queue {n:03}" for n in range(300)]
        put(store, *(new(queue=name, priority=n % 3) for name in names for n in range(3)))
        assert sorted(store.queues()) == names


def _matches(job: JobRow, which: Filter) -> bool:
    return (
        (not which.states or job.state in which.states)
        and which.queue in (None, job.queue)
        and which.task in (None, job.task)
        and which.key in (None, job.key)
        and which.worker in (None, job.worker)
    )


def _counted(job: JobRow, queue: str, task: str, state: State) -> bool:
    return (job.queue, job.task, job.state) == (queue, task, state)


def ids_descending(jobs: list[NewJob]) -> list[str]:
    return sorted((job.id for job in jobs), reverse=True)
