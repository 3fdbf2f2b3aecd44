"""Run a worker, perhaps without some of the system's signals or with a clock that is wrong; or a row of them, each ended by a
SIGTERM at another moment."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class Signalling:
    """The store, except that the process sends itself a SIGTERM before or after the n-th call."""

    def __init__(self, store: Any, at: int, after: bool) -> None:
        self._store = store
        self._at = at
        self._after = after
        self._calls = iter(range(1, 1_000_000))
        self._lock = threading.Lock()

    def twin(self) -> Signalling:
        twin = Signalling(self._store.twin(), self._at, self._after)
        twin._calls, twin._lock = self._calls, self._lock
        return twin

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counted(name, found) if callable(found) else found

    def _counted(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                number = next(self._calls)
            if number == self._at and not self._after:
                os.kill(os.getpid(), signal.SIGTERM)
            answer = operation(*args, **kwargs)
            if number == self._at and self._after:
                os.kill(os.getpid(), signal.SIGTERM)
            return answer

        return call


def set_clock(ahead: float) -> None:
    """Let all that asks this process's clock for the time of day find it so many seconds ahead."""
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + ahead
    time.time_ns = lambda: nanoseconds() + int(ahead * 1_000_000_000)


def leave_out_what_windows_lacks() -> None:
    """Forks, and event loops that take signals."""
    del os.fork

    def refuse(*_: object) -> None:
        raise NotImplementedError

    loop = asyncio.new_event_loop()
    type(loop).add_signal_handler = refuse  # type: ignore[method-assign]
    loop.close()


def main() -> int:
    options = json.loads(sys.argv[1])
    if without := options.pop("without", []):
        for name in without:
            delattr(signal, name)
        leave_out_what_windows_lacks()
    if ahead := options.pop("ahead", 0):
        set_clock(ahead)
    calls, after = options.pop("sigterm", (0, False))
    logging.basicConfig(level=options.pop("level", "INFO"), format="%(asctime)s %(levelname)s %(message)s")
    from fault_app import app

    from rota.worker import Worker
    from rota.worker.ending import see_to_the_end

    if not calls:
        known = threading.enumerate()
        status = Worker(app, **options).run()
        see_to_the_end(status, known)
        return status
    store = app.store
    for at in range(1, calls + 1):
        app.holding._store = Signalling(store, at, after)  # type: ignore[assignment]
        if status := Worker(app, **options).run():
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
