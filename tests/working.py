"""Workers inside the tests' own process, and waiting for what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rota import Rota
from rota.worker import Worker

T = TypeVar("T")


def eventually(check: Callable[[], T], within: float = 15.0) -> T:
    """What `check` answers as soon as that is true; an error that it raises counts as "not yet" until the time is up."""
    end = time.monotonic() + within
    pause = threading.Event()
    while True:
        late = time.monotonic() > end
        try:
            answer = check()
        except Exception:
            if late:
                raise
        else:
            if answer:
                return answer
            assert not late, f"it did not come true within {within:g} s: the last answer was {answer!r}"
        pause.wait(0.005)


@contextmanager
def working(app: Rota, **options: Any) -> Iterator[Worker]:
    """A worker that runs the app's jobs until the end of the block."""
    worker = Worker(app, **({"poll": 1.0, "shutdown_timeout": 5.0} | options))
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
