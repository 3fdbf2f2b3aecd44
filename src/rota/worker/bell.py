"""What a thread of the worker sleeps on, and anything may ring."""

from __future__ import annotations

import threading


class Bell:
    """Rings are not counted: one `wait` answers all that came before it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        """End the present `wait`, or the next one."""
        if not self._event.is_set():  # the look is far cheaper than the set, and most rings find it rung
            self._event.set()

    def wait(self, timeout: float) -> bool:
        """Sleep until rung, at most `timeout` seconds, and answer whether it was."""
        rung = self._event.wait(timeout) if timeout > 0 else self._event.is_set()
        self._event.clear()
        return rung
