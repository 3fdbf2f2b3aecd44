"""Threads that claim under limits at once, each with a twin of its own: never more than may, and nobody held for nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Lock

from rota.model import Ended, Filter, Move, State, Succeeded
from rota.rules.instances import Instance
from rota.rules.limits import Limit
from rota.rules.sizes import Concurrency
from rota.stores.base import Store
from rota.testing.contract.limits import admit, ended, job, mail, settled, worker_of
from rota.testing.contract.races import at_once
from rota.testing.contract.scene import NOW, ids, put
from rota.testing.limits import Declares

ROUNDS = 10


class LimitRaces:
    def test_claims_at_once_let_in_no_more_than_may_run(self, store: Store) -> None:
        limits = mail(concurrency=3)
        for number in range(ROUNDS):
            queue = f"q{number}"
            put(store, *(job(queue=queue) for _ in range(20)))

            def take(twin: Store, queue: str = queue) -> list[str]:
                return ids(admit(twin, worker_of(twin), limits, slots=4, queues=(queue,)).claimed)

            taken = [id for each in at_once(store, [take] * 4) for id in each]
            assert len(taken) == len(set(taken)) == 3
            held = store.find(Filter(states=(State.HELD,)), 100_000)
            for worker in store.workers():
                store.leave(worker.id, now=NOW)
            store.change(Move.DELETE, [*taken, *ids(held)], now=NOW)
            rest = store.find(Filter(queue=queue), 100)
            store.change(Move.DELETE, ids(rest), now=NOW)

    def test_workers_that_claim_and_finish_at_once_stay_within_and_leave_nobody_held(self, store: Store) -> None:
        limits = Declares(
            {
                "mail": {"concurrency": [Limit(2, key=lambda tenant: tenant, name="tenant"), 3]},
                "post": {"concurrency": Limit(1, name="post")},
            }
        )
        put(store, *(job(arguments={"tenant": number % 3}) for number in range(90)), *(job("post") for _ in range(30)))
        running: dict[Instance, int] = {}
        most: dict[Instance, int] = {}
        lock = Lock()

        def count(rooms: tuple[Instance, ...], by: int) -> None:
            with lock:
                for room in rooms:
                    running[room] = running.get(room, 0) + by
                    most[room] = max(most.get(room, 0), running[room])

        def work(twin: Store) -> int:
            worker, done, idle = worker_of(twin), 0, 0
            while idle < 200:
                found = admit(twin, worker, limits, slots=2)
                idle = 0 if found.claimed else idle + 1
                for claimed in found.claimed:
                    count(limits.instances(claimed.id, claimed.task, claimed.args), 1)
                for claimed in found.claimed:
                    count(limits.instances(claimed.id, claimed.task, claimed.args), -1)
                    assert twin.finish(worker, [ended(claimed)], now=NOW).counted == {claimed.id}
                    done += 1
                if not any(each.state in (State.QUEUED, State.HELD) for each in twin.find(Filter(states=_WAITING), 1)):
                    break
            return done

        assert sum(at_once(store, [work] * 4)) == 120
        sizes = {"tenant": 2, "concurrency of mail": 3, "post": 1}
        assert all(reached <= sizes[room.limit] for room, reached in most.items())
        assert [(each.running, each.held) for each in store.rooms() if each.running or each.held] == []

    def test_starts_of_a_rate_keep_their_distance_by_the_stores_clock(self, store: Store) -> None:
        limits = mail(rate="200/s")
        jobs = [job() for _ in range(40)]
        store.insert(jobs)

        def work(twin: Store) -> int:
            worker = worker_of(twin, now=None)
            done = 0
            for _ in range(100_000):
                found = admit(twin, worker, limits, slots=2, now=None)
                for claimed in found.claimed:
                    twin.finish(worker, [Ended(claimed.id, claimed.claim, Succeeded())])
                    done += 1
                if found.next_in is None or not twin.find(Filter(states=_WAITING), 1):
                    break
            return done

        assert sum(at_once(store, [work] * 3)) == 40
        starts = sorted(each.claimed_at or 0 for each in store.get([each.id for each in jobs]))
        assert min(later - earlier for earlier, later in pairwise(starts)) >= 5_000

    def test_jobs_that_need_rooms_in_opposite_orders_do_not_block_each_other(self, store: Store) -> None:
        def of(*names: str) -> dict[str, list[Limit]]:
            return {"concurrency": [Limit(2, name=name) for name in names]}

        limits = Declares({"mail": of("a", "b"), "post": of("b", "a"), "other": of("b", "c"), "more": of("c", "a")})
        tasks = ("mail", "post", "other", "more")
        put(store, *(job(tasks[number % 4]) for number in range(120)))

        def work(twin: Store) -> int:
            worker, done = worker_of(twin, *tasks), 0
            while twin.find(Filter(states=_WAITING), 1):
                found = admit(twin, worker, limits, slots=3)
                ends = [ended(each) for each in found.claimed]
                done += len(twin.finish(worker, ends, now=NOW).counted)
            return done

        assert sum(at_once(store, [work] * 4)) == 120

    def test_changes_and_claims_at_once_leave_nobody_held_for_nothing(self, store: Store) -> None:
        limits = mail(concurrency=2)
        jobs = [job() for _ in range(80)]
        put(store, *jobs)
        order = [each.id for each in jobs]

        def change(twin: Store) -> None:
            for number in range(0, 80, 2):
                twin.change((Move.CANCEL, Move.RETRY)[number % 4 == 0], order[number : number + 3], now=NOW)

        def work(twin: Store) -> None:
            worker = worker_of(twin)
            for _ in range(30):
                found = admit(twin, worker, limits, slots=2)
                ends = [ended(each) for each in found.claimed]
                twin.finish(worker, ends, now=NOW)

        def size(twin: Store) -> None:
            for number in range(10):
                twin.set_limit("concurrency of mail", Concurrency(1 + number % 3), now=NOW)

        doings: list[Callable[[Store], None]] = [change, work, work, size]
        at_once(store, doings)
        store.set_limit("concurrency of mail", None, now=NOW)
        worker = worker_of(store)
        while claims := settled(store, worker, limits):
            assert len(claims) <= 2
            store.finish(worker, [ended(each) for each in claims], now=NOW)
        assert store.find(Filter(states=_WAITING), 1) == []


_WAITING = (State.QUEUED, State.HELD)
