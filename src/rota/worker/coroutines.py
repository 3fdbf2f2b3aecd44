"""The event loops that run coroutine functions: one, and others for as long as a body blocks that one.

Nothing can stop a body that does not come back to its loop. So the loops are watched, and one that is blocked keeps what has
begun on it, while everything else goes on elsewhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from rota.attempt import SHUTDOWN, Run
from rota.clock import SECOND
from rota.model import Released
from rota.worker.crew import Crew
from rota.worker.culprit import find_culprit
from rota.worker.loop import Loop

log = logging.getLogger("rota")

LATE = 5.0
"""Seconds without a sign of life after which a loop counts as blocked."""
LATE_AT_STOP = 1.0
"""The same while the worker stops: its bodies have not much time left to begin elsewhere."""
_LOOK = 0.5
"""Seconds between looks. Each makes a loop that has bodies wake up once; one without is left in peace."""
_FAREWELL = 2.0
"""Seconds that the loops have to end when the worker does; one that is blocked then ends with the process."""


class Coroutines:
    """The first loop starts when the first coroutine comes; another one when every one before it is blocked."""

    def __init__(self, crew: Crew, hand_over: Callable[[Sequence[Run]], None]) -> None:
        self._crew = crew
        self._hand_over = hand_over
        self._making = threading.Lock()
        self._loops: list[Loop] = []
        # A loop is blocked by a body with a slot or by one whose slot was given away, or else by what an ended one left there.
        self._most = 2 * crew.slots + 1
        self._busy = threading.Event()
        self._closing = threading.Event()
        self._watch: threading.Thread | None = None

    def start(self, runs: Sequence[Run]) -> None:
        """Run these bodies, each of which has a slot, on the first loop that answers."""
        started = False
        while not started:
            loop = self._free()
            if loop is None:
                self._refuse(runs)
                return
            started = loop.start(runs)
        if not self._busy.is_set():  # the look is far cheaper than the set
            self._busy.set()

    def close(self) -> None:
        """Cancel what still runs, give it a moment, and end the loops."""
        self._closing.set()
        self._busy.set()
        with self._making:
            threads = [loop.thread for loop in self._loops]
            for loop in self._loops:
                loop.wind_up()
            if self._watch is not None:
                threads.append(self._watch)
        end = time.monotonic() + _FAREWELL
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _free(self) -> Loop | None:
        """The oldest loop that is not blocked, or a new one, or none where no other can be made."""
        with self._making:
            for loop in self._loops:
                if not loop.blocked:
                    return loop
            if len(self._loops) == self._most:
                log.error("%d event loops are blocked, and no more are made: the job is handed back", self._most)
                return None
            try:
                if self._watch is None:
                    watch = threading.Thread(target=self._serve, name="rota-loop-watch", daemon=True)
                    watch.start()
                    self._watch = watch
                loop = Loop(self._crew, self._hand_over, len(self._loops) + 1)
            except (RuntimeError, OSError) as error:
                log.error("no event loop can be started (%s): the job is handed back", error)
                return None
            self._loops.append(loop)
            return loop

    def _refuse(self, runs: Sequence[Run]) -> None:
        """Hand jobs back for which there is no loop; their slots go on, to jobs that may be refused likewise."""
        left = list(runs)
        plain: list[Run] = []
        while left:
            if self._crew.end(left.pop(), Released("there was no event loop for it", SECOND)):
                following = self._crew.next()
                if following is not None:
                    (left if following.on_loop else plain).append(following)
        if plain:
            self._hand_over(plain)

    # -- the watch ------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Look at the loops while there are bodies on them, and sleep while there are none."""
        while self._busy.wait() and not self._closing.wait(_LOOK):
            self._busy.clear()  # before the look: a body that comes after it sets this again
            try:
                again = self._look()
            except Exception:
                log.exception("the watch over the event loops met an error and goes on")
                again = True
            if again:
                self._busy.set()

    def _look(self) -> bool:
        """Look after each loop, and answer whether that is to be done again soon."""
        any_bodies = False
        for loop in list(self._loops):
            bodies = loop.bodies()
            if loop.blocked or not bodies:
                continue
            any_bodies = True
            late = LATE_AT_STOP if any(run.stop == SHUTDOWN for run in bodies) else LATE
            # Looks are counted rather than seconds: when the whole process was frozen, no loop is to blame.
            if loop.look() * _LOOK >= late:
                self._replace(loop, bodies, late)
        return any_bodies

    def _replace(self, loop: Loop, bodies: Sequence[Run], late: float) -> None:
        """Leave a loop to the body that blocks it, and let everything else go on."""
        culprit, trace = find_culprit(loop.thread, bodies)
        elsewhere = loop.give_up(culprit)
        if elsewhere is None:
            return
        self._hand_over(elsewhere)
        who = "something" if culprit is None else f"{culprit.job.task} (job {culprit.job.id})"
        log.error(
            "%s has blocked the event loop for %g s; %d jobs go on elsewhere, bodies that began on it wait for it. "
            "What blocks or computes belongs in a plain function. It is here:\n%s",
            who,
            late,
            len(elsewhere),
            trace,
        )
