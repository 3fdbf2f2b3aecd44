"""How many places of limits a worker has by claims that did not note them one by one: it counts them, and tells the store.

With each turn it tells what changed; once a reply was lost, or jobs were told as ended by another way, it tells all that it has.
Until then the store may have more than what runs, and never has less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rota.attempt import Run
from rota.model import Tally


class TallyBook:
    """Of the worker with this id. Used by the ledger's thread alone."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.known = True
        """Whether the store will have the same numbers once it did what is under way."""
        self._used = False
        self._in_hand: Counter[tuple[str, str]] = Counter()

    def begin(self) -> None:
        """From now on claims may count on this."""
        self._used = True

    def doubt(self) -> None:
        """What was told last may have been heard or not."""
        self.known = not self._used

    def took(self, runs: Iterable[Run]) -> None:
        """These were claimed without a note of their places, and the store has counted them."""
        for run in runs:
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
