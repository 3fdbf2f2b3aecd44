"""Waiting for a key, on terminals that can tell of one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Pressed = Callable[[float, str], bool]
"""Waits so many seconds for one of these keys, and answers whether it was pressed."""

_GLANCE = 0.05
"""Seconds between looks at the keyboard on Windows, which cannot be waited for."""


@contextmanager
def keys() -> Iterator[Pressed]:
    """A way to wait for keys within the block, for which the terminal gives each at once and shows none."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield _only_wait
    elif sys.platform == "win32":
        yield _on_windows
    else:
        import termios
        import tty

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        try:
            tty.setcbreak(terminal)  # Ctrl+C goes on to interrupt
            yield _on_posix
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _only_wait(seconds: float, _: str) -> bool:
    time.sleep(seconds)
    return False


def _on_posix(seconds: float, wanted: str) -> bool:
    import os
    import select

    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0]:
            found = os.read(sys.stdin.fileno(), 64)
            if not found or any(key.encode() in found.lower() for key in wanted):
                return True  # no byte at all says that the terminal is gone
    return False


def _on_windows(seconds: float, wanted: str) -> bool:
    if sys.platform == "win32":
        import msvcrt

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            while msvcrt.kbhit():
                if msvcrt.getwch().lower() in wanted:
                    return True
            time.sleep(_GLANCE)
    return False
