"""The supervisor: starts worker processes, replaces those that die or are wedged, and ends them all at a signal.

Everything that happens becomes an event, and one thread, the main one, decides. It sleeps until the next event or deadline.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType

from msgspec import Struct

from rota.supervisor.child import Child, Exited, Heard
from rota.supervisor.plan import FIRST, STAGGER, START, Plan, about
from rota.supervisor.reload import FilesChanged, Watch
from rota.supervisor.slot import Slot
from rota.supervisor.systemd import Notifier
from rota.supervisor.turnover import Turnover

log = logging.getLogger("rota")
_LOOK = 1.0
"""Seconds between looks at what no event tells of."""
_HELD_UP = 5.0
"""Seconds too late after which the supervisor takes itself for held up, and not its children for silent."""
_PROMPT = 10.0
"""Seconds within which threads that get on with the store give signs."""


class Signalled(Struct, frozen=True):
    """This process got a signal."""

    number: int


Event = Heard | Exited | FilesChanged | Signalled


class Supervisor:
    """Runs a plan. Made and run in the main thread of a process that does nothing else."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._events: SimpleQueue[Event] = SimpleQueue()
        now = time.monotonic()
        self._slots = [
            Slot(number, name, now if number == 1 else now + FIRST + number * STAGGER)
            for number, name in enumerate(plan.names(), 1)
        ]
        self._leaving: set[Child] = set()
        self._turnover = Turnover()
        self._notifier = Notifier()
        self._folder = _logical_folder()
        self._terminal = _has_terminal() and not _survives_hang_ups()
        """Whether it is to end with its terminal."""
        self._watch: Watch | None = None
        self._loaded = self._ready = self._proven = False
        """Whether a process has loaded the app; whether all had; whether one has worked."""
        self._signals = 0
        self._reloading = False
        self._looked_at = now
        self._status = 0

    def run(self) -> int:
        """Work until SIGTERM or SIGINT and until every process has ended, and answer the exit status.

        0 where all ended in time. 1 where one had to be killed, and otherwise the status of the first process, where that could
        not begin to work. Raises `ConfigError` where files cannot be watched.
        """
        former = {number: signal.signal(number, self._on_signal) for number in _signals()}
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _signals())  # whoever started this may have held some back until now
        try:
            if self._plan.reload:
                self._watch = Watch(self._plan.reload, self._events.put)
            log.info("supervisor (pid %d) runs %s", os.getpid(), _workers(len(self._slots)))
            while not self._over:
                self._step()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
            if self._watch is not None:
                self._watch.stop()
        log.info("all workers have ended")
        return self._status

    @property
    def _over(self) -> bool:
        return self._signals > 0 and not self._leaving and not any(slot.children for slot in self._slots)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._events.put(Signalled(number))  # which may interrupt any line, itself included

    def _step(self) -> None:
        timeout = self._timeout()
        before = time.monotonic()
        try:
            event: Event | None = self._events.get(timeout=timeout)
        except Empty:
            event = None
        now = time.monotonic()
        if now - before > timeout + min(_HELD_UP, self._plan.silence / 2):
            for child in self._children():
                child.pardon()
        if event is not None:
            self._heed(event)
        self._notifier.feed()
        self._look_after(now)

    def _timeout(self) -> float:
        now = time.monotonic()
        moments = [self._looked_at + _LOOK, now + min(_LOOK, self._notifier.feed_every)]
        moments += [slot.start_at for slot in self._slots if slot.start_at is not None]
        moments += [child.kill_at for child in self._children() if child.kill_at is not None]
        # On Windows no signal ends this sleep.
        return max(0.0, min(0.5 if sys.platform == "win32" else _LOOK, min(moments) - now))

    def _children(self) -> list[Child]:
        return [*(child for slot in self._slots for child in slot.children), *self._leaving]

    def _heed(self, event: Event) -> None:
        match event:
            case Heard(child, word, rest):
                child.hear(word, rest)
                self._has_loaded()
                if word == "joined" and len(child.workers) == 1 and child.kill_at is None:
                    self._joined(child)
            case Exited(child):
                self._exited(child)
            case FilesChanged(files):
                self._reload(files)
            case Signalled(number):
                self._signalled(number)

    # -- starting -------------------------------------------------------------------------------

    def _start(self, slot: Slot) -> Child | None:
        """Start a process for this slot; `None` where the system could not."""
        plan = self._plan
        slot.start_at = None
        try:
            child = Child(slot.number, slot.name, plan.command, self._folder, self._events.put)
        except OSError as error:
            slot.deaths += 1
            slot.start_at = time.monotonic() + 1.0
            log.error("worker %s could not be started; next try in 1 s: %s", slot.name or slot.number, error)
            return None
        child.most_jobs = None if plan.max_jobs is None else about(plan.max_jobs)
        child.most_memory = None if plan.max_memory is None else about(plan.max_memory)
        return child

    def _has_loaded(self) -> None:
        """Note how far the processes are with their start."""
        now = time.monotonic()
        if not self._loaded:
            self._loaded = True
            waiting = [slot for slot in self._slots if slot.start_at is not None]
            for place, slot in enumerate(waiting, 1):
                slot.start_at = now + place * STAGGER
        if not self._ready and all(slot.child is not None and slot.child.loaded for slot in self._slots):
            self._ready = True
            self._notifier.ready(_workers(len(self._slots)))

    def _joined(self, child: Child) -> None:
        self._proven = True
        slot = self._slots[child.number - 1]
        for dead in slot.dead:
            child.say("dead", dead)
        slot.dead.clear()
        if slot.coming is child:
            former, slot.child, slot.coming = slot.child, child, None
            if former is not None:
                self._retire(former)
        if slot.coming is None and self._turnover.done(slot):
            log.info("rolling restart: done, every worker is a new process")
            self._notifier.ready(_workers(len(self._slots)))

    # -- ends -----------------------------------------------------------------------------------

    def _exited(self, child: Child) -> None:
        child.close()
        if child.status != 0 or not self._signals:  # a body may have ended it with status 0
            self._bury(child)
        slot = self._slots[child.number - 1]
        if child in self._leaving:
            self._leaving.discard(child)
            if self._reloading and not self._leaving:
                self._reloaded()
        elif self._signals:
            self._ended_at_stop(slot, child)
        elif slot.coming is child:
            slot.coming = None
            self._failed_to_come(slot, child)
        else:
            slot.child = None
            self._died(slot, child)

    def _ended_at_stop(self, slot: Slot, child: Child) -> None:
        slot.child, slot.coming = (None if each is child else each for each in (slot.child, slot.coming))
        asked = (-signal.SIGTERM, -signal.SIGINT)  # sent to all while this one had no handlers yet
        if child.status not in (0, *asked):
            log.warning("%s %s while stopping", child, child.how_it_ended())
            self._status = self._status or 1

    def _died(self, slot: Slot, child: Child) -> None:
        """A process ended that nobody had told to."""
        if self._plan.reload and child.joined_at is None:
            log.error("%s %s before it worked: waiting for a file to change", child, child.how_it_ended())
            return
        if not self._proven and (child.status or 0) > 0:
            log.error("%s %s before it worked: the supervisor ends", child, child.how_it_ended())
            self._status = child.status or 1
            self._stop()
            return
        if slot.coming is not None:
            log.error("%s %s: its successor is starting already", child, child.how_it_ended())
            return
        wait = slot.died(child)
        slot.start_at = time.monotonic() + wait
        log.error("%s %s: another starts %s", child, child.how_it_ended(), f"in {wait:g} s" if wait else "at once")

    def _failed_to_come(self, slot: Slot, child: Child) -> None:
        wait = max(slot.died(child), 1.0)
        former = slot.child
        if former is None:
            slot.start_at = time.monotonic() + wait
        if self._turnover.fail(slot):
            log.error("rolling restart: %s %s before it worked, so no more are replaced", child, child.how_it_ended())
            self._notifier.ready("rolling restart failed: a new worker did not start")
            return
        slot.calm_until = time.monotonic() + wait
        log.error("%s %s before it could take over from %s", child, child.how_it_ended(), former)

    def _bury(self, child: Child) -> None:
        """Have a living worker take back what a dead one held, at once and not when its lease ends."""
        for worker in child.workers:
            for slot in self._slots:
                if (other := slot.child) is not None and other is not child and other.joined_at is not None:
                    other.say("dead", worker)
                    break
            else:
                self._slots[child.number - 1].dead.append(worker)

    # -- looking after --------------------------------------------------------------------------

    def _look_after(self, now: float) -> None:
        for child in self._children():
            if child.kill_at is not None and now >= child.kill_at and not child.killed:
                log.error("%s has not ended in time and is killed", child)
                self._status = self._status or (1 if self._signals else 0)
                child.kill()
        if self._signals:
            return
        for slot in self._slots:
            if slot.start_at is not None and now >= slot.start_at:
                slot.child = self._start(slot)
        if now - self._looked_at >= _LOOK:
            self._looked_at = now
            _reap_strangers({child.pid for child in self._children()})
            self._look_for_the_wedged()
            for slot in self._slots:
                self._turnover.recycle(slot, now)
        self._replace_next()

    def _look_for_the_wedged(self) -> None:
        """Kill what gives no sign at all, and what does not get on with the store although another one does."""
        silence = self._plan.silence
        watched = [child for slot in self._slots for child in slot.children if not child.killed]
        well = [child for child in watched if child.gets_on(min(silence / 2, _PROMPT))]
        for child in watched:
            quiet, behind = child.silent(), child.behind(child not in well and bool(well))
            if quiet > (silence if child.loaded else max(silence, START)):
                log.error("%s has given no sign of life for %d s and is killed", child, quiet)
                child.kill()
            elif behind > silence:
                log.error("%s has not got on for %d s, while others do, and is killed", child, behind)
                child.kill()

    def _replace_next(self) -> None:
        if self._reloading or (found := self._turnover.next()) is None:
            return
        slot, why = found
        former = slot.child
        log.info("%s: another process takes its place: %s", former or f"worker {slot.number}", why)
        slot.coming = self._start(slot)
        if slot.coming is None:
            slot.start_at = None if former is not None else slot.start_at
            if self._turnover.fail(slot):
                self._notifier.ready("rolling restart failed: a new worker did not start")
            slot.calm_until = time.monotonic() + 30.0

    def _retire(self, child: Child) -> None:
        """Let a process end that is not needed any more: it has the time of a stop for its jobs."""
        self._leaving.add(child)
        child.stop("stop", self._plan.shutdown_timeout + self._plan.grace)

    # -- signals and files ----------------------------------------------------------------------

    def _signalled(self, number: int) -> None:
        if number == getattr(signal, "SIGHUP", None) and (not self._terminal or _has_terminal()):
            self._roll()
        else:
            self._stop()

    def _roll(self) -> None:
        if self._signals:
            return
        log.info("rolling restart: one worker after another is replaced")
        self._notifier.reloading("rolling restart")
        for slot in self._slots:
            slot.deaths, slot.calm_until = 0, 0.0
        self._turnover.roll(self._slots)

    def _stop(self) -> None:
        self._signals += 1
        plan = self._plan
        for slot in self._slots:
            slot.start_at = None
        if self._signals == 1:
            self._notifier.stopping("waiting for running jobs")
            log.info("stopping %s; another signal has them hand back their jobs at once", _workers(len(self._children())))
        for child in self._children():
            if self._signals == 1:
                child.stop("stop", plan.shutdown_timeout + plan.grace)
            else:
                child.stop("now", plan.grace)

    def _reload(self, files: list[Path]) -> None:
        if self._signals:
            return
        names = ", ".join(sorted(file.name for file in files[:3])) + (" and others" if len(files) > 3 else "")
        log.info("%s changed: workers hand back their jobs and start anew", names)
        self._reloading = True
        self._turnover = Turnover()
        for slot in self._slots:
            for child in slot.children:
                self._leaving.add(child)
                child.stop("now", self._plan.grace)
            slot.child = slot.coming = slot.start_at = None
        if not self._leaving:
            self._reloaded()

    def _reloaded(self) -> None:
        self._reloading = False
        now = time.monotonic()
        for slot in self._slots:
            slot.deaths = 0
            slot.start_at = now + (slot.number - 1) * STAGGER


def _signals() -> list[int]:
    """What is heeded, as far as the system has it."""
    return [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]


def _survives_hang_ups() -> bool:
    """Whether it was started so that the end of its terminal is not its own, as by nohup."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def _has_terminal() -> bool:
    """Whether there is a terminal that may hang up; a service has none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False
    return True


def _logical_folder() -> str:
    """The current directory by the name under which it was entered: new processes follow a link that a deploy has moved."""
    told = os.environ.get("PWD", "")
    with suppress(OSError):
        if told and Path(told).samefile("."):
            return told
    return str(Path.cwd())


def _reap_strangers(own: set[int]) -> None:
    """As process 1, of a container for example: see off ended processes that others left behind."""
    if sys.platform == "win32" or os.getpid() != 1 or not hasattr(os, "waitid"):
        return
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in own:
                return  # the thread that waits for it comes first
            os.waitpid(found.si_pid, os.WNOHANG)


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"
