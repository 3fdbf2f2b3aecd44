"""Waking when a file is written to, by whatever process of this system: Linux's inotify, see inotify(7).

The standard library has no door to it, and what few lines are needed here are not worth a dependency. Elsewhere, and where
the system gives no more watches, there is none, and the file has to be looked at instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

_MODIFIED = 0x2


class Touches:
    """Watches a few files; owned by one thread."""

    def __init__(self, paths: Sequence[Path]) -> None:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        self.file: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        """Can be read once a file was touched."""
        if self.file < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for path in paths:
            if libc.inotify_add_watch(self.file, os.fsencode(path), _MODIFIED) < 0:
                self.close()
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(path))

    def touched(self) -> bool:
        """Whether a file was touched since the last look, at this moment and without waiting."""
        try:
            os.read(self.file, 65_536)  # what was touched, and how often, does not matter
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def touches(paths: Sequence[Path]) -> Touches | None:
    """A watch over the files that are there, or `None` where the system has none to give."""
    if sys.platform != "linux":
        return None
    try:
        return Touches([path for path in paths if path.exists()])
    except (OSError, AttributeError):
        return None
