"""Opening, closing, twins and forks."""

from __future__ import annotations

import os
import warnings

import pytest

from rota.clock import SECOND, machine_now
from rota.stores.base import Store
from rota.testing.contract.scene import claim, join, queued, state


class Lifetime:
    def test_a_store_has_every_operation(self, store: Store) -> None:
        promised = {name for name in {**vars(Store), **Store.__annotations__} if not name.startswith("_")}
        assert {name for name in promised if not hasattr(store, name)} == set()

    def test_opening_twice_is_opening_once(self, store: Store) -> None:
        store.open()
        id = queued(store)
        store.open()
        assert state(store, id) == "queued"

    def test_an_open_store_needs_no_migration(self, store: Store) -> None:
        assert store.pending() == []
        assert store.migrate() == []

    def test_an_open_store_is_there(self, store: Store) -> None:
        assert store.there()

    def test_a_closed_store_opens_again_when_it_is_used(self, store: Store) -> None:
        store.close()
        store.close()
        assert state(store, queued(store)) == "queued"

    def test_a_twin_sees_the_same_jobs(self, store: Store) -> None:
        twin = store.twin()
        try:
            id = queued(store)
            worker = join(twin)
            assert [claimed.id for claimed in claim(twin, worker)] == [id]
            assert state(store, id) == "running"
        finally:
            twin.close()

    def test_closing_a_twin_leaves_the_store_open(self, store: Store) -> None:
        id = queued(store)
        twin = store.twin()
        assert state(twin, id) == "queued"
        twin.close()
        assert state(store, id) == "queued"

    def test_a_store_tells_where_it_is(self, store: Store) -> None:
        assert "://" in store.url
        twin = store.twin()
        assert twin.url == store.url
        twin.close()

    def test_vitals_tell_the_clock_and_the_size(self, store: Store) -> None:
        vitals = store.vitals()
        assert abs(vitals.now - machine_now()) < 60 * SECOND
        assert vitals.facts["store"]
        assert all(isinstance(warning, str) and warning for warning in vitals.warnings)

    def test_without_a_chosen_now_the_clock_of_the_store_counts(self, store: Store) -> None:
        before = store.vitals().now
        id = queued(store, now=None)  # type: ignore[arg-type]
        (row,) = store.get([id])
        assert before <= row.created_at <= store.vitals().now
        assert before <= row.due <= store.vitals().now

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_forked_child_opens_anew_and_leaves_its_parents_connections_alone(self, store: Store) -> None:
        id = queued(store)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, where the parent has threads
            child = os.fork()
        if child == 0:
            code = 1
            try:
                queued(store)
                store.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert state(store, id) == "queued"
        assert state(store, queued(store)) == "queued"
