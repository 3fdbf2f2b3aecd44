"""How many places of limits a worker has by claims that did not note them one by one: it counts them, and tells the store.

Before the first such claim it tells all that it has, and with each turn what changed. Once a line was lost, or jobs were told
as ended by another way, it tells all again. Until then the store may have more than what runs, and never has less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rota.attempt import Run
from rota.model import Ample, Tally


class TallyBook:
    """Of the worker with this id. Used by the ledger's thread alone.

    >>> book = TallyBook("w")
    >>> book.cover(Ample((("mail", "", 800),), {"mail": (("mail", ""),)}))
    >>> book.known, book.whole(), book.known
    (False, Tally(rooms={('mail', ''): 0}, whole=True), True)
    """

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.known = True
        """Whether the store will have the same numbers once it did what is under way."""
        self._in_hand: Counter[tuple[str, str]] = Counter()
        """By room, with those in which it has none."""

    def cover(self, ample: Ample) -> None:
        """A claim in these rooms may come: the store must have a number for each before, or it lets nobody in."""
        for name, key, _ in ample.rooms:
            if (name, key) not in self._in_hand:
                self._in_hand[name, key] = 0
                self.known = False

    def doubt(self) -> None:
        """What was told last may have been heard or not."""
        self.known = not self._in_hand

    def took(self, runs: Iterable[Run]) -> None:
        """These were claimed without a note of their places, and the store has counted them.

        What a former id of the worker's claimed is forgotten with that, and not counted.
        """
        for run in runs:
            if run.worker == self.worker:
                run.tallied = True
                self._in_hand.update(run.places)

    def gave_back(self, runs: Iterable[Run]) -> Counter[tuple[str, str]]:
        """What these give back, which ended. Asked a second time it is nothing."""
        given: Counter[tuple[str, str]] = Counter()
        for run in runs:
            if run.tallied and run.worker == self.worker:
                run.tallied = False
                given.update(run.places)
        self._in_hand.subtract(given)
        return given

    def whole(self) -> Tally:
        """What to tell so that the numbers are known, while nothing is under way."""
        self.known = True
        return Tally(dict(self._in_hand), whole=True)
