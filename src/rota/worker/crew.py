"""The jobs in a worker's hands: who has a slot, who waits for one, and what ended. Shared by all of the worker's threads."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from rota.attempt import Run
from rota.bell import Bell
from rota.forks import end_fork
from rota.model import Outcome, Succeeded

Start = Callable[[Sequence[Run]], None]


class Crew:
    """Keeps bodies to `slots` at a time, in the order in which they were claimed.

    A slot goes from a body that ended straight to the next job, without the ledger, so it never waits for the store.
    """

    def __init__(self, slots: int, bell: Bell, start: Start) -> None:
        self.start = start
        """Gives bodies that have a slot to those who can run them."""
        self.slots = slots
        self.bell = bell
        self.ring_at = 1
        """After how many outcomes the bell is rung."""
        self.in_hand: set[Run] = set()
        """Every job that was added and has not ended."""
        self.timed: set[Run] = set()
        """Those that have a deadline; the ledger watches it."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[Run] = deque()
        self._free = slots
        self.moved_at = 0.0
        """When a job last came or got a slot, by `time.monotonic`."""
        self._outcomes: deque[tuple[Run, Outcome]] = deque()
        self._stuck: set[Run] = set()
        """Bodies whose slot went to another, while they do not end or cannot go on."""
        self._blocked: set[Run] = set()
        """Those whose job ended without them, and who keep their slot: too many are stuck."""
        self._choked_at = 0.0
        self._owed: set[Run] = set()
        """Those that go on after their slot went to another, and get the next that becomes free."""

    # -- for the ledger -------------------------------------------------------------------------

    def add(self, runs: Sequence[Run]) -> list[Run]:
        """Take claimed jobs in hand, and answer those that found a slot free: they are to be started."""
        with self._lock:
            if not self._waiting:
                self.moved_at = time.monotonic()
            self.in_hand.update(runs)
            self._waiting.extend(runs)
            ready = [self._waiting.popleft() for _ in range(min(self._free, len(self._waiting)))]
            self._free -= len(ready)
        return ready

    def unwritten(self) -> list[Run]:
        """Every job that is this worker's: those in hand, and those whose outcome nobody has taken yet."""
        with self._lock:
            return [*self.in_hand, *(run for run, _ in self._outcomes)]

    def outcomes(self) -> list[tuple[Run, Outcome]]:
        """What ended since the last call."""
        taken = []
        while self._outcomes:
            taken.append(self._outcomes.popleft())
        return taken

    def unstarted(self) -> list[Run]:
        """Take back the jobs that still wait for a slot; they have not ended."""
        with self._lock:
            runs = list(self._waiting)
            self._waiting.clear()
        return runs

    def unstarted_of(self, queues: frozenset[str]) -> list[Run]:
        """Take back those of these queues that still wait for a slot; they have not ended."""
        if not queues or not self._waiting:
            return []
        with self._lock:
            runs = [run for run in self._waiting if run.job.queue in queues]
            self._waiting = deque(run for run in self._waiting if run.job.queue not in queues)
        return runs

    def give_up(self, run: Run, outcome: Outcome) -> bool | None:
        """End a job over its body's head. Answers whether its slot went to another; `None` when the body was quicker.

        As many bodies as there are slots may be stuck like this; what is stuck beyond that keeps its slot until it ends.
        The bell is rung at once, for any thread may call this.
        """
        with self._lock:
            if not self._end(run, outcome):
                return None
            freed = self._give_away(run)
            given = run in self._stuck
            if not given:
                self._blocked.add(run)
                self._choked_at = time.monotonic()
        if freed and (following := self.next()) is not None:
            self.start([following])
        self.bell.ring()
        return given

    @property
    def load(self) -> int:
        """How many jobs in hand have a slot or wait for one."""
        return len(self.in_hand) - len(self.in_hand & self._stuck)

    @property
    def ended(self) -> int:
        """How many outcomes wait to be taken."""
        return len(self._outcomes)

    @property
    def waiting(self) -> int:
        """How many jobs in hand wait for a slot."""
        return len(self._waiting)

    @property
    def free(self) -> int:
        """How many slots are free."""
        return self._free

    def stalled(self) -> float:
        """For how many seconds, about, jobs in hand have waited for a slot without pause."""
        return time.monotonic() - self.moved_at if self._waiting else 0.0

    def choked(self) -> float:
        """For how many seconds every slot has been kept by a body whose job ended without it: nothing can begin."""
        return time.monotonic() - self._choked_at if len(self._blocked) == self.slots else 0.0

    # -- for whoever runs bodies ----------------------------------------------------------------

    def end(self, run: Run, outcome: Outcome) -> bool:
        """Hand in a job's outcome, and answer whether the caller still has its slot. Only the first call for a job counts.

        A false answer means that its slot was given away: the job was ended over the body's head, or the body set aside.
        In a process that the body forked this does not return.
        """
        if os.getpid() != self._pid:
            end_fork(run.job.task, run.job.id, isinstance(outcome, Succeeded))
        with self._lock:
            kept = self._has_slot(run)
            self._stuck.discard(run)
            self._owed.discard(run)
            if not self._end(run, outcome):
                kept = run in self._blocked
                self._blocked.discard(run)
                return kept
        if len(self._outcomes) >= self.ring_at:
            self.bell.ring()
        return kept

    def next(self) -> Run | None:
        """The next job for a slot that just became free; where none waits, the slot is given back."""
        with self._lock:
            if self._owed:
                self._owed.pop()
                return None
            if self._waiting:
                self.moved_at = time.monotonic()
                return self._waiting.popleft()
            self._free += 1
            return None

    def set_aside(self, runs: Sequence[Run]) -> list[Run]:
        """Give the slots of bodies that cannot go on to other jobs, and return those that are to begin with them.

        Nothing ends: what these bodies come to still counts. As in `give_up`, only so many slots are given away.
        """
        with self._lock:
            freed = sum(self._give_away(run) for run in self.in_hand.intersection(runs))
        return [following for _ in range(freed) if (following := self.next()) is not None]

    def take_back(self, runs: Sequence[Run]) -> None:
        """These bodies go on: each gets a slot again as soon as one is free. Until then there are more at work than slots."""
        with self._lock:
            back = self._stuck & self.in_hand & set(runs)
            self._stuck -= back
            self._owed |= back
            while self._owed and self._free:
                self._owed.pop()
                self._free -= 1

    def watch(self, run: Run) -> None:
        """Start the body's clock as it begins, and watch it where its task has a time-out."""
        run.start_clock()
        if run.deadline is not None:
            self.timed.add(run)
            self.bell.ring()

    def _has_slot(self, run: Run) -> bool:
        return run not in self._stuck and run not in self._owed

    def _give_away(self, run: Run) -> bool:
        """Note that a body is stuck, unless that is one too many, and answer whether that frees its slot."""
        had_slot = self._has_slot(run)
        if had_slot and len(self._stuck) >= self.slots:
            return False
        self._owed.discard(run)
        self._stuck.add(run)
        return had_slot

    def _end(self, run: Run, outcome: Outcome) -> bool:
        """Move a job from those in hand to those that ended; both at once, so that nobody finds it in neither."""
        if run.deadline is not None:
            self.timed.discard(run)
        if run not in self.in_hand:
            return False
        self.in_hand.remove(run)
        self._outcomes.append((run, outcome))
        return True
