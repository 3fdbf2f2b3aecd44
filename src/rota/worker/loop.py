"""One event loop in a thread of its own: the coroutine bodies that are on it, and whether it still answers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial

from rota.attempt import Run, aperform, failed_to_run
from rota.worker.crew import Crew

log = logging.getLogger("rota")

HandOver = Callable[[Sequence[Run]], None]


class Loop:
    """Runs bodies side by side as long as none of them blocks it; whoever watches it asks it for signs of life."""

    def __init__(self, crew: Crew, hand_over: HandOver, number: int) -> None:
        """Starts the thread. Raises `RuntimeError` or `OSError` where the system has no more to give."""
        self._crew = crew
        self._hand_over = hand_over
        self._is_first = number == 1
        self._lock = threading.Lock()
        self._unbegun: set[Run] = set()
        self._begun: set[Run] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._asked = False
        self._unanswered = 0
        self.blocked = False
        """Whether it was found not to answer, and has not answered since. It takes no bodies then."""
        self._loop = asyncio.new_event_loop()
        name = "rota-loop" if self._is_first else f"rota-loop-{number}"
        self.thread = threading.Thread(target=self._serve, name=name, daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    # -- for other threads ----------------------------------------------------------------------

    def start(self, runs: Sequence[Run]) -> bool:
        """Run these bodies, or answer that the loop is blocked. One wake-up of the loop serves them all."""
        if not self._take(runs):
            return False
        self._loop.call_soon_threadsafe(self._launch, runs)
        return True

    def bodies(self) -> list[Run]:
        """Those that are on it, begun or not."""
        with self._lock:
            return [*self._begun, *self._unbegun]

    def look(self) -> int:
        """Ask for a sign of life, and answer how many looks in a row found the last question unanswered."""
        with self._lock:
            if self._asked:
                self._unanswered += 1
                return self._unanswered
            self._asked = True
            self._unanswered = 0
        self._loop.call_soon_threadsafe(self._answer)
        return 0

    def give_up(self, culprit: Run | None) -> list[Run] | None:
        """Take from a loop that does not answer what can be taken, and return what is to begin elsewhere.

        That are its bodies that have not begun, and jobs that get the slots of those that did and cannot go on.
        The culprit alone keeps its slot: it is at work. `None` means that the loop has just answered.
        """
        with self._lock:
            if not self._asked:
                return None
            self.blocked = True
            elsewhere = list(self._unbegun)
            self._unbegun.clear()
            # Under the lock, so that the answer, when it comes after all, finds the bodies set aside.
            return elsewhere + self._crew.set_aside([run for run in self._begun if run is not culprit])

    def wind_up(self) -> None:
        """Cancel what still runs, give it a moment, and end the loop as soon as it can."""
        self._loop.call_soon_threadsafe(self._end)

    # -- on the loop ----------------------------------------------------------------------------

    def _serve(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except BaseException:  # asyncio lets a SystemExit of a task that a body began through to here
                log.warning("something on the event loop tried to end it; it goes on", exc_info=True)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _take(self, runs: Sequence[Run]) -> bool:
        with self._lock:
            if self.blocked:
                return False
            self._unbegun.update(runs)
            return True

    def _launch(self, runs: Sequence[Run]) -> None:
        """Begin a task for each body, in a context that no other body has seen: this may be called from an ended one's."""
        for run in runs:
            task = self._loop.create_task(self._live(run), context=Context(), name=run.job.task)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _live(self, run: Run) -> None:
        with self._lock:
            if run not in self._unbegun:  # it began elsewhere, while this loop was blocked
                return
            self._unbegun.remove(run)
            self._begun.add(run)
        kept = await self._perform(run)
        with self._lock:
            self._begun.remove(run)
        following = self._crew.next() if kept else None
        if following is None:
            return
        # The first loop keeps its slot's jobs; another sends them round, so that work comes back to the first.
        if following.on_loop and self._is_first and self._take([following]):
            self._loop.call_soon(self._launch, [following])
        else:
            self._hand_over([following])

    async def _perform(self, run: Run) -> bool:
        """Run the body to its end and hand its outcome in; false when its slot was given away."""
        # Before the first look at whether the job should stop: who asks for that later finds the way to interrupt it.
        task = asyncio.current_task()
        assert task is not None
        run.cancel = partial(self._loop.call_soon_threadsafe, task.cancel)
        try:
            self._crew.watch(run)
            outcome = await aperform(run)
        except Exception as error:  # noqa: BLE001  # a task that ended here would take its slot and its job along
            outcome = failed_to_run(run, error)
        run.cancel = None
        return self._crew.end(run, outcome)

    def _answer(self) -> None:
        with self._lock:
            self._asked = False
            if not self.blocked:
                return
            self.blocked = False
            self._crew.take_back(list(self._begun))
        log.warning("the event loop of thread %s answers again: the bodies on it go on", self.thread.name)

    def _end(self) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        self._loop.call_later(0.1 if self._tasks else 0, self._loop.stop)
