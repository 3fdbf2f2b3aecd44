"""The thread between the jobs in hand and the store: it writes what ended and claims what is next, in one round trip.

It sleeps on its line to the store, and on the bell, which is rung by bodies that end and by whoever stops the worker.
It is long because one thread decides all of this, in an order that matters.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rota.app import Rota
from rota.attempt import Run
from rota.bell import Bell
from rota.errors import SchemaMismatch, StoreUnavailable
from rota.model import Ask, Claimed, Ended, Places, Tally, Turn
from rota.rules.decide import unknown
from rota.rules.pace import STALE_SECONDS, Pace
from rota.stores.base import Line, Store
from rota.worker.backoff import FATAL_TRIES, Backoff
from rota.worker.crew import Crew
from rota.worker.doubt import Doubt
from rota.worker.hooks import HookThread
from rota.worker.identity import Identity
from rota.worker.lookout import Lookout
from rota.worker.overtime import Overtime
from rota.worker.recorder import Handed, Recorder
from rota.worker.restraint import Restraint
from rota.worker.signs import Signs
from rota.worker.stopping import Stopping, hand_back
from rota.worker.tally import TallyBook
from rota.worker.within import Within

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.limiting import Limiting

log = logging.getLogger("rota")

_TOGETHER = 0.005
"""Seconds that an outcome waits for others while there are jobs waiting for slots."""
_FAREWELL = 2.0
"""Seconds after the last hand-back for which transactions of bodies are waited for that are still open."""
_LEAST_OVERLAP = 100
"""So many jobs must have ended for a turn to be sent while another is under way; a smaller one costs more than it gains."""


class Posted(Struct, frozen=True):
    """A turn that is under way."""

    handed: list[Handed]
    ends: list[Ended]
    ask: Ask | None
    worker: str


class Ledger:
    """Owns the worker's claims from the store's side."""

    def __init__(
        self, app: Rota, store: Store, crew: Crew, bell: Bell, identity: Identity, lookout: Lookout, poll: float, signs: Signs
    ) -> None:
        self._app = app
        self._store = store
        self._crew = crew
        self._bell = bell
        self._identity = identity
        self._lookout = lookout
        self._poll = min(poll, signs.every)
        self._signs = signs
        self._overtime = Overtime(crew)
        self.hooks = HookThread(app, store, self.ring)
        self._recorder = Recorder(app, store, self.hooks)
        self._within = Within(app, store, self._recorder)
        self._tallies = TallyBook(identity.id)
        self._restraint = Restraint(crew)
        self._pace = Pace(crew.slots)
        self._stopping = Stopping(crew)
        self._doubt = Doubt(app, store)
        self._backoff = Backoff(self._stopping.hurry)
        self._line: Line | None = None
        self._posted: deque[Posted] = deque()
        self._pending: dict[str, list[Handed]] = {}
        """What ended and was not sent yet, by the worker id under which it was claimed."""
        self._turned_at = time.monotonic()
        self._own: Run | None = None
        """A job for the thread that claimed it."""
        self._errors = 0
        """How many unforeseen errors came since a turn was answered and all else was done as well."""
        self._heard = False
        """Whether a turn was answered since the last of them."""
        self.failed = False
        """Whether it ended because it could not do its work."""

    # -- for other threads ----------------------------------------------------------------------

    def ring(self) -> None:
        """There may be work in the store."""
        self._lookout.ring()
        self._bell.ring()

    def stop(self, handback_in: float) -> None:
        """Claim no more; hand back what has not ended `handback_in` seconds from now. May be called again with less time."""
        self._stopping.begin(handback_in)
        self._bell.ring()

    def fail(self) -> None:
        """The worker cannot do its work: hand everything back and end."""
        self.failed = True
        self.stop(0.0)

    # -- the thread that leads ------------------------------------------------------------------

    def lead(self) -> Run | None:
        """Work until there is a job for this thread to run, and answer it; another thread is to lead then.

        `None` says that the work is over: the worker was stopped, and everything in hand has ended or been handed back.
        """
        try:
            while not self._done() and self._goes_on():
                if (own := self._own) is not None:
                    self._own = None
                    return own
        except BaseException:
            self.close()
            raise
        self.close()
        return None

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self._bell.close()

    def _goes_on(self) -> bool:
        """Take a step, and say whether there is sense in another."""
        try:
            self._step()
        except StoreUnavailable as error:
            self._lose_line()
            if self._stopping.past_handback() and self._backoff.tries >= 3:
                log.warning("the store is away at the end: jobs come back when the lease runs out")
                return False
            self._backoff.pause("the store is away", error)
            self._stopping.hurry.clear()  # a stop cuts one wait short; the tries after it have their waits again
        except SchemaMismatch as error:
            self._lose_line()
            log.critical("this worker ends, and its jobs come back when the lease runs out: %s", error)
            self.failed = True
            return False
        except Exception:
            self._lose_line()
            self._errors += 1
            self._heard = False
            log.exception("the ledger met an error and goes on")
            if self._errors >= FATAL_TRIES:
                log.critical("the ledger cannot go on after %d errors in a row", self._errors)
                self.failed = True
                return False
            self._stopping.wait(min(0.05 * 2**self._errors, 2.0))
        return True

    def _done(self) -> bool:
        if not self._stopping.begun or self._posted or self._pending or self._crew.unwritten():
            return False
        if self._within.runs and self._stopping.past_handback(_FAREWELL):
            self._within.give_up()
        return not self._within.runs

    def _step(self) -> None:
        """Look after deadlines and shutdown, take a turn with the store if there is cause, and sleep until there is."""
        self._signs.led()
        self._lookout.heed()
        self._overtime.end_overdue()
        if self._stopping.begun:
            self._stopping.wind_down()
        elif self._overtime.choked():
            self.fail()
        elif self._crew.stalled() > STALE_SECONDS:
            hand_back(self._crew, self._crew.unstarted(), "it waited for a slot too long")
            self._pace = Pace(self._crew.slots, weight=self._pace.weight)  # what it learnt of its speed is no longer so
        self._doubt.heed()
        if self._doubt.there and not self._posted:  # what a turn under way claims would be taken for lost
            self._reconcile()
        if self._within.look():
            self._lookout.ring()  # a place of a limit may be free, or a job be queued again
        line = self._line or self._connect()
        if not self._hear(line) or self._own is not None:
            return
        if self._may_post(line):
            self._post(line)
            if not self._hear(line) or self._own is not None:
                return
        if not self._stopping.begun:
            self._lookout.heed_pauses(jobs_wait=self._crew.waiting > 0)
            hand_back(self._crew, self._crew.unstarted_of(self._lookout.paused), "its queue was paused")
            self._lookout.promote()
        if not self._more_now() and not self._done():
            self._sleep(line)
        if self._heard:  # where claims go well and due jobs can never be queued, this is not reached
            self._errors = 0

    def begin_on(self, line: Line) -> None:
        """Use this line until it breaks."""
        self._line = line
        self._lookout.ring()  # what came while nobody listened
        self._lookout.heed()

    def _connect(self) -> Line:
        line = self._store.line()
        self.begin_on(line)
        return line

    def _lose_line(self) -> None:
        """After an error: what was under way is to be sent again."""
        self._doubt.begin()
        self._tallies.doubt()
        self._recorder.resent = True
        for posted in reversed(self._posted):
            if posted.handed:
                self._pending[posted.worker] = posted.handed + self._pending.get(posted.worker, [])
        self._posted.clear()
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _may_post(self, line: Line) -> bool:
        if not self._posted:
            return True
        return not self._doubt.there and len(self._posted) < line.ahead and self._crew.ended >= self._crew.ring_at

    def _more_now(self) -> bool:
        """Whether there is cause for another turn already."""
        crew = self._crew
        if crew.ended >= crew.ring_at:
            return True
        if self._posted:
            return False
        if self._within.next_at is not None and time.monotonic() >= self._within.next_at:
            return True
        return (
            bool(self._pending)
            or not self._tallies.known
            or (self._lookout.look and not self._stopping.begun and self._room() > 0)
        )

    def _room(self) -> int:
        """How many jobs to claim now, with those that are on their way counted as in hand."""
        coming = sum(posted.ask.limit for posted in self._posted if posted.ask is not None)
        limiting = self._app.limiting
        if limiting is not None and not self._crew.free and not self._restraint.lets_wait(limiting):
            return 0  # a job under a limit is claimed when it can begin
        if self.hooks.wanted and self.hooks.behind:
            return 0  # what ends now would be too much for them
        turns = 1 if self._line is None else self._line.ahead
        most = None if limiting is None else self._restraint.most_in_hand(limiting)
        return self._pace.room(self._crew.load + coming, turns, None if most is None else most - self._unwritten())

    def _unwritten(self) -> int:
        """How many jobs ended of which the store knows nothing yet: their places under limits are not free for it."""
        return self._crew.ended + sum(len(posted.handed) for posted in self._posted)

    def _post(self, line: Line) -> None:
        """Send what ended and ask for more, if there is cause."""
        for run, outcome in self._crew.outcomes():
            if run.finishing:
                self._within.add(run, outcome)
                self._gave_back_beside([(run, outcome)])
            else:
                self._pending.setdefault(run.worker, []).append((run, outcome))
        worker = self._identity.id
        for former in [id for id in self._pending if id != worker]:  # claimed under a lease that was lost since
            self._record_singly(former, self._pending[former])
        handed = self._pending.get(worker, [])
        if self._app.limiting is not None:
            if self._tallies.worker != worker:
                self._tallies = TallyBook(worker)
            self._turn_under_limits(line, worker, handed, self._app.limiting)
            self._ring_at(line)
            return
        ask = self._ask(worker, finishing=bool(handed))
        if handed or ask is not None:
            self._send(line, worker, handed, ask)
        self._ring_at(line)

    def _ask(self, worker: str, finishing: bool) -> Ask | None:
        """What to claim now, if anything."""
        ask = None if self._stopping.begun else self._lookout.ask(self._room(), finishing)
        return ask if ask is None or ask.worker == worker else None  # it may have a new id since a moment ago

    def _turn_under_limits(self, line: Line, worker: str, handed: list[Handed], limiting: Limiting) -> None:
        """Write what ended, which gives back the places it took, and claim: after that, or beside it where there are plenty."""
        finishing = bool(handed)
        if (ask := self._ample_ask(line, worker, finishing, limiting)) is not None:
            self._send(line, worker, handed, ask)
            return
        if not (self._tallies.known or self._posted):
            self._send(line, worker, handed, None)
            return
        if handed:
            if self._restraint.lets_wait(limiting):
                self._send(line, worker, handed, None)
            elif any(run.tallied for run, _ in handed):
                self._send(line, worker, handed, None)  # a claim that came before it would find these places taken
                self._lookout.look = True
                return
            elif self._record_together(worker, handed):
                self._lookout.look = True
        if (ask := self._ask(worker, finishing)) is None:
            return
        ask = self._restraint.kept_to(ask, limiting)
        found = self._store.admit(ask, limiting, self._app.now())
        self._check_lease()
        self._answered()
        self._begin(found.claimed, worker, found.places)
        if self._restraint.in_vain:
            self._tallies.doubt()  # the store may have forgotten what it was told
        self._restraint.heed(found, self._crew.load + self._unwritten())
        self._lookout.after_round(ask, found)

    def _ample_ask(self, line: Line, worker: str, finishing: bool, limiting: Limiting) -> Ask | None:
        """What to claim along with what ended, under limits that are likely to be far from full."""
        if not (line.ample and self._restraint.amply_now(limiting)):
            return None
        ask = self._ask(worker, finishing)
        ample = None if ask is None else limiting.ample(ask.limit)
        if ask is None or ample is None:
            return None
        self._tallies.cover(ample)
        return replace(ask, ample=ample) if self._tallies.known or not self._posted else None

    def _send(self, line: Line, worker: str, handed: list[Handed], ask: Ask | None) -> None:
        ends = [self._recorder.ended(run, outcome) for run, outcome in handed]
        tally = self._to_tell(handed, ask)
        more = () if tally is None else (tally,)
        line.post(worker, ends, ask, self._app.now(), *more)
        self._pending.pop(worker, None)
        self._posted.append(Posted(handed, ends, ask, worker))

    def _to_tell(self, handed: list[Handed], ask: Ask | None) -> Tally | None:
        """What to tell the store of places that this worker counts, once these have ended; `None` where there is no need."""
        if self._app.limiting is None:
            return None
        given = self._tallies.gave_back(run for run, _ in handed)
        if not self._tallies.known:
            return None if self._posted else self._tallies.whole()
        amply = ask is not None and ask.ample is not None
        return Tally({room: -many for room, many in given.items()}) if given or amply else None

    def _record_together(self, worker: str, handed: list[Handed]) -> bool:
        """Write these outcomes, and say whether one of them gave back a place of a limit."""
        ends = [self._recorder.ended(run, outcome) for run, outcome in handed]
        try:
            turn = self._store.finish(worker, ends, None, self._app.now())
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("outcomes could not be stored together and are stored one by one")
            self._doubt.there = True
            self._record_singly(worker, handed)
        else:
            del self._pending[worker]
            self._settle(Posted(handed, ends, None, worker), turn)
        return any(end.places for end in ends)

    def _gave_back_beside(self, handed: list[Handed]) -> None:
        """These are told as ended by another way than the line."""
        if self._tallies.gave_back(run for run, _ in handed):
            self._tallies.doubt()

    def _hear(self, line: Line) -> bool:
        """Take in the answers that have come, and say whether the line can be used on."""
        while self._posted:
            self._check_lease()
            try:
                turn = line.answered()
            except StoreUnavailable:
                raise
            except Exception:
                if not any(posted.handed for posted in self._posted):
                    raise  # it was the claim that failed
                log.exception("outcomes could not be stored together and are stored one by one")
                self._lose_line()
                for worker, handed in list(self._pending.items()):
                    self._record_singly(worker, handed)
                return False
            if turn is None:
                break
            self._settle(self._posted.popleft(), turn)
            self._ring_at(line)
        return True

    def _check_lease(self) -> None:
        """Take nothing that was claimed before a halt of this process that outlasted its lease: another may have run it."""
        if self._identity.held_up:
            raise StoreUnavailable("this worker was held up for longer than its lease, so it looks what is still its own")

    def _settle(self, posted: Posted, turn: Turn) -> None:
        """Begin what a turn claimed, tell of what it wrote, and learn from both."""
        self._answered()
        ask = posted.ask
        ample = None if ask is None else ask.ample
        places = {} if ample is None else {job.id: ample.places.get(job.task, ()) for job in turn.claimed}
        self._begin(turn.claimed, posted.worker, places, tallied=ample is not None)
        self._recorder.tell(posted.handed, posted.ends, turn.counted)
        self._learn(len(posted.ends))
        if ask is not None and ample is not None:
            self._restraint.heed_ample(len(turn.claimed), ask.limit)
            if len(turn.claimed) < ask.limit:
                self._lookout.look = True  # it was refused, or there is no more: the next claim tells
                return
        if ask is not None:
            self._lookout.after(ask, turn.claimed)

    def _answered(self) -> None:
        self._heard = True
        self._backoff.over()

    def _ring_at(self, line: Line) -> None:
        """Say after how many outcomes the bell is to ring: what ends while no turn can be sent is taken along next time."""
        at = self._pace.ring_at(self._crew.waiting)
        if self._posted:
            at = max(at, _LEAST_OVERLAP) if len(self._posted) < line.ahead else 1 << 30
        self._crew.ring_at = at

    def _record_singly(self, worker: str, handed: list[Handed]) -> None:
        self._gave_back_beside(handed)
        self._recorder.write_singly(worker, handed)
        del self._pending[worker]

    def _begin(self, claimed: list[Claimed], worker: str, places: Mapping[str, Places], tallied: bool = False) -> None:
        tasks = self._app.tasks
        self._pace = self._pace.weighed(sum(len(job.args) for job in claimed), len(claimed))
        known = [Run(job, tasks[job.task], worker) for job in claimed if job.task in tasks]
        if (limiting := self._app.limiting) is not None:
            for run in known:
                run.places = places.get(run.job.id, ())
                run.refusal = limiting.bad.pop(run.job.id, None)
            if tallied:
                self._tallies.took(known)
        self._start(self._crew.add(known))
        if len(known) < len(claimed):
            for job in claimed:
                if job.task not in tasks:
                    self._pending.setdefault(worker, []).append((Run.unknown(job, worker), unknown(job)))

    def _start(self, ready: list[Run]) -> None:
        """Have these bodies run. A lone one is run by this thread: to wake another is a tenth of its wait for an idle worker.

        A worker of one slot runs all its bodies in the same thread, which some libraries need.
        """
        lone = len(ready) == 1 and not (ready[0].on_loop or self._posted or self._crew.waiting)
        if lone and self._own is None and self._crew.slots > 1:
            self._own = ready[0]
        elif ready:
            self._crew.start(ready)

    # -- looking after --------------------------------------------------------------------------

    def _learn(self, ended: int) -> None:
        now = time.monotonic()
        if ended:
            self._pace = self._pace.after(ended, now - self._turned_at)
            self._signs.ended(ended)
        self._turned_at = now

    def _reconcile(self) -> None:
        """After a lost reply: have the store and this worker agree on what is in hand."""
        worker = self._identity.id
        runs = [run for run in self._crew.unwritten() if run.worker == worker]
        ended = [run for run, _ in self._pending.get(worker, ())]
        before = time.monotonic()
        if self._doubt.settle(worker, runs, [*ended, *self._within.runs]):
            self._identity.told_at = before
        else:
            self._identity.forgotten = True
        self._tallies.doubt()  # what was handed back may be among what the store counts
        self._lookout.ring()

    def _sleep(self, line: Line) -> None:
        """Until something rings, or the next thing is due."""
        crew = self._crew
        now = time.monotonic()
        until = [now + self._poll]
        if crew.ended and not self._posted:
            until.append(now + _TOGETHER)
        if crew.timed:
            until += [run.deadline for run in list(crew.timed) if run.deadline is not None]
        if crew.waiting:
            until.append(now + STALE_SECONDS)
        until += [at for at in (self._doubt.again_at, self._within.next_at) if at is not None]
        until.append(self._stopping.next_at() if self._stopping.begun else self._lookout.next_at())
        ask = self._ask_when_rung()
        if line.wait(min(until) - now, self._bell, ask):
            self._lookout.ring()
            if ask is not None:
                self._posted.append(Posted([], [], ask, ask.worker))

    def _ask_when_rung(self) -> Ask | None:
        """What a sleeper claims when it is rung. With a clock of the app's own a claim needs its moment."""
        if self._posted or self._pending or self._doubt.begun or self._stopping.begun:
            return None
        if self._app.clock is not None or self._app.limiting is not None:
            return None
        return self._lookout.ask_when_rung(self._room())
