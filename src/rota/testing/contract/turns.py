"""What goes over a worker's line is what `claim` and `finish` do."""

from __future__ import annotations

from rota.model import Ask, Ended, Succeeded
from rota.stores.base import Store
from rota.testing.contract.lines import answered, line_of
from rota.testing.contract.scene import join, new, put, queued


class Turns:
    def test_a_line_claims_and_finishes(self, store: Store) -> None:
        worker = join(store)
        jobs = [queued(store) for _ in range(3)]
        with line_of(store) as line:
            line.post(worker, [], Ask(worker, ("default",), 2))
            first = answered(line)
            assert [job.id for job in first.claimed] == jobs[:2]
            line.post(worker, [Ended(job.id, job.claim, Succeeded()) for job in first.claimed], Ask(worker, ("default",), 2))
            second = answered(line)
            assert second.counted == set(jobs[:2])
            assert [job.id for job in second.claimed] == jobs[2:]

    def test_as_many_turns_as_it_says_may_be_under_way(self, store: Store) -> None:
        worker = join(store)
        jobs = [queued(store) for _ in range(4)]
        with line_of(store) as line:
            for _ in range(line.ahead):
                line.post(worker, [], Ask(worker, ("default",), 1))
            claimed = [answered(line).claimed[0].id for _ in range(line.ahead)]
            assert claimed == jobs[: line.ahead]
            assert line.answered() is None

    def test_a_turn_with_nothing_in_it_isanswered(self, store: Store) -> None:
        with line_of(store) as line:
            line.post(join(store), [])
            assert answered(line).claimed == []

    def test_a_large_turn_goes_both_ways(self, store: Store) -> None:
        worker = join(store)
        payload = '{"a":"%s"}' % ("x" * 1_000_000)
        put(store, *(new(args=payload) for _ in range(8)))
        with line_of(store) as line:
            line.post(worker, [], Ask(worker, ("default",), 8))
            claimed = answered(line).claimed
            assert [len(job.args) for job in claimed] == [len(payload)] * 8
            line.post(worker, [Ended(job.id, job.claim, Succeeded(payload)) for job in claimed])
            assert len(answered(line).counted) == 8

    def test_a_claim_that_begins_behind_the_last_one_takes_what_comes_next(self, store: Store) -> None:
        worker = join(store)
        first = [queued(store, priority=5) for _ in range(3)]
        low = queued(store, priority=-1)
        other = queued(store, queue="other", priority=-2)
        claimed = store.claim(Ask(worker, ("default",), 2))
        assert [job.id for job in claimed] == first[:2]
        high = queued(store, priority=9)
        behind = {"default": claimed[-1]}
        again = store.claim(Ask(worker, ("default", "other"), 10, behind=behind))
        assert [job.id for job in again] == [high, first[2], low, other]
