"""Jobs that their bodies finished within transactions of their own: whether these were committed is the store's to say."""

from __future__ import annotations

import logging
import time

from rota.app import Rota
from rota.attempt import Run
from rota.errors import StoreUnavailable
from rota.events import tell_overruled
from rota.model import Outcome, Succeeded
from rota.stores.base import Store
from rota.stores.finishing import has_succeeded, settle
from rota.worker.recorder import Handed, Recorder, in_its_place

log = logging.getLogger("rota")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
"""Seconds between looks at transactions that are still open."""
_LONG = 10.0
"""Seconds after which one that is still open is told of."""


class Within:
    """Used by the ledger's thread alone. It waits for no transaction: it looks again, in growing steps."""

    def __init__(self, app: Rota, store: Store, recorder: Recorder) -> None:
        self._app = app
        self._store = store
        self._recorder = recorder
        self._handed: dict[Run, Outcome] = {}
        self._told: set[Run] = set()
        self._pause = _FIRST_PAUSE
        self.next_at: float | None = None
        """When to look next, by `time.monotonic`; `None` while nothing waits."""

    @property
    def runs(self) -> list[Run]:
        """The attempts of which it is not known yet."""
        return list(self._handed)

    def add(self, run: Run, outcome: Outcome) -> None:
        """The body ended, and came to this if its transaction is undone."""
        self._handed[run] = outcome
        self._pause = _FIRST_PAUSE
        self.next_at = time.monotonic()

    def look(self) -> bool:
        """Look whether these transactions have ended, if it is time, and say whether any had."""
        if self.next_at is None or time.monotonic() < self.next_at:
            return False
        before = len(self._handed)
        for worker, claim in {(run.worker, run.job.claim) for run in self._handed}:  # the store answers by job, not by attempt
            alike = [run for run in self._handed if (run.worker, run.job.claim) == (worker, claim)]
            self._look_at(worker, [(run, self._handed[run]) for run in alike])
        self._told &= self._handed.keys()
        self.next_at = time.monotonic() + self._pause if self._handed else None
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return len(self._handed) < before

    def give_up(self) -> None:
        """The worker ends: what is still open is taken back by others once its transaction ends."""
        for run in self._handed:
            log.warning(
                "job %s (%s) was finished within a transaction that is still open, and the worker ends: "
                "another takes the job back if the transaction is undone",
                run.job.id,
                run.job.task,
            )
        self._handed.clear()
        self.next_at = None

    def _look_at(self, worker: str, handed: list[Handed]) -> None:
        try:
            self._write(worker, handed)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("outcomes could not be stored together and are stored one by one")
            for run, outcome in handed:
                self._write_alone(worker, run, outcome)

    def _write_alone(self, worker: str, run: Run, outcome: Outcome) -> None:
        try:
            self._write(worker, [(run, outcome)])
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("the outcome of job %s could not be stored", run.job.id)
            self._write(worker, [(run, in_its_place(outcome, error))])

    def _write(self, worker: str, handed: list[Handed]) -> None:
        ends = [self._recorder.ended(run, outcome) for run, outcome in handed]
        settled = settle(self._store, worker, ends, self._app.now())
        for (run, outcome), end in zip(handed, ends, strict=True):
            if end.id in settled.open:
                self._tell_open(run)
                continue
            self._handed.pop(run, None)
            if end.id in settled.done:
                tell_overruled(run.job, outcome)
                success = Succeeded(run.result)
                self._recorder.tell([(run, success)], [self._recorder.ended(run, success)], settled.done)
            else:
                self._recorder.tell([(run, outcome)], [end], settled.counted)

    def _tell_open(self, run: Run) -> None:
        since = time.monotonic() - (run.ended or 0) / 1e9
        if since > _LONG and run not in self._told:
            self._told.add(run)
            log.warning(
                "job %s (%s) was finished within a transaction that is still open %d s after its body ended: "
                "commit it in the body, or roll it back",
                run.job.id,
                run.job.task,
                since,
            )


def is_finished(store: Store, run: Run) -> bool:
    """Whether the transaction in which a body finished its job was committed; the body may go on after that."""
    if run.finishing and not run.finished:
        run.finished = has_succeeded(store, run.worker, run.job.id, run.job.claim)
    return run.finished
