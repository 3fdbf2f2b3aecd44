"""The thread that keeps the worker's lease, from a connection of its own: a body that hogs the process does not lose its job.

With each beat it passes progress on and hears which jobs to stop. It also takes back the jobs of workers whose lease ran
out, and prunes the history.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from rota import events, operate
from rota.app import Rota
from rota.attempt import CANCELLED, Run
from rota.clock import SECOND, Micros
from rota.errors import SchemaMismatch, StoreUnavailable
from rota.model import Pulse as Answer
from rota.model import Report
from rota.stores.base import Store
from rota.worker.backoff import FATAL_TRIES, Backoff
from rota.worker.crew import Crew
from rota.worker.hooks import HookThread
from rota.worker.identity import Identity
from rota.worker.signs import Signs
from rota.worker.within import is_finished

log = logging.getLogger("rota")
_BUSY = 1.0
"""Seconds between beats while jobs run: about how long a cancel or a progress takes to arrive."""
_PRUNE = 60.0
"""Seconds between looks at what the history need not keep."""
_PRUNE_STEP = 1_000
_SEEN: Micros = 60 * SECOND
"""How long jobs stay whose state is not kept: until long after the next beat of their worker."""
_REAP_STEP = 500
"""So many jobs are pruned, or taken back, together at the most."""


class Pulse:
    """Owns the worker's identity: joins, beats, and joins anew when the lease was taken."""

    def __init__(
        self,
        app: Rota,
        store: Store,
        crew: Crew,
        identity: Identity,
        signs: Signs,
        hooks: HookThread,
        rung: Callable[[], None],
        hopeless: Callable[[], None],
    ) -> None:
        self._app = app
        self._store = store
        self._crew = crew
        self._identity = identity
        self._signs = signs
        self._dead: deque[str] = deque()
        self._hooks = hooks
        self._rung = rung
        self._hopeless = hopeless
        self._interval = identity.row.lease / SECOND / 3
        self._stopping = threading.Event()
        self._backoff = Backoff(self._stopping, self._interval)  # a store that is back hears a beat before the lease ends
        self._thread = threading.Thread(target=self._serve, name="rota-pulse", daemon=True)
        self._beat_at = 0.0
        self._beaten_at = time.monotonic()
        self._ahead = time.time() - self._beaten_at
        self._reap_at = 0.0
        self._prune_at = time.monotonic() + _PRUNE

    def start(self) -> None:
        self._thread.start()

    def bury(self, worker: str) -> None:
        """End the lease of a worker whose process has ended, and take back what it held; called by any thread."""
        self._dead.append(worker)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _serve(self) -> None:
        try:
            self._beat_until_the_end()
        except BaseException as error:  # noqa: BLE001  # such as an exit that a clock or a handler of log records asks for
            with suppress(BaseException):  # the log may be what stopped it
                log.critical("the lease cannot be kept, so the worker ends: %s: %s", type(error).__name__, error)
            self._hopeless()

    def _beat_until_the_end(self) -> None:
        self._beat_at = time.monotonic() + self._interval  # joining was the first
        errors = 0
        while not self._stopping.is_set():
            try:
                self._round()
                self._backoff.over()
                errors = 0
            except StoreUnavailable as error:
                self._backoff.pause("the beat has no store", error)
            except SchemaMismatch as error:
                log.critical("this worker hands its jobs back and ends: %s", error)
                self._hopeless()
                return
            except Exception:
                errors += 1
                log.exception("the beat met an error and goes on")
                if errors == FATAL_TRIES:
                    log.critical("the lease cannot be kept after %d errors in a row: the worker ends", errors)
                    self._hopeless()
                self._backoff.pause("the beat failed", None)

    def _round(self) -> None:
        self._signs.beat()
        self._clock_was_set()
        now = time.monotonic()
        if now >= self._beat_at or self._crew.in_hand or self._identity.forgotten:
            self._beat()
            if now - self._beaten_at > 3 * self._interval:
                # The store was away from this worker, and so perhaps from all: they get time to beat first.
                self._reap_at = now + self._interval
            self._beaten_at = now
            self._beat_at = now + self._interval
        while self._dead:
            self._store.expire(self._dead[0], self._app.now())
            self._dead.popleft()
            self._reap_at = now
        if now >= self._reap_at and not self._clock_was_set():
            self._reap(now)
        if now >= self._prune_at:
            self._prune(now)
        self._stopping.wait(min(_BUSY, self._interval, max(0.01, self._reap_at - now)))

    def _clock_was_set(self) -> bool:
        """Whether the machine slept or its clock was set forward since the last call: then beat soon, and reap later.

        Where that is the store's clock every lease seems to have run out, and all workers get time to notice and to beat.
        """
        now = time.monotonic()
        before, self._ahead = self._ahead, time.time() - now
        if self._ahead - before <= self._interval:
            return False
        self._beat_at = now
        self._reap_at = now + 2 * self._interval
        return True

    def _beat(self) -> None:
        worker = self._identity.id
        hands = list(self._crew.in_hand)
        ours = [run for run in hands if run.worker == worker]
        latest = {run.job.id: run for run in sorted(ours, key=lambda run: run.job.claim)}
        told = [(run, run.progress) for run in latest.values() if not run.finished]
        before = time.monotonic()
        answer = self._store.beat(worker, [Report(run.job.id, run.job.claim, said) for run, said in told], self._app.now())
        if answer.alive:
            self._identity.told_at = before
        for run, said in told:
            if run.progress is said:
                run.progress = None
        for run in hands:
            # One claimed under a former id was taken in hand after that one was lost, and of two attempts of a job that are
            # in hand at once only the later can be the worker's still; it was finished in a transaction and retried by hand.
            if run.worker != worker or latest[run.job.id] is not run:
                self._lose(run)
        if answer.alive:
            self._obey([run for run, _ in told], answer)
        else:
            self._join_anew(worker)

    def _obey(self, told: Sequence[Run], answer: Answer) -> None:
        """Stop what the answer names, among the runs it is about: a job may have come back to this worker since."""
        for run in told:
            if run not in self._crew.in_hand:
                continue
            if run.job.id in answer.lost:
                self._lose(run)
            elif run.job.id in answer.cancelled and not run.interrupted:
                run.interrupt(CANCELLED)

    def _join_anew(self, worker: str) -> None:
        """The lease ran out and was taken, so whatever is in hand is another's now; go on under a new id."""
        row = self._identity.renew()
        self._store.join(row, self._app.now())
        self._identity.take_on(row)
        self._signs.joined(row.id)
        log.warning("this worker's lease was lost (it was held up for longer than that): it goes on as a new one")
        for run in list(self._crew.in_hand):
            if run.worker == worker:
                self._lose(run)
        self._rung()

    def _lose(self, run: Run) -> None:
        if not is_finished(self._store, run):
            run.lose()

    def _reap(self, now: float) -> None:
        """Take back what lost workers held, and look again when the next lease runs out."""
        reaped = self._store.lost(_REAP_STEP, self._app.now())
        if reaped.lost:
            events.tell([events.lost(job) for job in reaped.lost])
            if self._hooks.wanted:
                self._hooks.lost(reaped.lost)
            self._rung()
        if self._app.limiting is None:
            operate.free_held(self._store, self._identity.id, self._app.now())
        wait = self._interval if reaped.next_in is None else min(reaped.next_in / SECOND, self._interval)
        self._reap_at = now if len(reaped.lost) == _REAP_STEP else now + max(wait, 0.05)

    def _prune(self, now: float) -> None:
        """Delete one step of what the history need not keep any longer; a full step is followed by another soon."""
        # What is not kept at all is there where a body finished its job in a transaction: its worker has to see that first.
        ages = {state: age or _SEEN for state, age in self._app.settings.ages.items()}
        pruned = self._store.prune(ages, _PRUNE_STEP, self._app.now())
        self._prune_at = now + (1.0 if sum(pruned.values()) >= _PRUNE_STEP else _PRUNE)
