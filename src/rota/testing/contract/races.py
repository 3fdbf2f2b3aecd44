"""Threads and processes that do the same at once, each with a twin of its own, let go by a barrier."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import TypeVar

import pytest

from rota.clock import SECOND
from rota.model import Claimed, Edit, Ended, Move, NewJob, State, Succeeded
from rota.stores.base import Store
from rota.testing.contract.scene import LEASE, NOW, OUTCOMES, ask, claim, everything, finish, ids, join, new, put, row

T = TypeVar("T")

ROUNDS = 10
OVER = NOW + LEASE


class Races:
    def test_threads_that_claim_at_once_never_get_the_same_job(self, store: Store) -> None:
        put(store, *(new(queue=f"q{n % 3}") for n in range(400)))

        def drain(twin: Store) -> list[str]:
            worker, taken = join(twin), []
            while claims := claim(twin, worker, 7, ("q0", "q1", "q2")):
                taken += ids(claims)
            return taken

        taken = [id for each in at_once(store, [drain] * 4) for id in each]
        assert len(taken) == len(set(taken)) == 400

    def test_threads_that_finish_and_claim_at_once_do_every_job_once(self, store: Store) -> None:
        put(store, *(new(priority=n % 3) for n in range(400)))

        def work(twin: Store) -> list[str]:
            worker, done = join(twin), []
            claims = claim(twin, worker, 5)
            while claims:
                turn = twin.finish(
                    worker, [Ended(each.id, each.claim, Succeeded()) for each in claims], ask(worker, 5), now=NOW
                )
                assert turn.counted == set(ids(claims))
                done += ids(claims)
                claims = turn.claimed
            return done

        done = [id for each in at_once(store, [work] * 4) for id in each]
        assert len(done) == len(set(done)) == 400
        assert {(each.state, each.claim) for each in everything(store)} == {(State.SUCCEEDED, 1)}

    def test_threads_that_insert_one_key_at_once_make_one_job(self, store: Store) -> None:
        for number in range(ROUNDS):

            def insert(twin: Store, key: str = f"k{number}") -> tuple[str, bool]:
                (answer,) = put(twin, new(key=key))
                return answer.id, answer.existed

            answers = at_once(store, [insert] * 4)
            assert len({id for id, _ in answers}) == 1
            assert sorted(existed for _, existed in answers) == [False, True, True, True]

    def test_threads_that_insert_keys_in_opposite_orders_do_not_block_each_other(self, store: Store) -> None:
        for number in range(ROUNDS):
            keys = [f"{number}.{key}" for key in range(20)]

            def there(twin: Store, keys: Sequence[str] = keys) -> list[str]:
                return ids(put(twin, *(new(key=key) for key in keys)))

            def back(twin: Store, keys: Sequence[str] = keys) -> list[str]:
                return ids(put(twin, *(new(key=key) for key in reversed(keys))))[::-1]

            first, *others = at_once(store, [there, back, there, back])
            assert all(other == first for other in others)

    def test_threads_that_send_the_same_insert_at_once_make_one_job(self, store: Store) -> None:
        for _ in range(ROUNDS):
            jobs = [new(), new(key="k"), new()]

            def send(twin: Store, jobs: Sequence[NewJob] = jobs) -> list[str]:
                return ids(put(twin, *jobs))

            at_once(store, [send] * 3)
            assert sorted(each.id for each in store.get([job.id for job in jobs])) == [job.id for job in jobs]
            store.change(Move.DELETE, [job.id for job in jobs], now=NOW)

    def test_an_attempt_is_either_finished_or_lost(self, store: Store) -> None:
        for _ in range(ROUNDS):
            worker = join(store)
            put(store, *(new() for _ in range(20)))
            claims = claim(store, worker)

            def done(twin: Store, worker: str = worker, claims: Sequence[Ended] = _succeeded(claims)) -> set[str]:
                return {id for end in claims for id in twin.finish(worker, [end], now=OVER).counted}

            def reaped(twin: Store) -> set[str]:
                return {lost.id for _ in range(10) for lost in twin.lost(3, now=OVER).lost}

            finished, lost = at_once(store, [done, reaped])
            assert finished | lost == set(ids(claims))
            assert not finished & lost
            assert {each.id for each in store.get(ids(claims)) if each.state is State.SUCCEEDED} == finished
            store.change(Move.DELETE, ids(claims), now=NOW)

    def test_a_job_is_either_claimed_where_it_was_or_edited_and_moved(self, store: Store) -> None:
        for _ in range(ROUNDS):
            jobs = [new() for _ in range(40)]
            put(store, *jobs)

            def moved(twin: Store, jobs: Sequence[NewJob] = jobs) -> set[str]:
                steps = [jobs[at : at + 4] for at in range(0, len(jobs), 4)]
                changed = [each for step in steps for each in twin.edit(Edit(queue="other"), [job.id for job in step], now=NOW)]
                return {each.id for each in changed if each.before is State.QUEUED}

            def taken(twin: Store) -> set[str]:
                worker = join(twin)
                return {id for _ in range(10) for id in ids(claim(twin, worker, 4))}

            edited, claimed = at_once(store, [moved, taken])
            assert not edited & claimed
            rows = {each.id: each for each in store.get([job.id for job in jobs])}
            assert {id for id, each in rows.items() if each.queue == "other"} == edited
            assert {id for id, each in rows.items() if each.state is State.RUNNING} == claimed
            store.change(Move.DELETE, list(edited), now=NOW)
            for worker in store.workers():
                store.leave(worker.id, now=NOW)
            store.change(Move.DELETE, [job.id for job in jobs], now=NOW)

    def test_a_job_is_lost_once_however_many_reap(self, store: Store) -> None:
        for _ in range(ROUNDS):
            worker = join(store)
            put(store, *(new(max_attempts=1) for _ in range(10)))
            claims = claim(store, worker)
            reaped = at_once(store, [lambda twin: [lost.id for lost in twin.lost(10, now=OVER).lost]] * 3)
            taken = [id for each in reaped for id in each]
            assert len(taken) == len(set(taken))
            taken += [lost.id for lost in store.lost(10, now=OVER).lost]
            assert sorted(taken) == sorted(ids(claims))
            assert all(len(store.attempts(id)) == 1 for id in taken)

    def test_a_job_is_promoted_once_however_many_promote(self, store: Store) -> None:
        for _ in range(ROUNDS):
            jobs = [new(delay=SECOND) for _ in range(20)]
            put(store, *jobs)
            promoted = at_once(store, [lambda twin: sum(twin.promote(7, now=NOW + SECOND).count for _ in range(4))] * 3)
            assert sum(promoted) == 20
            store.change(Move.DELETE, [job.id for job in jobs], now=NOW)

    def test_a_cancel_and_a_claim_at_once_leave_no_job_between_them(self, store: Store) -> None:
        for _ in range(ROUNDS):
            worker = join(store)
            jobs = [new() for _ in range(20)]
            put(store, *jobs)

            def cancel(twin: Store, jobs: Sequence[str] = tuple(job.id for job in jobs)) -> set[str]:
                return {each.id for id in jobs for each in twin.change(Move.CANCEL, [id], now=NOW) if each.after == "cancelled"}

            def take(twin: Store, worker: str = worker) -> set[str]:
                return {each.id for _ in range(10) for each in claim(twin, worker, 3)}

            cancelled, claimed = at_once(store, [cancel, take])
            assert not cancelled & claimed
            rows = store.get([job.id for job in jobs])
            assert {each.id for each in rows if each.state is State.CANCELLED} == cancelled
            running = {each.id for each in rows if each.state is State.RUNNING}
            assert running == claimed
            assert all(each.cancelling for each in rows if each.id in running)

    @pytest.mark.parametrize("outcome", ["again", "snoozed", "released"])
    def test_a_cancel_and_a_hand_back_at_once_leave_no_job_running(self, store: Store, outcome: str) -> None:
        for _ in range(2 * ROUNDS):
            worker = join(store)
            put(store, *(new() for _ in range(5)))
            claims = claim(store, worker, 5)

            def cancel(twin: Store, order: Sequence[str] = tuple(ids(claims))) -> int:
                return sum(len(twin.change(Move.CANCEL, [id], now=NOW)) for id in order)

            def hand_back(twin: Store, worker: str = worker, claims: Sequence[Claimed] = tuple(claims)) -> int:
                return sum(finish(twin, worker, claimed, OUTCOMES[outcome]) for claimed in claims)

            both: list[Callable[[Store], int]] = [cancel, hand_back]
            _, counted = at_once(store, both)
            assert counted == len(claims)
            assert {each.state for each in store.get(ids(claims))} == {State.CANCELLED}

    def test_changes_in_opposite_orders_do_not_block_each_other(self, store: Store) -> None:
        jobs = [new(key=f"k{n}", delay=n % 2) for n in range(60)]
        put(store, *jobs)
        order = [job.id for job in jobs]

        def cancel(twin: Store) -> None:
            for _ in range(ROUNDS):
                twin.change(Move.CANCEL, order, now=NOW)

        def retry(twin: Store) -> None:
            for _ in range(ROUNDS):
                twin.change(Move.RETRY, order[::-1], now=NOW)

        def work(twin: Store) -> None:
            worker = join(twin)
            for _ in range(ROUNDS):
                claims = claim(twin, worker, 20)
                twin.beat(worker, [], now=NOW)
                twin.finish(worker, _succeeded(claims)[::-1], ask(worker, 0), now=NOW)

        def tidy(twin: Store) -> None:
            for _ in range(ROUNDS):
                twin.promote(100, now=NOW + SECOND)
                twin.lost(100, now=NOW)
                put(twin, *(new(key=f"k{n}") for n in range(0, 60, 7)))

        at_once(store, [cancel, retry, work, work, tidy])
        rows = everything(store)
        assert {job.id for job in jobs} <= {each.id for each in rows}
        unfinished = [each.key for each in rows if not each.state.final]
        assert len(unfinished) == len(set(unfinished))

    def test_two_workers_of_one_retried_job_never_run_it_at_once(self, store: Store) -> None:
        (job,) = put(store, new(max_attempts=1000))

        def work(twin: Store) -> int:
            worker, done = join(twin), 0
            for _ in range(5 * ROUNDS):
                for claimed in claim(twin, worker, 1):
                    held = row(twin, job.id)
                    assert (held.worker, held.claim) == (worker, claimed.claim)
                    assert finish(twin, worker, claimed, OUTCOMES["released"])
                    done += 1
            return done

        assert sum(at_once(store, [work] * 3)) == row(store, job.id).claim

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_processes_that_share_a_store_never_get_the_same_job(self, store: Store) -> None:
        put(store, *(new() for _ in range(200)))
        if not _shared_by_processes(store):
            return  # what is kept in memory ends at the process

        def drain() -> list[str]:
            worker, taken = join(store), []
            while claims := claim(store, worker, 3):
                taken += ids(claims)
            return taken

        taken = [id for each in _in_children(drain, 3) for id in each]
        assert len(taken) == len(set(taken)) == 200


def at_once(store: Store, doings: Sequence[Callable[[Store], T]]) -> list[T]:
    """What each of these answered, done by threads that begin together, each on a twin of the store."""
    barrier = Barrier(len(doings))

    def begin(doing: Callable[[Store], T]) -> T:
        twin = store.twin()
        try:
            twin.open()
            barrier.wait(30)
            return doing(twin)
        finally:
            twin.close()

    with ThreadPoolExecutor(len(doings), thread_name_prefix="racer") as pool:
        return list(pool.map(begin, doings))


def _in_children(doing: Callable[[], list[str]], children: int) -> list[list[str]]:
    """What forked children answered, which begin when the parent closes a pipe that all of them read."""
    gate, hold = os.pipe()
    begun = []
    for _ in range(children):
        answer, give = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, where the parent has threads
            child = os.fork()
        if child == 0:
            with suppress(BaseException):  # nothing of the test's own may go on in the child
                os.close(hold)
                os.read(gate, 1)
                with os.fdopen(give, "w") as out:
                    out.write("\n".join([*doing(), "done"]))
            os._exit(0)
        os.close(give)
        begun.append((child, answer))
    os.close(gate)
    os.close(hold)
    answers = []
    for child, answer in begun:
        with os.fdopen(answer) as told:
            lines = told.read().splitlines()
        os.waitpid(child, 0)
        assert lines[-1:] == ["done"], "a child failed"
        answers.append(lines[:-1])
    return answers


def _shared_by_processes(store: Store) -> bool:
    return not store.url.startswith("memory:")


def _succeeded(claims: Sequence[Claimed]) -> list[Ended]:
    return [Ended(each.id, each.claim, Succeeded()) for each in claims]
