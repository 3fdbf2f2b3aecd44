"""What a worker process tells the bench while it runs: five numbers in shared memory, so that telling costs no I/O.

Read by the bench and written by bodies in every contender's interpreter, so only the standard library is used.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from itertools import count
from pathlib import Path

STARTED, FIRST, SENT, SEEN, ARRIVED = range(5)
"""Bodies started, when the first did, the last stamp that arrived, when it did, and whether a body waits at the gate."""
SIZE = 64


def open_slots(path: Path) -> memoryview:
    """The numbers of one worker process, all zero at first. Moments are nanoseconds of the machine-wide monotonic clock."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.ftruncate(fd, SIZE)
        return memoryview(mmap.mmap(fd, SIZE)).cast("Q")
    finally:
        os.close(fd)


_slots: memoryview | None = None
_next = count(1).__next__
_lock = threading.Lock()


def body() -> None:
    """The body of the jobs that throughput is measured with: as near to nothing as can still be counted."""
    slots = _slots or _begin()
    slots[STARTED] = _next()


def stamped(sent: int) -> None:
    """The body of the jobs that latency is measured with: `sent` is the moment at which the job was enqueued."""
    seen = time.monotonic_ns()
    slots = _slots or _begin()
    slots[SEEN] = seen
    slots[SENT] = sent


def nap(seconds: float) -> None:
    """A body that keeps its worker busy without using the processor."""
    time.sleep(seconds)
    body()


def _begin() -> memoryview:
    """Note the first start. At the gate (two workers) the first body waits until every worker has one in hand."""
    global _slots
    with _lock:
        if _slots is None:
            folder = Path(os.environ["BENCH_TALLY"])
            slots = open_slots(folder / f"{os.getpid()}.tally")
            slots[ARRIVED] = 1
            if os.environ.get("BENCH_GATE"):
                while not (folder / "go").exists():
                    time.sleep(0.0005)
            slots[FIRST] = time.monotonic_ns()
            _slots = slots
        return _slots
