"""The thread that waits for the store to say that there may be work, and wakes the ledger."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rota.errors import StoreUnavailable
from rota.stores.base import Listener, Store
from rota.worker.backoff import Backoff

log = logging.getLogger("rota")
_SLICE = 5.0
"""Seconds of one wait; the stop ends it sooner."""


class Listening:
    """Owns the listener: makes it, and makes another when its connection is lost."""

    def __init__(self, store: Store, rung: Callable[[], None]) -> None:
        self._store = store
        self._rung = rung
        self._stopping = threading.Event()
        self._listener: Listener | None = None
        self._thread = threading.Thread(target=self._serve, name="rota-listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if (listener := self._listener) is not None:
            listener.stop()
        if self._thread.is_alive():
            self._thread.join(10)

    def _serve(self) -> None:
        backoff = Backoff(self._stopping)
        while not self._stopping.is_set():
            try:
                self._listen(backoff)
            except StoreUnavailable as error:
                backoff.pause("the listener has no connection", error)
            except Exception:
                log.exception("the listener failed, and is made anew")
                backoff.pause("the listener failed", None)

    def _listen(self, backoff: Backoff) -> None:
        listener = self._store.listen()
        self._listener = listener
        try:
            backoff.over()
            self._rung()  # what came while nobody listened
            while not self._stopping.is_set():
                if listener.wait(_SLICE):
                    self._rung()
        finally:
            self._listener = None
            listener.close()
