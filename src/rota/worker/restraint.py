"""How far ahead a worker claims jobs under limits: not at all near a full one, else as far as the claim lets it.

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

_MEMORY = 1.0
"""Seconds for which it goes by what it met: no claim ahead under limits after a full one, fewer after one with a reserve."""
_IN_VAIN = 4
"""After so many claims for nothing that did not look at each job, there are none for a while."""
_KEPT = 0.75
"""This part of what it had in hand as it met a reserve: so workers that share a limit come to share what is ahead."""


class Restraint:
    """Used by the ledger's thread alone."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._tight_until = 0.0
        self._fewer_until = 0.0
        self._most = 0
        self._ample_from = self._ample_until = 0.0
        self._refused = 0

    def lets_wait(self, limiting: Limiting) -> bool:
        """Whether jobs under limits may be claimed that do not begin at once: while no limit was met of late."""
        return limiting.roomy and time.monotonic() >= self._tight_until

    def most_in_hand(self, limiting: Limiting) -> int | None:
        """How many jobs to have in hand at the most, if there is a bound."""
        bounds = [self._most] if time.monotonic() < self._fewer_until else []
        if self.amply_now(limiting):
            bounds.append(limiting.most_ahead)
        return min(bounds, default=None)

    def kept_to(self, ask: Ask, limiting: Limiting) -> Ask:
        """The same ask, with as many slots as jobs under limits may have now."""
        free = min(ask.limit, self._crew.free)
        return replace(ask, slots=ask.limit if self.lets_wait(limiting) else free, at_once=free)

    def amply_now(self, limiting: Limiting) -> bool:
        """Whether limits are likely to be so far from full that a claim need not look at each job."""
        return self._ample_from <= time.monotonic() < self._ample_until and self.lets_wait(limiting)

    @property
    def in_vain(self) -> bool:
        """Whether several such claims got nothing, one after the other, while others got some."""
        return self._refused >= _IN_VAIN

    def heed_ample(self, claimed: int, wanted: int) -> None:
        """Learn from a claim that did not look at each job; one that got fewer than it wanted may have been refused."""
        self._refused = 0 if claimed else self._refused + 1
        if claimed < wanted:
            self._ample_until = 0.0

    def heed(self, found: Round, taken: int) -> None:
        """Learn from a claim under limits, after which so many jobs have this worker's places as the store sees it."""
        now = time.monotonic()
        self._ample_until = 0.0 if found.held or found.reserved or not found.claimed else now + _MEMORY
        if self.in_vain:
            self._ample_from = now + _MEMORY  # such as where another size was set: each try is for nothing
        if self.in_vain or not found.claimed:
            self._refused = 0
        if found.held:
            self._tight_until = now + _MEMORY
        elif found.reserved:
            self._most = int(taken * _KEPT)
            self._fewer_until = now + _MEMORY
