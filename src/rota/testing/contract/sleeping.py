"""Workers that sleep until there may be work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from time import monotonic

import pytest

from rota.clock import SECOND
from rota.stores.base import Listener, Store
from rota.testing.contract.scene import MINUTE, NOW, join, new, put, queued

LONG = 60.0
"""A wait that a test would not sit through; what rings it must come much sooner."""
SOON = 10.0


class Sleeping:
    def test_an_insert_from_a_twin_rings_a_worker_that_rests(self, store: Store) -> None:
        store.rest(join(store), True)
        with _asleep(store) as sleeper, _twin(store) as twin:
            queued(twin)
            assert sleeper.rung(SOON)

    def test_an_insert_of_the_same_store_rings_too(self, store: Store) -> None:
        store.rest(join(store), True)
        with _asleep(store) as sleeper:
            queued(store)
            assert sleeper.rung(SOON)

    def test_an_insert_on_any_queue_rings(self, store: Store) -> None:
        store.rest(join(store, queues=["it's %s {x} :y"]), True)
        with _asleep(store) as sleeper, _twin(store) as twin:
            queued(twin, queue="it's %s {x} :y")
            assert sleeper.rung(SOON)

    def test_every_insert_rings_anew(self, store: Store) -> None:
        worker = join(store)
        with _twin(store) as twin:
            for _ in range(3):
                store.rest(worker, True)
                with _asleep(store) as sleeper:
                    queued(twin)
                    assert sleeper.rung(SOON)
                store.rest(worker, False)

    def test_every_sleeping_worker_is_rung(self, store: Store) -> None:
        with _twin(store) as one, _twin(store) as two:
            one.rest(join(one), True)
            two.rest(join(two), True)
            with _asleep(one) as first, _asleep(two) as second:
                put(store, new(), new())
                assert first.rung(SOON)
                assert second.rung(SOON)

    def test_a_promotion_rings_a_worker_that_rests(self, store: Store) -> None:
        queued(store, delay=SECOND)
        store.rest(join(store), True)
        with _asleep(store) as sleeper, _twin(store) as twin:
            assert twin.promote(10, now=NOW + MINUTE).count == 1
            assert sleeper.rung(SOON)

    def test_a_job_that_comes_between_listening_and_waiting_rings(self, store: Store) -> None:
        store.rest(join(store), True)
        listener = store.listen()
        try:
            _quieted(listener)
            with _twin(store) as twin:
                queued(twin)
            assert listener.wait(SOON)
        finally:
            listener.close()

    def test_a_wait_lasts_no_longer_than_asked(self, store: Store) -> None:
        listener = store.listen()
        try:
            start = monotonic()
            _quieted(listener)
            listener.wait(0.05)
            assert monotonic() - start < SOON
        finally:
            listener.close()

    def test_a_stopped_listener_ends_its_wait(self, store: Store) -> None:
        with _asleep(store) as sleeper:
            sleeper.listener.stop()
            sleeper.woken(SOON)

    def test_a_listener_that_was_stopped_before_does_not_wait_for_long(self, store: Store) -> None:
        listener = store.listen()
        try:
            listener.stop()
            start = monotonic()
            listener.wait(LONG)
            assert monotonic() - start < SOON
        finally:
            listener.close()

    def test_stopping_and_closing_twice_is_fine(self, store: Store) -> None:
        listener = store.listen()
        listener.stop()
        listener.stop()
        listener.close()
        listener.close()


class _Sleeper:
    """A thread that owns a listener and waits on it."""

    def __init__(self, store: Store, pool: ThreadPoolExecutor) -> None:
        self._ready = Event()
        self._wait = pool.submit(self._sleep, store)
        if not self._ready.wait(SOON):
            self._wait.result(0)  # raises what went wrong
            raise AssertionError("the listener is not ready")

    def _sleep(self, store: Store) -> bool:
        try:
            self.listener: Listener = store.listen()
            _quieted(self.listener)
        finally:
            self._ready.set()
        try:
            return self.listener.wait(LONG)
        finally:
            self.listener.close()

    def rung(self, within: float) -> bool:
        return self._wait.result(within)

    def woken(self, within: float) -> None:
        self._wait.result(within)


@contextmanager
def _asleep(store: Store) -> Iterator[_Sleeper]:
    with ThreadPoolExecutor(1, thread_name_prefix="sleeper") as pool:
        sleeper = _Sleeper(store, pool)
        try:
            yield sleeper
        finally:
            sleeper.listener.stop()


@contextmanager
def _twin(store: Store) -> Iterator[Store]:
    twin = store.twin()
    try:
        yield twin
    finally:
        twin.close()


def _quieted(listener: Listener) -> None:
    """Take the rings that came before what the test does."""
    end = monotonic() + SOON
    while listener.wait(0.02):
        if monotonic() > end:
            pytest.fail("the listener rings without end although nothing happens")
