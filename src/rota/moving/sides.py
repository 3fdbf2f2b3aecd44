"""The two stores of a move: opened, read page by page, and called by a name that means the same wherever one stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rota.clock import SECOND
from rota.errors import ConfigError, NotSupported, StoreError
from rota.model import RoomRow, State, Whole
from rota.stores import open_store
from rota.stores.base import Store

PAGE = 1_000
"""Jobs that are read and written together, at most."""
_NAMED = 10
"""Workers that are named."""


class Side:
    """One of the two stores."""

    def __init__(self, store: Store) -> None:
        self.store = store
        facts = store.vitals().facts
        if facts.get("store") == "memory":
            raise ConfigError(f"{store.url} is in the memory of one process, so nothing is moved from or to it: name another")
        self.file = None if facts.get("path") is None else Path(str(facts["path"]))
        """Where it is a file."""
        self.place = store.url if self.file is None else f"sqlite:///{self.file}"

    def pages(self) -> Iterator[list[Whole]]:
        """All jobs, in the order of their ids."""
        after = None
        while page := self.store.dump(after, PAGE):
            yield page
            after = page[-1].job.id

    def rooms(self) -> Iterator[list[RoomRow]]:
        """All rooms of limits that remember something."""
        after = None
        while page := self.store.dump_rooms(after, PAGE):
            yield page
            after = page[-1]

    def states(self) -> dict[State, int]:
        """How many jobs are in each state."""
        states = dict.fromkeys(State, 0)
        for count in self.store.counts():
            states[count.state] += count.jobs
        return states

    def check_idle(self) -> None:
        """Raise `StoreError` while a worker's lease holds."""
        now = self.store.vitals().now
        alive = [worker for worker in self.store.workers() if worker.lease_until > now]
        if alive:
            names = ", ".join(f"{each.name} (process {each.pid} on {each.host})" for each in alive[:_NAMED])
            wait = max(each.lease_until - now for each in alive) / SECOND
            raise StoreError(
                f"workers run on {self.place}: {names}{' and more' if len(alive) > _NAMED else ''}. Stop them first, as with "
                f"SIGTERM; one that was killed counts as running until its lease is over, in {wait:.0f} s"
            )


@contextmanager
def both(source: str, target: str) -> Iterator[tuple[Side, Side]]:
    """Source and target, opened. The source must be there; what is missing in the target is made."""
    with at_hand(source) as store:
        ours = Side(store)
        other = open_store(target)
        try:
            _check_able(other)
            other.open()
            yield ours, Side(other)
        finally:
            other.close()


@contextmanager
def at_hand(url: str) -> Iterator[Store]:
    """A store that must be there, opened."""
    store = open_store(url)
    try:
        _check_able(store)
        if not store.there():
            raise StoreError(
                f"there is nothing of Rota's in {store.url}, seen from {Path.cwd()}: no job was enqueued there yet"
            )
        store.open()
        yield store
    finally:
        store.close()


def _check_able(store: Store) -> None:
    if not callable(getattr(store, "dump", None)):
        raise NotSupported(f"nothing can be moved from or to {store.url}: this store was written for an older Rota")
