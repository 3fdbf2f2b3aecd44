"""Workers that sleep until there may be work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event
from time import monotonic

from rota.bell import Bell
from rota.clock import SECOND
from rota.model import Ask
from rota.stores.base import Store
from rota.testing.contract.lines import SOON, answered, line_of, quieted, rung
from rota.testing.contract.scene import MINUTE, NOW, join, new, put, queued, state

LONG = 60.0
"""A wait that a test would not sit through; what rings it must come much sooner."""


class Sleeping:
    def test_an_insert_from_a_twin_rings_a_worker_that_rests(self, store: Store) -> None:
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper, twin_of(store) as twin:
            queued(twin)
            assert sleeper.rung(SOON)

    def test_an_insert_of_the_same_store_rings_too(self, store: Store) -> None:
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper:
            queued(store)
            assert sleeper.rung(SOON)

    def test_an_insert_on_any_queue_rings(self, store: Store) -> None:
        store.rest(join(store, queues=["it's %s {x} :y"]), True)
        with sleeper_on(store) as sleeper, twin_of(store) as twin:
            queued(twin, queue="it's %s {x} :y")
            assert sleeper.rung(SOON)

    def test_every_insert_rings_anew(self, store: Store) -> None:
        worker = join(store)
        with twin_of(store) as twin:
            for _ in range(3):
                store.rest(worker, True)
                with sleeper_on(store) as sleeper:
                    queued(twin)
                    assert sleeper.rung(SOON)
                store.rest(worker, False)

    def test_every_sleeping_worker_is_rung(self, store: Store) -> None:
        with twin_of(store) as one, twin_of(store) as two:
            one.rest(join(one), True)
            two.rest(join(two), True)
            with sleeper_on(one) as first, sleeper_on(two) as second:
                put(store, new(), new())
                assert first.rung(SOON)
                assert second.rung(SOON)

    def test_a_promotion_rings_a_worker_that_rests(self, store: Store) -> None:
        queued(store, delay=SECOND)
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper, twin_of(store) as twin:
            assert twin.promote(10, now=NOW + MINUTE).count == 1
            assert sleeper.rung(SOON)

    def test_a_job_that_comes_between_two_waits_rings(self, store: Store) -> None:
        store.rest(join(store), True)
        with line_of(store) as line, twin_of(store) as twin:
            quieted(line)
            queued(twin)
            assert rung(line, SOON)

    def test_a_job_that_comes_while_turns_are_taken_rings(self, store: Store) -> None:
        worker = join(store)
        store.rest(worker, True)
        with line_of(store) as line, twin_of(store) as twin:
            quieted(line)
            queued(twin)
            line.post(worker, [], Ask(worker, ("other",), 1))
            rang = False
            while line.answered() is None:
                rang = rung(line, SOON) or rang
            assert rang or rung(line, SOON)

    def test_a_ring_is_answered_by_the_claim_that_was_left_for_it(self, store: Store) -> None:
        worker = join(store)
        store.rest(worker, True)
        with line_of(store) as line, twin_of(store) as twin, closing(Bell()) as bell:
            quieted(line)
            job = queued(twin)
            assert line.wait(SOON, bell, Ask(worker, ("default",), 5))
            assert [claimed.id for claimed in answered(line).claimed] == [job]

    def test_without_a_ring_nothing_is_claimed(self, store: Store) -> None:
        worker = join(store)
        job = queued(store)
        with line_of(store) as line, closing(Bell()) as bell:
            quieted(line)
            bell.ring()
            assert not line.wait(SOON, bell, Ask(worker, ("default",), 5))
            assert line.answered() is None
        assert state(store, job) == "queued"

    def test_a_wait_lasts_no_longer_than_asked(self, store: Store) -> None:
        with line_of(store) as line:
            start = monotonic()
            quieted(line)
            rung(line, 0.05)
            assert monotonic() - start < SOON

    def test_a_bell_ends_the_wait_and_is_no_ring_of_the_store(self, store: Store) -> None:
        with sleeper_on(store) as sleeper:
            sleeper.bell.ring()
            assert not sleeper.rung(SOON)

    def test_a_bell_that_rang_before_the_wait_ends_it(self, store: Store) -> None:
        with line_of(store) as line, closing(Bell()) as bell:
            quieted(line)
            bell.ring()
            start = monotonic()
            line.wait(LONG, bell)
            assert monotonic() - start < SOON

    def test_a_line_may_be_closed_twice(self, store: Store) -> None:
        line = store.line()
        line.close()
        line.close()


class _Sleeper:
    """A thread that owns a line and waits on it."""

    def __init__(self, store: Store, pool: ThreadPoolExecutor) -> None:
        self.bell = Bell()
        self._ready = Event()
        self._wait = pool.submit(self._sleep, store)
        if not self._ready.wait(SOON):
            self._wait.result(0)  # raises what went wrong
            raise AssertionError("the line is not ready")

    def _sleep(self, store: Store) -> bool:
        with line_of(store) as line:
            try:
                quieted(line)
            finally:
                self._ready.set()
            with closing(self.bell):
                return line.wait(LONG, self.bell)

    def rung(self, within: float) -> bool:
        return self._wait.result(within)


@contextmanager
def sleeper_on(store: Store) -> Iterator[_Sleeper]:
    with ThreadPoolExecutor(1, thread_name_prefix="sleeper") as pool:
        sleeper = _Sleeper(store, pool)
        try:
            yield sleeper
        finally:
            sleeper.bell.ring()


@contextmanager
def twin_of(store: Store) -> Iterator[Store]:
    twin = store.twin()
    try:
        yield twin
    finally:
        twin.close()
