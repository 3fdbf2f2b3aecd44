"""An empty store for one test, under an app that stays the same object with the same tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rota.app import Rota
from rota.clock import Clock
from rota.desk import StoreDesk
from rota.stores import open_store


@contextmanager
def fresh_store(app: Rota, url: str = "memory://", *, clock: Clock | None = None, **options: Any) -> Iterator[Rota]:
    """Have this app keep its jobs in another store until the end of the block, and be afterwards what it was.

    `url` is to name an empty store: `memory://` is one each time, a file in a new directory is another. With `clock` all goes
    by that. The jobs stay until the end of the block although the app is closed meanwhile, as a lifespan does. An eager app is
    not eager meanwhile.

    >>> app = Rota("postgresql://production/shop")
    >>> with fresh_store(app):
    ...     job = app.send("shop.send_receipt", 42)
    ...     [job.task for job in app.jobs()]
    ['shop.send_receipt']
    """
    store = open_store(url, **options)
    former = {name: vars(app).get(name, _ABSENT) for name in ("url", "clock", "eager", "_store", "_unopened")}
    try:
        store.open()
        _set(app, {"url": url, "clock": clock, "eager": False, "_store": None, "_unopened": store.twin})
        _forget(app)
        try:
            yield app
        finally:
            app.close()
            _set(app, former)
            _forget(app)
    finally:
        store.close()


_ABSENT = object()


def _set(app: Rota, attributes: dict[str, object]) -> None:
    for name, value in attributes.items():
        if value is _ABSENT:
            delattr(app, name)
        else:
            setattr(app, name, value)


def _forget(app: Rota) -> None:
    """What the desk read in one store says nothing of another."""
    assert isinstance(app._desk, StoreDesk)
    app._desk._declared.clear()
