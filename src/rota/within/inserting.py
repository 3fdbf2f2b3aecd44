"""Jobs that come in on a connection of the caller's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from rota.clock import Micros
from rota.errors import NotSupported, StoreError
from rota.model import Inserted, NewJob
from rota.stores.adding import inserting
from rota.stores.base import Store
from rota.within import Elsewhere, Foreign, awork, blocking, of_coroutines, work
from rota.within.turns import aturn, turn


def insert(
    connection: object, jobs: Iterable[NewJob], store: Callable[[], Store], now: Callable[[], Micros | None]
) -> list[Inserted]:
    """Add these jobs in the caller's transaction, all or none; the store is asked for once the connection is known to fit.

    Where Django's connection leads to another database than the store's, the store takes them once that is committed: then
    the answer does not tell whether another job has the key.
    """
    foreign = blocking(connection, _call(jobs))
    place = store()
    raised: list[Exception] = []
    try:
        with turn(foreign.own):
            return _insert(foreign, jobs, raised, place, now())
    except (Elsewhere, NotSupported):
        after_commit: Callable[[Callable[[], Any]], None] | None = getattr(foreign, "after_commit", None)
        if after_commit is None or raised:
            raise
    handover = Handover(list(jobs), place, now)
    after_commit(handover)
    return [Inserted(job.id) for job in handover.jobs]


class Handover:
    """Jobs that their store takes when this is called, once the transaction that they belong to is committed elsewhere."""

    def __init__(self, jobs: list[NewJob], store: Store, now: Callable[[], Micros | None]) -> None:
        self.jobs = jobs
        self.store = store
        self.done = False
        self._now = now

    def __call__(self) -> None:
        self.store.insert(self.jobs, self._now())
        self.done = True


async def ainsert(
    connection: object, jobs: Iterable[NewJob], store: Callable[[], Awaitable[Store]], now: Callable[[], Micros | None]
) -> list[Inserted]:
    foreign = of_coroutines(connection, _call(jobs))
    place = await store()
    raised: list[Exception] = []
    try:
        async with aturn(foreign.own):
            return await awork(place, foreign, inserting(_watched(jobs, raised), now()))
    except StoreError:
        if not raised:
            raise
    raise raised[0]


def _insert(
    foreign: Foreign, jobs: Iterable[NewJob], raised: list[Exception], store: Store, now: Micros | None
) -> list[Inserted]:
    try:
        return work(store, foreign, inserting(_watched(jobs, raised), now))
    except StoreError:
        if not raised:
            raise
    raise raised[0]


def _watched(jobs: Iterable[NewJob], raised: list[Exception]) -> Iterator[NewJob]:
    """The jobs, and what went wrong where they are made: it may look like an error of the connection's driver, and is none."""
    try:
        yield from jobs
    except Exception as error:
        raised.append(error)
        raise


def _call(jobs: Iterable[NewJob]) -> str:
    """What was called, for messages: of many jobs each is made when it is asked for."""
    return "enqueue" if isinstance(jobs, list) else "enqueue_many"
