"""An empty store for one test, under an app that stays the same object with the same tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from rota.app import Rota
from rota.clock import LONGEST, Clock
from rota.codec.wire import brief
from rota.desk import StoreDesk
from rota.errors import ConfigError
from rota.holding import Holding
from rota.ids import new_id
from rota.inline import LEASE
from rota.model import FINAL, Filter, LimitRow, Move, State, WorkerRow
from rota.operate import free_held
from rota.settings import Settings
from rota.stores import Store, open_store

_STEP = 500
"""Jobs that are deleted together."""
_ABSENT = object()
"""In place of an attribute that the app itself does not have."""


@contextmanager
def fresh_store(app: Rota, url: str = "memory://", *, clock: Clock | None = None, **options: Any) -> Iterator[Rota]:
    """Have this app keep its jobs in another store until the end of the block, and in its own again afterwards.

    `url` is to name an empty store: `memory://` is one each time, a file in a new directory is another. `options` are those of
    this store; the app's own are left aside. With `clock` all goes by that, and without by the store's. The jobs stay until the
    end of the block although the app is closed meanwhile, as a lifespan does. An eager app is not eager meanwhile, and jobs
    that the app deletes as they finish stay. Tasks and hooks that are declared meanwhile stay too. Raises `ConfigError` where
    the store has jobs already.

    >>> app = Rota("postgresql://production/shop")
    >>> with fresh_store(app):
    ...     job = app.send("shop.send_receipt", 42)
    ...     [job.task for job in app.jobs()]
    ['shop.send_receipt']
    """
    if not isinstance(app, Rota):
        raise ConfigError(f"fresh_store({brief(app)}): pass the app that is to keep its jobs elsewhere, a Rota")
    if not isinstance(url, str):
        raise ConfigError(f"url={brief(url)}: pass the URL of an empty store, for example 'memory://'")
    if clock is not None and not callable(clock):
        raise ConfigError(f"clock={brief(clock)}: pass a rota.testing.Clock, or a function that answers an aware datetime")
    store = open_store(url, **options)
    meanwhile = {
        "clock": clock,
        "eager": False,
        "settings": _keeping(app.settings),
        "holding": Holding(url, options, store.twin),
    }
    former = {name: vars(app).get(name, _ABSENT) for name in meanwhile}
    try:
        store.open()
        if store.find(Filter(tuple(State)), 1):
            raise ConfigError(
                f"the store {store.url} has jobs already, so what a test finds there may not be its own: name an empty one, "
                "such as memory:// or a file in a new directory (tmp_path in pytest), or empty it with rota.testing.emptied"
            )
        _set(app, meanwhile)
        _forget(app)
        try:
            yield app
        finally:
            app.close()
            _set(app, former)
            _forget(app)
    finally:
        store.close()


def emptied(url: str, **options: Any) -> str:
    """Delete all jobs of a store, running ones too, with its workers, pauses, sizes of limits and what these let through.

    For tests whose store has to be in one database with their own tables, and so is not a new one each time. Answers the URL,
    for `fresh_store`. Nothing asks back: never name a store that is not a test's own.

    >>> import os, tempfile
    >>> url = f"sqlite:///{os.path.join(tempfile.mkdtemp(), 'jobs.db')}"
    >>> with Rota(url) as app:
    ...     job = app.send("shop.send_receipt", 42)
    >>> with fresh_store(app, emptied(url)):
    ...     app.jobs()
    []
    """
    store = open_store(url, **options)
    try:
        store.open()
        _empty(store)
    finally:
        store.close()
    return url


def _empty(store: Store) -> None:
    for worker in store.workers():
        store.leave(worker.id)  # what it holds may then be deleted
    _free(store)
    last = None
    while rows := store.find(Filter(tuple(State)), _STEP, last):
        store.change(Move.DELETE, [row.id for row in rows])
        last = rows[-1].id
    for pause in store.pauses():
        store.resume(pause.queue)
    for name in store.overrides():
        store.set_limit(name, None)
    before: list[LimitRow] = []
    while (rooms := store.rooms()) and rooms != before:
        before = rooms
        store.prune({}, _STEP, store.vitals().now + LONGEST)


def _free(store: Store) -> None:
    """Have no limit hold jobs, for a limit that holds some is kept."""
    tasks = sorted({count.task for count in store.counts() if count.state is State.HELD})
    worker = WorkerRow(new_id(), "emptied", "", 0, None, tasks, concurrency=1, lease=LEASE, version="")
    store.join(worker)
    free_held(store, worker.id, None)
    store.leave(worker.id)


def _set(app: Rota, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        if value is _ABSENT:
            delattr(app, name)
        else:
            setattr(app, name, value)


def _keeping(settings: Settings) -> Settings:
    """The same, by which no job is gone as soon as it ends: it would seem never to have been enqueued."""
    return replace(settings, ages={state: age for state, age in settings.ages.items() if age}, kept=FINAL)


def _forget(app: Rota) -> None:
    """What the desk read in one store says nothing of another."""
    assert isinstance(app._desk, StoreDesk)
    app._desk._declared.clear()
