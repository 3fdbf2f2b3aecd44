"""The stop of a worker: asked for by any thread, and heeded step by step by the one that leads."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from rota.attempt import LOST, SHUTDOWN, Run
from rota.model import Released
from rota.worker.crew import Crew

_LAST = 1.0
"""Seconds that interrupted bodies have to end before their jobs are handed back."""


class Stopping:
    """`begin` is for all threads, the rest for the one that leads."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._begun = threading.Event()
        self._handback_at: float | None = None
        self.hurry = threading.Event()
        """Set by each call of `begin`, to end a wait for the store."""

    @property
    def begun(self) -> bool:
        """Whether nothing more is to be claimed."""
        return self._begun.is_set()

    def begin(self, handback_in: float) -> None:
        """Claim no more; hand back what has not ended `handback_in` seconds from now. Called again, it may only come sooner."""
        at = time.monotonic() + handback_in
        self._handback_at = at if self._handback_at is None else min(at, self._handback_at)
        self._begun.set()
        self.hurry.set()

    def wait(self, seconds: float) -> None:
        """Sleep for so long, or until the stop begins."""
        self._begun.wait(seconds)

    def past_handback(self, by: float = 0.0) -> bool:
        """Whether the time of running bodies is up, and so many seconds more."""
        return self._handback_at is not None and time.monotonic() >= self._handback_at + by

    def wind_down(self) -> None:
        """Hand back what has not begun; warn what runs; when the time is up, interrupt it and hand it back."""
        hand_back(self._crew, self._crew.unstarted(), "the worker shuts down")
        for run in list(self._crew.in_hand):
            run.warn(SHUTDOWN)
        if not self.past_handback():
            return
        for run in list(self._crew.in_hand):
            if not run.interrupted:
                run.interrupt(SHUTDOWN)
        if self.past_handback(_LAST):
            hand_back(self._crew, list(self._crew.in_hand), "the worker shut down before it ended")

    def next_at(self) -> float:
        """When `wind_down` will have something to do by itself."""
        now = time.monotonic()
        return now + 0.1 if self._handback_at is None else max(self._handback_at, now + 0.05)


def hand_back(crew: Crew, runs: Sequence[Run], why: str) -> None:
    """End these attempts without an outcome of their bodies; they do not count."""
    for run in runs:
        run.stop_clock()
        crew.end(run, Released("the lease was lost" if run.stop == LOST else why))
