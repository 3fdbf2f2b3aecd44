"""What a lost reply leaves open: which jobs the store takes for claimed by a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rota.app import Rota
from rota.attempt import Run
from rota.model import Report
from rota.stores.base import Store
from rota.worker.within import is_finished

_AGAIN = 5.0
"""Seconds after a lost connection in which the server may still have done what was under way on it; it is asked again then."""


class Doubt:
    """Used by the ledger's thread alone."""

    def __init__(self, app: Rota, store: Store) -> None:
        self._app = app
        self._store = store
        self.there = False
        """Whether the store may take jobs for claimed by this worker that are not in its hands."""
        self.again_at: float | None = None
        """When there is doubt once more, by `time.monotonic`; `None` while nothing can be under way."""

    @property
    def begun(self) -> bool:
        """Whether there is some, or will be once more: what the store hands over meanwhile would be taken for lost."""
        return self.there or self.again_at is not None

    def begin(self) -> None:
        """A connection was lost: what was under way may have been done, or not, or be done in a moment."""
        self.there = True
        self.again_at = time.monotonic() + _AGAIN

    def heed(self) -> None:
        """Take note of the time."""
        if self.again_at is not None and time.monotonic() >= self.again_at:
            self.there, self.again_at = True, None

    def settle(self, worker: str, unwritten: Sequence[Run], ended: Sequence[Run]) -> bool:
        """Hand back what the store thinks is in hand here and is not, and drop what it knows nothing of.

        In hand are the unwritten ones, which may be dropped, and those that ended, which are still to be written. Answers
        whether the store knows this worker.
        """
        self._store.reconcile(worker, [run.job.id for run in (*unwritten, *ended)], self._app.now())
        # A server that crashed may have forgotten its last claims; another worker has those jobs now, or will.
        reports = [Report(run.job.id, run.job.claim) for run in unwritten]
        answer = self._store.beat(worker, reports, self._app.now())
        for run in unwritten:
            if run.job.id in answer.lost and not is_finished(self._store, run):
                run.lose()
        self.there = False
        return answer.alive
