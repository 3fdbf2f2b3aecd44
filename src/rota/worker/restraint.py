"""How far ahead a worker claims jobs under limits: not at all near a full one, else up to a part of the narrowest.

A job that waits here for a slot takes a place that another worker could use, and would start later than its rate says.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rota.model import Ask, Round
from rota.worker.crew import Crew

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.limiting import Limiting

_TIGHT = 1.0
"""Seconds after a job was held in which no jobs under limits are claimed ahead."""


class Restraint:
    """Used by the ledger's thread alone."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._tight_until = 0.0

    def lets_wait(self, limiting: Limiting) -> bool:
        """Whether jobs under limits may be claimed that do not begin at once: while no limit was met of late."""
        return limiting.ahead > 0 and time.monotonic() >= self._tight_until

    def kept_to(self, ask: Ask, limiting: Limiting) -> Ask:
        """The same ask, with as many slots as jobs under limits may have now."""
        free = self._crew.free
        slots = max(free, limiting.ahead - self._crew.load) if self.lets_wait(limiting) else free
        return replace(ask, slots=min(ask.limit, slots))

    def heed(self, found: Round) -> None:
        """Learn from a claim under limits."""
        if found.held:
            self._tight_until = time.monotonic() + _TIGHT
