"""The thread that keeps a worker at work beside a program: one that falls is followed by another."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rota.app import Rota
from rota.worker import Worker

log = logging.getLogger("rota")
_FIRST = 1.0
_LONGEST = 60.0
"""Seconds of the first wait, and of the longest, about."""
_STEADY = 60.0
"""The fall of a worker that lived for so many seconds is the first one again."""
_PATIENCE = 3.0
"""Seconds beyond those for bodies that a stop may take."""
_LEASE = 30.0
"""For so many seconds after a next try was due it is believed that the process tries at all."""


class Keeper:
    """From `start` to `stop` there is a worker, or the next one is due soon. What befalls one stays in its threads."""

    def __init__(self, app: Rota, make: Callable[[], Worker]) -> None:
        """Raises `ConfigError` where no worker can be made."""
        self._app = app
        self._make = make
        self._worker = make()
        self._replacing = threading.Lock()
        self._handback_in: float | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="rota-beside", daemon=True)
        self.down = False
        """Whether the worker fell and the next is not there yet."""

    def start(self) -> None:
        """Raises `RuntimeError` where the system has no thread to give."""
        self._thread.start()

    def request_stop(self, handback_in: float) -> None:
        """Claim no more, and hand back in so many seconds what still runs then. Returns at once; the shorter time counts."""
        with self._replacing:
            self._handback_in = handback_in
            self._stopping.set()
            self._worker.request_stop(handback_in)

    def stop(self, handback_in: float) -> None:
        """Stop, and wait for the end: a few seconds more than `handback_in` at the most.

        Whoever interrupts the wait has what runs handed back at once, and is then interrupted.
        """
        self.request_stop(handback_in)
        try:
            ended = self._ended.wait(handback_in + _PATIENCE)
        except BaseException:
            self.request_stop(0.0)
            self._ended.wait(_PATIENCE)
            raise
        if ended:
            self._thread.join()
        else:
            log.warning("the worker beside this program does not end: what it has in hand comes back when its lease runs out")

    # -- the thread -----------------------------------------------------------------------------

    def _keep(self) -> None:
        falls = 0
        trouble: str | None = None
        try:
            while not self._stopping.is_set():
                begun = time.monotonic()
                trouble = self._work(trouble)
                if self._stopping.is_set():
                    return
                falls = 1 if time.monotonic() - begun >= _STEADY else falls + 1
                wait = min(_FIRST * 2 ** (falls - 1), _LONGEST) * (0.75 + random.random() / 2)  # noqa: S311
                self._pause(trouble, wait)
        finally:
            self._ended.set()

    def _work(self, former: str | None) -> str:
        """Have a worker work until it ends, and answer why it did. `former` is what befell the one before it, if any was."""
        try:
            if former is not None:
                self._replace(former)
            self._worker.start()
            self.down = False
            self._worker.wait()
        except Exception as error:  # noqa: BLE001  # whatever keeps it from starting is tried again
            return f"{type(error).__name__}: {error}"
        return self._worker.trouble or "it ended by itself"

    def _replace(self, trouble: str) -> None:
        worker = self._make()
        worker.after_fall(trouble)
        with self._replacing:
            self._worker = worker
            if self._handback_in is not None:
                worker.request_stop(self._handback_in)

    def _pause(self, trouble: str, wait: float) -> None:
        self.down = True
        with suppress(Exception):  # a log that fails may be what it fell over
            log.error("the worker beside this program fell (%s); it is started again in %.1f s", trouble, wait)
        with self._told(trouble, wait):
            self._stopping.wait(wait)

    @contextmanager
    def _told(self, trouble: str, wait: float) -> Iterator[None]:
        """Have it stand in the store meanwhile that a worker is down, where the store takes that."""
        row = self._worker.fallen(trouble, wait + _LEASE)
        with suppress(Exception):
            self._app.store.join(row, self._app.now())
        try:
            yield
        finally:
            with suppress(Exception):
                self._app.store.leave(row.id, self._app.now())
