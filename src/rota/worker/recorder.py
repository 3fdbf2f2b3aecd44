"""What attempts came to, as the store is given it and as people are told of it."""

from __future__ import annotations

import logging

from rota import events
from rota.app import Rota
from rota.attempt import Run
from rota.errors import StoreUnavailable
from rota.model import Again, Cancelled, Ended, Failed, Failure, JobRow, Outcome, Released, Snoozed, State, Succeeded
from rota.rules.decide import keeps
from rota.stores.base import Store
from rota.stores.finishing import at_sight, has_succeeded
from rota.worker.hooks import HookThread

log = logging.getLogger("rota")

Handed = tuple[Run, Outcome]
"""A run that ended, and what it came to."""
_NAMES: dict[type, str] = {
    Failed: "failed",
    Again: "again",
    Snoozed: "snoozed",
    Released: "released",
    Cancelled: "cancelled",
}
"""What the notes of attempts call these outcomes."""


class Recorder:
    """Used by the ledger's thread alone."""

    def __init__(self, app: Rota, store: Store, hooks: HookThread) -> None:
        self._app = app
        self._store = store
        self._hooks = hooks
        self.resent = False
        """Whether an earlier try, whose answer was lost, may have written some of the outcomes that come next."""

    def ended(self, run: Run, outcome: Outcome) -> Ended:
        """The record of an attempt, as it crosses to the store."""
        job, limiting = run.job, self._app.limiting
        closes, closes_for = ((), 0) if limiting is None else limiting.closes(job, outcome)
        return Ended(
            job.id, job.claim, outcome, run.took, keeps(outcome, self._app.settings.kept), run.places, closes, closes_for
        )

    def write_singly(self, worker: str, handed: list[Handed]) -> None:
        """Write each outcome by itself and take it off the list, so that one left by a lost store can be tried again."""
        while handed:
            run, outcome = handed[0]
            try:
                end = self.ended(run, outcome)
                turn = self._store.finish(worker, [end], None, self._app.now())
            except StoreUnavailable:
                raise
            except Exception as error:
                log.exception("the outcome of job %s could not be stored", run.job.id)
                end = self.ended(run, in_its_place(outcome, error))
                turn = self._store.finish(worker, [end], None, self._app.now())
            handed.pop(0)
            self.resent = True  # the try together may have been heard
            self.tell([(run, outcome)], [end], turn.counted)

    def tell(self, handed: list[Handed], ends: list[Ended], counted: frozenset[str]) -> None:
        """Tell of attempts that were written, and log those that did not count."""
        if len(counted) < len(ends) and self.resent:
            counted |= self._written_before(handed, counted)
        self.resent = False
        hooked = self._hooks.wanted
        quiet = not log.isEnabledFor(logging.INFO)
        for (run, _), end in zip(handed, ends, strict=True):
            if end.id not in counted:
                log.warning("the lease of job %s (%s) was lost while it ran: its outcome is not recorded", end.id, run.job.task)
                continue
            if hooked:
                self._hooks.ended(run, end)
            if not quiet or not isinstance(end.outcome, Succeeded):  # an event costs more than the rest of a small job
                events.tell([events.ended(run.job, end)])

    def _written_before(self, handed: list[Handed], counted: frozenset[str]) -> frozenset[str]:
        """Those outcomes that an earlier try wrote, whose answer was lost with the connection."""
        left = [(run, outcome) for run, outcome in handed if run.job.id not in counted]
        rows = {row.id: row for row in self._store.get([run.job.id for run, _ in left])}
        return frozenset(run.job.id for run, outcome in left if self._written(run, outcome, rows.get(run.job.id)))

    def _written(self, run: Run, outcome: Outcome, row: JobRow | None) -> bool:
        """Whether the store has this outcome. A lease may have been lost with the connection: then it has another."""
        id, claim = run.job.id, run.job.claim
        stands = at_sight(run.worker, claim, row)
        if row is None or stands is State.RUNNING:
            return False
        if isinstance(outcome, Succeeded):
            return stands is State.SUCCEEDED or has_succeeded(self._store, run.worker, id, claim)
        name = _NAMES[type(outcome)]
        return any(note.claim == claim and note.outcome in (name, "cancelled") for note in self._store.attempts(id))


def in_its_place(outcome: Outcome, error: Exception) -> Outcome:
    """What to write of an outcome that the store cannot take: a success without its result, or a failure that says so."""
    if isinstance(outcome, Succeeded):
        return Succeeded()
    return Failed(Failure(type(error).__name__, "the attempt's outcome could not be stored; see the worker's log"))
