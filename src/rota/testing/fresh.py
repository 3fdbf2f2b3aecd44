"""An empty store for one test, under an app that stays the same object with the same tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rota.app import Rota
from rota.clock import Clock
from rota.codec.wire import brief
from rota.desk import StoreDesk
from rota.errors import ConfigError
from rota.model import Filter, State
from rota.stores import open_store


@contextmanager
def fresh_store(app: Rota, url: str = "memory://", *, clock: Clock | None = None, **options: Any) -> Iterator[Rota]:
    """Have this app keep its jobs in another store until the end of the block, and in its own again afterwards.

    `url` is to name an empty store: `memory://` is one each time, a file in a new directory is another. `options` are those of
    this store; the app's own are left aside. With `clock` all goes by that, and without by the store's. The jobs stay until the
    end of the block although the app is closed meanwhile, as a lifespan does. An eager app is not eager meanwhile. Tasks and
    hooks that are declared meanwhile stay. Raises `ConfigError` where the store has jobs already.

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
    store = open_store(url, **options)
    former = {name: vars(app).get(name, _ABSENT) for name in ("url", "clock", "eager", "_store", "_store_options", "_unopened")}
    meanwhile = {"url": url, "clock": clock, "eager": False, "_store": None, "_store_options": options, "_unopened": store.twin}
    try:
        store.open()
        if store.find(Filter(tuple(State)), 1):
            raise ConfigError(
                f"the store {store.url} has jobs already, so what a test finds there may not be its own: name an empty one, "
                "such as memory:// or a file in a new directory (tmp_path in pytest)"
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


_ABSENT = object()


def _set(app: Rota, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        if value is _ABSENT:
            delattr(app, name)
        else:
            setattr(app, name, value)


def _forget(app: Rota) -> None:
    """What the desk read in one store says nothing of another."""
    assert isinstance(app._desk, StoreDesk)
    app._desk._declared.clear()
