"""Waiting for a store that is away: longer and longer, a log line a try, and ended at once by a shutdown."""

from __future__ import annotations

import logging
import random
import threading

log = logging.getLogger("rota")
_FIRST = 0.1
_LONGEST = 5.0
"""Seconds of the first wait, and of the longest, about."""
FATAL_TRIES = 20
"""So many unforeseen errors in a row end the worker: it cannot do its work."""


class Backoff:
    """One thread's waits; they start short again after `over`. Setting `hurry` ends a wait."""

    def __init__(self, hurry: threading.Event, longest: float = _LONGEST) -> None:
        self._hurry = hurry
        self._longest = longest
        self._tries = 0

    def pause(self, what: str, error: BaseException | None) -> None:
        """Say what is wrong, and sleep until the next try is due or someone is in a hurry."""
        wait = min(_FIRST * 2**self._tries, self._longest) * (0.75 + random.random() / 2)  # noqa: S311
        self._tries = min(self._tries + 1, 10)
        log.warning("%s; next try in %.1f s%s", what, wait, f": {error}" if error is not None else "")
        self._hurry.wait(wait)

    def over(self) -> None:
        """The store answered."""
        if self._tries:
            log.info("the store is back")
            self._tries = 0

    @property
    def tries(self) -> int:
        """How many tries failed in a row."""
        return self._tries
