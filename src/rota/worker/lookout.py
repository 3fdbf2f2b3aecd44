"""When a worker looks for work in the store, and under which queues: rung when it sleeps, by itself now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from rota.clock import SECOND, Micros
from rota.model import Ask, Claimed, Round
from rota.stores.base import Store
from rota.worker.identity import Identity

_RELOOKS = (0.02, 0.2, 1.0)
"""Seconds after falling asleep at which it looks again: an insert that began before the store knew of it does not ring."""
_SELDOM = 1.0
"""Seconds at most between looks at what is scheduled and at the queues, while rings are answered by claims."""
_REMEMBERED = 60.0
"""Seconds for which a worker that serves all queues asks for one that has no queued job any more: limits may hold some."""
_MOST_REMEMBERED = 100
"""So many such queues at most: each makes a claim a little dearer."""
_LOCKED = 0.05
"""Seconds before due jobs that somebody holds locked are looked at again."""
_STEP = 500
"""So many scheduled jobs are queued together at the most."""


class Lookout:
    """Owned by the ledger's thread; `ring` is for all.

    A worker that finds no more work says in the store that it is asleep, and is rung from then on. While it is awake the
    inserts cost nothing extra, and it asks for work with every finish.
    """

    def __init__(
        self,
        store: Store,
        identity: Identity,
        now: Callable[[], Micros | None],
        queues: Sequence[str] | None,
        likely: Iterable[str],
        poll: float,
        limits: bool = False,
    ) -> None:
        self._store = store
        self._identity = identity
        self._now = now
        self._serves_all = queues is None
        self._base = tuple(dict.fromkeys(likely if queues is None else queues))
        """Always asked for: the queues it serves, or, where it serves all, those that its tasks declare."""
        self._queues = self._base
        """What is asked for: those that are known, without the paused ones."""
        self.paused: frozenset[str] = frozenset()
        """The queues that are paused, as far as this worker has heard."""
        self._paused_as_of = float("-inf")
        self._look_at_pauses_at = 0.0
        self._met: dict[str, float] = {}
        """When other queues last had queued jobs, the latest last."""
        self._poll = poll
        self._limits = limits
        self._rung = False
        self._asleep_as: str | None = None
        self._full_claims = 0
        self._last: Mapping[str, Claimed] = {}
        self._front_at = 0.0
        self._look_at: list[float] = []
        self._opens_at: float | None = None
        """When time makes room under a limit."""
        self._promote_at = 0.0
        self._queues_at = 0.0
        self.look = True
        """Whether there may be work that was not asked for yet."""

    def ring(self) -> None:
        """There may be work; called by any thread."""
        self._rung = True

    @property
    def asleep(self) -> bool:
        """Whether the store rings for this worker when jobs come in."""
        return self._asleep_as == self._identity.id

    def heed(self) -> None:
        """Take note of rings and of the time."""
        now = time.monotonic()
        if self._rung:
            self._rung = False
            self.look = True
            self._promote_at = min(self._promote_at, now + _SELDOM)
            self._look_at_pauses_by(self._paused_as_of + _SELDOM)  # it may have been for a pause, along with a job
        if self._opens_at is not None and now >= self._opens_at:
            self._opens_at = None
            self.look = True
        if self._look_at and now >= self._look_at[0]:
            self._look_at = self._look_at[1:] or [now + self._poll]
            # What limits hold is not queued: only a claim tells whether there is room for it.
            self.look = self.look or self._limits or self._anything_queued()

    def ask(self, room: int, finishing: bool) -> Ask | None:
        """What to claim, if anything. A sleeper is rung for new work, so it need not ask along with what it finishes."""
        if room <= 0 or not (self.look or (finishing and not self.asleep)):
            return None
        if time.monotonic() - self._paused_as_of >= _SELDOM:
            self._look_at_pauses()
        return Ask(self._identity.id, self._queues, room, behind=self._begin_behind())

    def ask_when_rung(self, room: int) -> Ask | None:
        """What to claim as soon as the store rings."""
        return Ask(self._identity.id, self._queues, room) if room > 0 and self.asleep else None

    def after(self, ask: Ask, claimed: Sequence[Claimed]) -> None:
        """Learn from a claim whether there is more, and fall asleep or wake up in the store's eyes."""
        if len(claimed) >= ask.limit:
            self._last = {**self._last, **{job.queue: job for job in claimed}}  # they come in the order promised
            self._after_full()
            return
        self._last = {}
        self._full_claims = 0
        now = time.monotonic()
        self.look = False
        if not claimed:  # a ring that was for none of this: perhaps for what is due sooner than known, a new queue, or a pause
            self._promote_at = now
            self._look_at_pauses_by(max(now, self._paused_as_of + _LOCKED))
        if self._serves_all and (not claimed or now >= self._queues_at):
            self.look = self._new_queues(ask)
        elif self._serves_all and (not self._look_at or self._look_at[0] > self._queues_at):
            self._look_at.insert(0, self._queues_at)  # the ring may have been for a queue that is new as well
        fell_asleep = not self.asleep
        if fell_asleep:
            self._rest(True)
            self.look = True  # once more, for what came before the store knew
        if fell_asleep or not self._look_at:
            self._look_at = [now + wait for wait in _RELOOKS if fell_asleep and wait < self._poll] + [now + self._poll]

    def after_round(self, ask: Ask, found: Round) -> None:
        """The same, of a claim under limits; and note when time makes room for what they hold."""
        if found.more or len(found.claimed) >= min(ask.limit, ask.slots):
            self._after_full()
        else:
            self.after(ask, found.claimed)
        self._opens_at = None if found.next_in is None else time.monotonic() + found.next_in / SECOND

    def heed_pauses(self, jobs_wait: bool) -> None:
        """Ask which queues are paused, if there is cause: someone may have paused or resumed one, or a pause ends now.

        While jobs wait in the worker for a slot it asks now and then, for they would begin without any further claim.
        """
        if jobs_wait:
            self._look_at_pauses_by(self._paused_as_of + _SELDOM)
        if time.monotonic() >= self._look_at_pauses_at:
            self._look_at_pauses()

    def promote(self) -> None:
        """Queue scheduled jobs whose time came, and note when the next one is due."""
        now = time.monotonic()
        if now < self._promote_at:
            return
        promoted = self._store.promote(_STEP, self._now())
        # What is due and was not promoted is another's at this moment: no cause to look again and again.
        wait = self._poll if promoted.next_in is None else max(promoted.next_in / SECOND, 0.0 if promoted.count else _LOCKED)
        # A job enqueued meanwhile may be due sooner, and rings sleepers only, so one that is awake looks each second.
        self._promote_at = now + (0.0 if promoted.count == _STEP else min(wait, self._poll if self.asleep else _SELDOM))
        self.look = self.look or promoted.count > 0

    def next_at(self) -> float:
        """When it will have something to do by itself."""
        moments = [self._promote_at, self._look_at_pauses_at, *self._look_at[:1]]
        return min(moments if self._opens_at is None else [*moments, self._opens_at])

    def _begin_behind(self) -> Mapping[str, Claimed]:
        """While there is a backlog, a claim may leave off where the last one did; now and then all is looked at."""
        now = time.monotonic()
        if not self._full_claims or now >= self._front_at:
            self._last = {}
            self._front_at = now + _SELDOM
        return self._last

    def _after_full(self) -> None:
        self._full_claims += 1
        self.look = True
        self._look_at = []
        if self._full_claims == 1:
            return
        if self.asleep:
            self._rest(False)
        if self._serves_all and time.monotonic() >= self._queues_at:
            self._anything_queued()  # a backlog under the queues that are known must not hide a new one

    def _rest(self, asleep: bool) -> None:
        worker = self._identity.id
        self._store.rest(worker, asleep)
        self._asleep_as = worker if asleep else None

    def _anything_queued(self) -> bool:
        """A look that only reads, so that an idle worker writes nothing."""
        names = self._store.queues()
        now = time.monotonic()
        self._queues_at = now + _SELDOM
        if not self._serves_all:
            return any(name in self._queues for name in names)
        before = [(name, at) for name, at in self._met.items() if name not in names and now - at < _REMEMBERED]
        self._met = dict(before[-_MOST_REMEMBERED:]) | dict.fromkeys(names, now)
        self._choose()
        return not self.paused.issuperset(names)

    def _look_at_pauses(self) -> None:
        found = self._store.paused(self._now())
        self._paused_as_of = now = time.monotonic()
        self._look_at_pauses_at = float("inf") if found.next_in is None else now + max(found.next_in / SECOND, _LOCKED)
        if found.queues != self.paused:
            self.look = self.look or not found.queues >= self.paused
            self.paused = found.queues
            self._choose()

    def _look_at_pauses_by(self, at: float) -> None:
        self._look_at_pauses_at = min(self._look_at_pauses_at, at)

    def _choose(self) -> None:
        """What is paused is not asked for: a claim without it costs nothing more, and one without any queue nothing at all."""
        self._queues = tuple(name for name in dict.fromkeys([*self._base, *self._met]) if name not in self.paused)

    def _new_queues(self, ask: Ask) -> bool:
        """Whether jobs wait under queues that the claim did not ask for."""
        self._anything_queued()
        return not set(self._queues) <= set(ask.queues)
