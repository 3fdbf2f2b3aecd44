"""Bodies whose time is up: they are interrupted, and the jobs of those that run on end over their heads.

What follows is the task's retry policy to say, which may be a function of the user's and block. So each is asked in a
thread of its own, and the ledger waits for none.
"""

from __future__ import annotations

import logging
import threading
import time

from msgspec import Struct

from rota.attempt import TIMED_OUT, Run, conclude, timed_out
from rota.clock import Micros
from rota.model import Outcome
from rota.rules.decide import decide
from rota.rules.retry import BadWait, Polynomial
from rota.worker.crew import Crew

log = logging.getLogger("rota")

_STUBBORN = 5.0
"""Seconds that a coroutine or a process has to end after its time is up, before its job is recorded as failed all the same."""
_PATIENCE = 5.0
"""Seconds that a retry policy has to answer."""
CHOKED = 60.0
"""Seconds for which bodies without end may keep every slot before the worker ends."""
_NO_THREAD = 1.0
"""Seconds until it is tried again to start a thread where the system had none."""


class _Question(Struct, frozen=True):
    run: Run
    until: float
    thread: threading.Thread


class Overtime:
    """Interrupts bodies, and gives up those that do not end. Used by the ledger's thread alone."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._questions: list[_Question] = []

    def end_overdue(self) -> None:
        """Interrupt bodies whose time is up. A plain thread cannot be stopped: its job is recorded as failed all the same."""
        if not self._crew.timed:
            return
        now = time.monotonic()
        for run in list(self._crew.timed):
            if run.deadline is None or now < run.deadline:
                continue
            stoppable = run.task.is_coroutine or run.task.isolated
            if not run.interrupted:
                run.interrupt(TIMED_OUT)
                if stoppable:
                    run.deadline = now + _STUBBORN
                    continue
            self._give_up(run)

    def choked(self) -> bool:
        """Whether bodies without end have kept every slot for so long that the worker will not do any more work; says so."""
        if self._crew.choked() < CHOKED:
            return False
        log.critical(
            "every slot (%d) is kept by a body that runs on after its time-out: the worker ends, for another to do its work",
            self._crew.slots,
        )
        return True

    def _give_up(self, run: Run) -> None:
        """Have the failure of this body recorded, soon, and its slot given away: such bodies must not use up the worker.

        Called again at the run's deadline, which is moved on: a policy that has not answered by then is not waited for
        any longer, nor asked for another job of the task until it answers, so that no more than `slots` threads are lost to it.
        """
        now = time.monotonic()
        self._questions = [question for question in self._questions if question.thread.is_alive()]
        if any(question.run.task is run.task and now >= question.until for question in self._questions):
            self._record(run, _unanswered(run))
        else:
            self._ask(run, now)

    def _ask(self, run: Run, now: float) -> None:
        run.deadline = now + _PATIENCE
        thread = threading.Thread(target=self._decide, args=(run,), name="rota-overtime", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            run.deadline = now + _NO_THREAD
        else:
            self._questions.append(_Question(run, now + _PATIENCE, thread))

    def _decide(self, run: Run) -> None:
        self._record(run, conclude(run, timed_out(run)))

    def _record(self, run: Run, outcome: Outcome) -> None:
        given = self._crew.give_up(run, outcome)
        if given is None:
            return
        log.error(
            "%s (job %s) runs on after its time-out and cannot be stopped; %s. A task declared isolated=True would be killed",
            run.job.task,
            run.job.id,
            "its slot goes to another" if given else "too many do, so it keeps its slot",
        )


class _Silent:
    """Stands in for a retry policy that did not answer."""

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros:
        raise BadWait(
            f"the retry function did not answer within {_PATIENCE:g} s; the default policy's wait is taken",
            fallback=Polynomial().wait(attempt, error, dice),
        )


def _unanswered(run: Run) -> Outcome:
    run.stop_clock()
    return decide(timed_out(run), run.job, _Silent(), 0.0)
