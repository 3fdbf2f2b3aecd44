"""Memory that a worker's process is done with goes back to the system once it is idle, where the C library is glibc.

Python frees what it does not need, but glibc keeps most of that for later, in a pool for each thread: after a burst of large
jobs a worker would hold on to it for good. One pool is enough where one thread runs at a time (mallopt(3), M_ARENA_MAX;
malloc_trim(3)).
"""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress

_ARENA_MAX = -8
"""The number of `M_ARENA_MAX` in glibc's malloc.h."""
_IDLE = 1.0
"""Seconds without a job in hand after which a worker counts as idle: long enough that a steady trickle never pays for this."""


class Thrift:
    """Used by one thread, in a process that is the worker's alone: to trim a large heap may take a while."""

    def __init__(self) -> None:
        self._trim = None
        self._moved_at = 0.0
        self._since: float | None = time.monotonic()
        """When a job was last seen in hand, or one more had come; `None` once what it used was given back."""
        with suppress(OSError, AttributeError, TypeError):  # another C library, or none that can be asked
            library = ctypes.CDLL(None)
            self._trim = library.malloc_trim
            library.mallopt(_ARENA_MAX, 1)

    def look(self, in_hand: int, moved_at: float) -> bool:
        """Told now and then how many jobs are in hand, and when one last came (`time.monotonic`). Says whether it gave back."""
        if in_hand or moved_at != self._moved_at:
            self._moved_at, self._since = moved_at, time.monotonic()
        elif self._trim is not None and self._since is not None and time.monotonic() - self._since >= _IDLE:
            self._trim(0)
            self._since = None
            return True
        return False
