"""An app's store: which one it is, and whether it is open yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rota.forks import in_child
from rota.stores.base import Store


class Holding:
    """Opens the store when it is first needed, once for all threads. Nothing else of an app knows the store before."""

    def __init__(self, url: str, options: Mapping[str, Any], make: Callable[[], Store] | None = None) -> None:
        self.url = url
        self._options = options
        self._make = make
        self._store: Store | None = None
        self._unlock()
        in_child(self._unlock)

    @property
    def is_open(self) -> bool:
        return self._store is not None

    def open(self) -> Store:
        """The store, opened."""
        if self._store is None:
            with self._opening:
                if self._store is None:
                    store = self.unopened()
                    try:
                        store.open()
                    except BaseException:
                        store.close()
                        raise
                    self._store = store
        return self._store

    def open_beside(self) -> Store:
        """The same for a caller who may have a transaction open in which a SQLite file cannot be made ready: that is told."""
        if self._store is None:
            from rota.stores import try_to_open

            try_to_open(self.url, **self._options)
        return self.open()

    @contextmanager
    def at_hand(self) -> Iterator[Store]:
        """The store, for what must not open it first: as it is, or one that is closed afterwards."""
        if self._store is not None:
            yield self._store
            return
        store = self.unopened()
        try:
            yield store
        finally:
            store.close()

    def unopened(self) -> Store:
        """Another store of the same kind and place. Raises what is wrong with its URL and options, as far as that shows so."""
        if self._make is not None:
            return self._make()
        from rota.stores import open_store

        return open_store(self.url, **self._options)

    def close(self) -> None:
        """Close the store, if it is open; it may be opened again."""
        with self._opening:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _unlock(self) -> None:
        self._opening = threading.Lock()
