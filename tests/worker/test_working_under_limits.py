"""Workers keep to the limits of tasks together, and take what has room at once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from rota import Limit, Retry, Rota
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, State, WorkerRow
from working import eventually, working

PATIENCE = 30.0


class Crowd:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.now = self.most = self.entered = 0
        self._lock = threading.Lock()

    @contextmanager
    def inside(self) -> Iterator[None]:
        with self._lock:
            self.now += 1
            self.entered += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._lock:
                self.now -= 1


def test_two_workers_together_run_no_more_than_the_limit_allows(app: Rota) -> None:
    crowd = Crowd()

    @app.task(concurrency=2)
    def narrow() -> None:
        with crowd.inside():
            time.sleep(0.01)

    jobs = narrow.enqueue_many([()] * 30)
    with working(app, concurrency=4), working(app, concurrency=4):
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
    assert crowd.most == 2


def test_what_a_limit_holds_is_in_nobodys_way(app: Rota) -> None:
    go = threading.Event()
    begun = threading.Event()

    @app.task(concurrency=1)
    def narrow() -> None:
        begun.set()
        go.wait(PATIENCE)

    @app.task
    def wide() -> None: ...

    held = narrow.using(priority=5).enqueue_many([()] * 20)
    with working(app, concurrency=3):
        assert begun.wait(PATIENCE)
        assert {job.wait(PATIENCE).status for job in wide.enqueue_many([()] * 20)} == {State.SUCCEEDED}
        eventually(lambda: app.stats().states[State.HELD] == 19)
        go.set()
        assert {job.wait(PATIENCE).status for job in held} == {State.SUCCEEDED}


def test_what_a_limit_holds_goes_on_when_no_claim_has_met_it_full_for_a_while(app: Rota) -> None:
    """Each claim lets in just as many as have ended, and holds nobody anew."""

    @app.task(concurrency=4)
    def slow() -> None:
        time.sleep(0.02)

    slow.enqueue_many([()] * 400)  # two seconds of work, if nothing waits for a poll
    with working(app, poll=120.0, concurrency=8):
        eventually(lambda: app.stats().states[State.SUCCEEDED] == 400, within=60.0)


def test_a_freed_place_goes_to_the_larger_priority_and_then_to_the_older(app: Rota) -> None:
    order: list[str] = []
    go = threading.Event()
    begun = threading.Event()

    @app.task(concurrency=1)
    def narrow(name: str) -> None:
        if name == "first":
            begun.set()
            go.wait(PATIENCE)
        order.append(name)

    narrow.enqueue("first")
    with working(app, concurrency=4):
        assert begun.wait(PATIENCE)
        jobs = [narrow.using(priority=priority).enqueue(name) for name, priority in [("c", 0), ("a", 5), ("d", 0), ("b", 5)]]
        eventually(lambda: app.stats().states[State.HELD] == 4)
        go.set()
        for job in jobs:
            job.wait(PATIENCE)
    assert order == ["first", "a", "b", "c", "d"]


def test_a_queue_of_which_all_is_held_gets_its_turns(app: Rota) -> None:
    """A worker that serves all queues does not see it among those with queued jobs, save while its limit is looked at."""
    begun, go_on = threading.Event(), threading.Event()
    told: list[str] = []

    @app.task(concurrency=1)
    def one(name: str) -> None:
        told.append(name)
        begun.set()
        go_on.wait(PATIENCE)

    with working(app, concurrency=2):
        one.enqueue("first")
        assert begun.wait(PATIENCE)
        jobs = one.enqueue_many([("low",)] * 30) + one.using(queue="quite new", priority=10).enqueue_many([("high",)] * 5)
        eventually(lambda: all(job.refresh().status is State.HELD for job in jobs))
        go_on.set()
        for job in jobs:
            job.wait(PATIENCE)
    assert told.index("high") <= 2  # one may go before, which was let out together with it
    assert "low" not in told[told.index("high") : told.index("high") + 5]


def test_starts_of_a_rate_are_an_interval_apart_and_go_on_without_a_poll(app: Rota) -> None:
    @app.task(rate="20/s")
    def spaced() -> None: ...

    jobs = spaced.enqueue_many([()] * 12)
    with working(app, concurrency=4, poll=60), working(app, concurrency=4, poll=60):
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
    moments = sorted(row.claimed_at or 0 for row in app.store.get([job.id for job in jobs]))
    assert min(later - earlier for earlier, later in pairwise(moments)) >= SECOND // 20


def test_each_key_has_a_room_of_its_own_beside_one_for_all(app: Rota) -> None:
    crowds = {tenant: Crowd() for tenant in "abcd"}
    everyone = Crowd()

    @app.task(concurrency=[Limit(1, key=lambda tenant: tenant), 3])
    def build(tenant: str) -> None:
        with everyone.inside(), crowds[tenant].inside():
            time.sleep(0.01)

    jobs = build.enqueue_many([(tenant,) for tenant in "abcd" for _ in range(6)])
    with working(app, concurrency=8):
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
    assert {crowd.most for crowd in crowds.values()} == {1}
    assert everyone.most == 3


def test_a_key_that_cannot_be_told_fails_the_job_in_words(app: Rota) -> None:
    @app.task(concurrency=Limit(1, key=lambda number: 1 / number), max_attempts=1)
    def build(number: int) -> None: ...

    with working(app):
        job = build.enqueue(0).wait(PATIENCE)
    assert job.status is State.FAILED
    assert "the key of limit" in (job.reason or "")


def test_a_key_that_exits_fails_its_job_and_not_the_worker(app: Rota) -> None:
    @app.task(concurrency=Limit(1, key=lambda number: sys.exit(3) if number == 1 else number), max_attempts=1)
    def build(number: int) -> None: ...

    bad, good = build.enqueue_many([(1,), (2,)])
    with working(app):
        assert good.wait(PATIENCE).status is State.SUCCEEDED
        assert bad.wait(PATIENCE).status is State.FAILED
    assert "raised SystemExit" in (bad.refresh().reason or "")


def test_a_key_that_writes_to_the_store_hangs_nobody(app: Rota) -> None:
    @app.task
    def other() -> None: ...

    def key(number: int) -> int:
        if number == 1:
            other.enqueue()
        return number

    @app.task(concurrency=Limit(1, key=key), max_attempts=1)
    def build(number: int) -> None: ...

    bad, good = build.enqueue_many([(1,), (2,)])
    with working(app):
        assert good.wait(PATIENCE).status is State.SUCCEEDED
        bad.wait(PATIENCE)
    if app.url.startswith(("sqlite:", "memory:")):  # which have one writer
        assert "being written to by this very thread" in (bad.refresh().reason or "")
    else:
        assert bad.refresh().status is State.SUCCEEDED


@pytest.mark.parametrize("outcome", ["fails", "times out", "is released", "is cancelled"])
def test_however_a_job_ends_its_place_is_given_back(app: Rota, outcome: str) -> None:
    begun = threading.Event()

    @app.task(concurrency=1, max_attempts=1, timeout=0.3 if outcome == "times out" else None)
    async def narrow(first: bool) -> None:
        import asyncio

        if first and not begun.is_set():
            begun.set()
            if outcome == "fails":
                raise ValueError("it broke")
            await asyncio.sleep(PATIENCE)

    job = narrow.enqueue(True)
    second = narrow.enqueue(False)
    with working(app, shutdown_timeout=0.1):
        assert begun.wait(PATIENCE)
        if outcome == "is cancelled":
            job.cancel()
        elif outcome != "is released":
            assert second.wait(PATIENCE).status is State.SUCCEEDED
            return
        else:
            eventually(lambda: second.refresh().status is State.HELD)
    with working(app):
        assert second.wait(PATIENCE).status is State.SUCCEEDED


def test_a_partners_own_limit_closes_the_room_for_every_job(app: Rota) -> None:
    told = threading.Event()

    @app.task(rate="50/s", retry=0)
    def call() -> None:
        if not told.is_set():
            told.set()
            raise Retry(after=0.6, limit=True)

    jobs = call.enqueue_many([()] * 3)
    with working(app):
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
    rows = sorted(app.store.get([job.id for job in jobs]), key=lambda row: row.claimed_at or 0)
    first_ended = min(attempt.ended_at for job in jobs for attempt in app.store.attempts(job.id))
    assert (rows[0].claimed_at or 0) - first_ended >= 0.6 * SECOND


def test_a_size_that_is_set_at_run_time_holds_at_once(app: Rota) -> None:
    crowd = Crowd()
    go = threading.Event()

    @app.task(concurrency=Limit(1, name="narrow"))
    def narrow() -> None:
        with crowd.inside():
            go.wait(PATIENCE)

    jobs = narrow.enqueue_many([()] * 6)
    with working(app, concurrency=6):
        eventually(lambda: crowd.now == 1)
        app.set_limit("narrow", 3)
        eventually(lambda: crowd.now == 3)
        assert crowd.most == 3
        app.set_limit("narrow", None)
        go.set()
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED


def test_a_faster_rate_counts_at_once_for_what_a_slow_one_held(app: Rota) -> None:
    """It was to open in hours, and until then the worker sleeps."""

    @app.task(name="call", rate="1/6h")
    def call() -> None: ...

    jobs = call.enqueue_many([()] * 10)
    with working(app, poll=60):
        eventually(lambda: app.stats().states[State.HELD] == 9)
        app.set_limit("rate of call", "100/s")
        for job in jobs:
            assert job.wait(PATIENCE).status is State.SUCCEEDED
        app.set_limit("rate of call", None)
        more = call.enqueue_many([()] * 3)
        eventually(lambda: app.stats().states[State.HELD] == 3)
    later = Rota("memory://")
    later.holding._store = app.store  # the same app, deployed with a faster rate

    @later.task(name="call", rate="100/s")
    def faster() -> None: ...

    with working(later, poll=60):
        for job in more:
            assert job.wait(PATIENCE).status is State.SUCCEEDED


def test_a_job_of_a_worker_that_died_gives_its_place_back_with_its_lease(app: Rota) -> None:
    begun = threading.Event()

    @app.task(concurrency=1)
    def narrow() -> None:
        begun.set()

    job = narrow.enqueue()
    dead = WorkerRow(new_id(), "dead", "h", 1, None, [], 1, SECOND // 2, "1")
    app.store.join(dead)
    assert app.limiting is not None
    assert [claimed.id for claimed in app.store.admit(Ask(dead.id, ("default",), 1, 1), app.limiting).claimed] == [job.id]
    with working(app, lease=1.5):
        assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert app.store.rooms() == [] or all(room.running == 0 for room in app.store.rooms())


def test_what_a_limit_held_runs_once_no_code_declares_it(app: Rota, store_url: str) -> None:
    @app.task(name="narrow", concurrency=1)
    def narrow() -> None: ...

    first, second = narrow.enqueue(), narrow.enqueue()
    holder = WorkerRow(new_id(), "holder", "h", 1, None, [], 1, 3_600 * SECOND, "1")
    app.store.join(holder)
    assert app.limiting is not None
    assert len(app.store.admit(Ask(holder.id, ("default",), 2, 2), app.limiting).claimed) == 1
    assert second.refresh().status is State.HELD
    later = Rota("memory://")
    later.holding._store = app.store  # the same app, deployed without the limit

    @later.task(name="narrow")
    def wide() -> None: ...

    with working(later):
        assert second.wait(PATIENCE).status is State.SUCCEEDED
    assert first.refresh().status is State.RUNNING
