"""The threads that run plain functions, and wait for isolated ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from rota.attempt import Run, perform
from rota.isolation import Child
from rota.worker.crew import Crew


class Threads:
    """As many threads as bodies need at a time, started when first needed."""

    def __init__(self, crew: Crew, hand_over: Callable[[Sequence[Run]], None]) -> None:
        self._crew = crew
        self._hand_over = hand_over
        self._inbox: SimpleQueue[Run | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def start(self, runs: Sequence[Run]) -> None:
        """Run these bodies, each of which has a slot."""
        for run in runs:
            self._inbox.put(run)
            if not self._idle.acquire(blocking=False):
                self._spawn()

    def close(self) -> None:
        """End the threads that are idle; one that is in a body ends with the process."""
        with self._starting:
            threads = list(self._threads)
        for _ in threads:
            self._inbox.put(None)

    def join(self, timeout: float) -> None:
        """Wait for the threads to end, each at most `timeout` seconds."""
        for thread in self._threads:
            thread.join(timeout)

    def _spawn(self) -> None:
        with self._starting:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            # A daemon, since a body that never returns must not keep the process from ending.
            thread = threading.Thread(target=self._work, name=f"rota-runner-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        child = Child()
        try:
            while (run := self._inbox.get()) is not None:
                if not self._serve(run, child):
                    return
                self._idle.release()
        finally:
            child.kill()

    def _serve(self, run: Run | None, child: Child) -> bool:
        """Run this body and those that its slot goes on to; false when the slot was given away meanwhile."""
        crew = self._crew
        while run is not None:
            crew.watch(run)
            outcome = child.perform(run) if run.task.isolated else perform(run)
            if not crew.end(run, outcome):
                return False
            run = crew.next()
            if run is not None and run.task.is_coroutine:
                self._hand_over([run])
                return True
        return True
