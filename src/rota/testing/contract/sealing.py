"""A sealed store changes in nothing, and whoever would change it is told why."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
from msgspec.structs import replace

from rota.errors import StoreError
from rota.model import (
    Ask,
    Edit,
    Ended,
    Filter,
    Move,
    Seal,
    State,
    Succeeded,
    TaskRow,
    Whole,
)
from rota.rules.sizes import read_size
from rota.stores.base import Store
from rota.testing.contract.limits import admit, mail
from rota.testing.contract.lines import answered, line_of
from rota.testing.contract.races import at_once
from rota.testing.contract.scene import (
    LEASE,
    MINUTE,
    NOW,
    claim,
    ids,
    job_in,
    join,
    new,
    put,
    queued,
    running,
)

AWAY = Seal("a move", "sqlite:////there.db", "postgresql://here/shop", NOW, leaving=True)
HERE = Seal("a move", "sqlite:////there.db", "postgresql://here/shop", NOW, leaving=False)


def dumped(store: Store, limit: int = 1_000) -> list[Whole]:
    """Every job of the store, page by page."""
    found: list[Whole] = []
    while page := store.dump(found[-1].job.id if found else None, limit):
        assert len(page) <= limit
        found += page
    return found


CHANGES: dict[str, Callable[[Store, str, str], object]] = {
    "an insert": lambda store, id, worker: put(store, new()),
    "an insert with a key": lambda store, id, worker: put(store, new(key="other")),
    "an insert of many": lambda store, id, worker: put(store, *(new() for _ in range(300))),
    "a claim": lambda store, id, worker: claim(store, worker),
    "a claim under limits": lambda store, id, worker: admit(store, worker, mail(concurrency=1)),
    "an outcome": lambda store, id, worker: store.finish(worker, [Ended(id, 1, Succeeded())], now=NOW),
    "a cancel": lambda store, id, worker: store.change(Move.CANCEL, [id], now=NOW),
    "an edit": lambda store, id, worker: store.edit(Edit(priority=9), [_first_queued(store)], now=NOW),
    "a promotion": lambda store, id, worker: store.promote(10, now=NOW + MINUTE),
    "a join": lambda store, id, worker: join(store),
    "a beat": lambda store, id, worker: store.beat(worker, [], now=NOW),
    "a leave": lambda store, id, worker: store.leave(worker, now=NOW),
    "a reaping": lambda store, id, worker: store.lost(10, now=NOW + LEASE),
    "a pruning": lambda store, id, worker: store.prune({State.SUCCEEDED: 0}, 10, now=NOW + 1),
    "a pause": lambda store, id, worker: store.pause("default", now=NOW),
    "a resume": lambda store, id, worker: store.resume("paused", now=NOW),
    "a size": lambda store, id, worker: store.set_limit("mail", read_size("3"), now=NOW),
    "a declaration": lambda store, id, worker: store.declare([TaskRow("t", "q", 0, 1)]),
}
"""What changes something in a store that has a running job `id` of `worker`, a queued one, and some more."""


def _first_queued(store: Store) -> str:
    return next(each.job.id for each in dumped(store) if each.job.state is State.QUEUED)


def _populated(store: Store) -> tuple[str, str]:
    """A job in each state, a pause, and a worker; answers the running job's id and the worker's."""
    worker = join(store)
    for wanted in (State.CANCELLED, State.FAILED, State.SUCCEEDED):
        job_in(store, wanted, worker)
    claimed = running(store, worker)
    job_in(store, State.SCHEDULED, worker)
    queued(store)
    store.pause("paused", now=NOW)
    return claimed.id, worker


class Sealing:
    def test_an_unsealed_store_says_so(self, store: Store) -> None:
        assert store.sealed() is None
        assert store.unseal("a move") is False

    @pytest.mark.parametrize("what", CHANGES)
    def test_beneath_a_seal_nothing_changes_and_whoever_tries_is_told_why(self, store: Store, what: str) -> None:
        id, worker = _populated(store)
        before = (dumped(store), store.counts(), store.workers(), store.pauses(), store.overrides(), store.declarations())
        store.seal(AWAY)
        with pytest.raises(StoreError) as refused:
            CHANGES[what](store, id, worker)
        assert AWAY.words in str(refused.value)
        assert before == (
            dumped(store),
            store.counts(),
            store.workers(),
            store.pauses(),
            store.overrides(),
            store.declarations(),
        )

    @pytest.mark.parametrize("what", CHANGES)
    def test_all_goes_on_once_a_seal_is_lifted(self, store: Store, what: str) -> None:
        id, worker = _populated(store)
        store.seal(AWAY)
        assert store.unseal(AWAY.id) is True
        assert store.sealed() is None
        CHANGES[what](store, id, worker)

    def test_a_seal_is_read_as_it_was_put_on_and_warned_of(self, store: Store) -> None:
        seal = replace(AWAY, source="sqlite:///it's.db", target='postgresql://h/"d" %s $1 :x \\')
        store.seal(seal)
        assert store.sealed() == seal
        assert seal.words in store.vitals().warnings
        assert "it's" not in seal.words
        with pytest.raises(StoreError) as refused:
            queued(store)
        assert seal.target in str(refused.value)

    def test_a_twin_and_a_line_are_sealed_too(self, store: Store) -> None:
        twin = store.twin()
        worker = join(twin)
        queued(twin)
        try:
            with line_of(twin) as line:
                store.seal(AWAY)
                assert twin.sealed() == AWAY
                with pytest.raises(StoreError, match="being moved"):
                    queued(twin)
                with pytest.raises(StoreError, match="being moved"):
                    line.post(worker, [], Ask(worker, ("default",), 1), now=NOW)
                    answered(line)
        finally:
            twin.close()

    def test_the_same_move_changes_its_seal_and_another_does_not(self, store: Store) -> None:
        store.seal(AWAY)
        done = replace(AWAY, done=True)
        store.seal(done)
        assert store.sealed() == done
        with pytest.raises(StoreError, match="were moved to postgresql://here/shop"):
            queued(store)
        with pytest.raises(StoreError, match="were moved to"):
            store.seal(replace(AWAY, id="another"))
        assert store.unseal("another") is False
        assert store.sealed() == done

    def test_a_sealed_store_keeps_all_that_was_let_in_before(self, store: Store) -> None:
        sealed = Event()

        def enqueue(twin: Store) -> list[str]:
            told: list[str] = []
            for _ in range(10_000):
                try:
                    told += ids(put(twin, new(), new()))
                except StoreError:
                    return told
            raise AssertionError("nothing was refused")

        def seal(twin: Store) -> list[str]:
            while len(twin.find(Filter(), 20)) < 20:
                pass
            twin.seal(AWAY)
            sealed.set()
            return [each.job.id for each in dumped(twin)]

        *told, seen = at_once(store, [enqueue, enqueue, seal])
        assert sealed.is_set()
        assert sorted(id for each in told for id in each) == seen == [each.job.id for each in dumped(store)]
