"""The thread that calls `on_success` and `on_failure`, so that neither the store's turns nor the lease wait for a hook.

What ended waits for it in a queue. While hooks are busy and that grows long, the worker claims nothing more; a hook that
does not return stops nothing, but what more ends then is told to no hook, and the log says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from rota.aftermath import Aftermath, concerns
from rota.app import Rota
from rota.attempt import Run
from rota.model import Ended, Lost
from rota.stores.base import Store

log = logging.getLogger("rota")

BEHIND = 500
"""So many ends may wait for hooks before the worker claims nothing more."""
MOST = 5_000
"""So many may wait while a hook does not return; what ends beyond that is left out."""
STUCK = 5.0
"""Seconds after which a call counts as one that does not return."""
Heard = tuple[Run, Ended] | list[Lost]

_FAREWELL = 5.0
"""Seconds that hooks have at the worker's end for what waits for them."""


class HookThread:
    """Started with the first end that a hook wants to hear of."""

    def __init__(self, app: Rota, store: Store, rung: Callable[[], None]) -> None:
        self._app = app
        self._store = store
        self._rung = rung
        self._queue: SimpleQueue[Heard | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._called_at = 0.0
        self._was_behind = False
        self._left_out = 0
        self._closed = False
        self._given_up = False

    @property
    def wanted(self) -> bool:
        """Whether any hook wants to hear of ends."""
        return self._app.hooks.after

    @property
    def behind(self) -> bool:
        """Whether the hooks need time: so much waits for them that nothing more should be claimed."""
        if self._queue.qsize() < BEHIND or self._stuck():
            return False
        self._was_behind = True
        return True

    def ended(self, run: Run, end: Ended) -> None:
        """Have the hooks hear of an attempt whose end was recorded."""
        if concerns(self._app.hooks, run, end.outcome):
            self._put((run, end))

    def lost(self, jobs: list[Lost]) -> None:
        """Have the hooks hear of attempts whose worker was lost."""
        self._put(jobs)

    def close(self) -> None:
        """Have what waits heard, as far as there is time for that, and end the thread; one in a hook ends with the process."""
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is None:
            return
        self._queue.put(None)
        thread.join(_FAREWELL)
        if thread.is_alive():
            self._given_up = True
            left = max(0, self._queue.qsize() - 1)
            log.error("the worker ends while a hook has not returned; %d ends after that one are told to no hook", left)

    def _put(self, heard: Heard) -> None:
        if self._queue.qsize() >= MOST or not self._serving():
            if not self._left_out:
                log.error("hooks do not return, or have no thread: from now on they are not told of what ends")
            self._left_out += 1
        else:
            self._queue.put(heard)

    def _serving(self) -> bool:
        with self._starting:
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._serve, name="rota-hooks", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    log.error("no thread can be started for hooks: %s", error)
                    return False
                self._thread = thread
            return not self._closed

    def _stuck(self) -> bool:
        return self._called_at > 0 and time.monotonic() - self._called_at > STUCK

    def _serve(self) -> None:
        carried = self._app.carried
        with Aftermath(self._app.hooks, None if carried is None else carried.unpack) as after:
            while (heard := self._queue.get()) is not None and not self._given_up:
                self._called_at = time.monotonic()
                try:
                    if isinstance(heard, list):
                        after.lost(heard, self._store.get)
                    else:
                        after.ended(heard[0], heard[1].outcome)
                except Exception:
                    log.exception("the hooks of a job could not be called")
                del heard
                self._called_at = 0.0
                self._caught_up()

    def _caught_up(self) -> None:
        """Say so where the worker waited for this, or where ends were left out."""
        left = self._queue.qsize()
        if self._was_behind and left < BEHIND // 2:
            self._was_behind = False
            self._rung()
        if self._left_out and left < MOST // 2:
            log.error("hooks return again: %d ends were told to none", self._left_out)
            self._left_out = 0
