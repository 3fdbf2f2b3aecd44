"""Workers inside the tests' own process, and waiting for what they do."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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


@contextmanager
def room_for_files(number: int) -> Iterator[None]:
    """This process can open so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + number
    taken = [os.dup(0)]
    while taken[-1] <= highest:  # a limit is one on numbers, and the lowest free one is given
        taken.append(os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, hard))
    for _ in range(number):
        os.close(taken.pop())
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)
