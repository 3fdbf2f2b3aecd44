"""The threads of a worker: one leads, which is to be the ledger, the others run plain functions and wait for isolated ones."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

from rota.attempt import Run, failed_to_run, perform
from rota.clock import SECOND
from rota.model import Outcome, Released
from rota.worker.crew import Crew

if TYPE_CHECKING:
    from rota.isolation import Child

log = logging.getLogger("rota")


Lead = Callable[[], Run | None]
"""Leads until there is a job for this thread, which it answers: another is to lead on. `None` when nobody needs to."""


class Threads:
    """As many threads as bodies need at a time, and one that leads, started when first needed."""

    def __init__(self, crew: Crew, hand_over: Callable[[Sequence[Run]], None]) -> None:
        self._crew = crew
        self._hand_over = hand_over
        self._inbox: SimpleQueue[Run | Lead | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def start(self, runs: Sequence[Run]) -> None:
        """Run these bodies, each of which has a slot."""
        for run in runs:
            if not self.give(run):
                self._refuse(run)

    def give(self, duty: Run | Lead) -> bool:
        """Have an idle thread or a new one see to this; false where the system gives no thread."""
        if not (self._idle.acquire(blocking=False) or self._spawn()):
            return False
        self._inbox.put(duty)
        return True

    def close(self) -> None:
        """End the threads that are idle; one that is in a body ends with the process."""
        with self._starting:
            threads = list(self._threads)
        for _ in threads:
            self._inbox.put(None)

    def join(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the threads to end."""
        end = time.monotonic() + timeout
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    def _spawn(self) -> bool:
        with self._starting:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            # A daemon, since a body that never returns must not keep the process from ending.
            thread = threading.Thread(target=self._work, name=f"rota-runner-{len(self._threads) + 1}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                log.error("no thread can be started: %s", error)
                return False
            self._threads.append(thread)
            return True

    def _refuse(self, run: Run) -> None:
        """Hand a job back for which the system gave no thread; its slot goes on."""
        if self._crew.end(run, Released("no thread could be started for it", SECOND)):
            following = self._crew.next()
            if following is not None:
                self._hand_over([following])

    def _work(self) -> None:
        process = _Process()
        try:
            while (duty := self._inbox.get()) is not None:
                if not self._serve(duty if isinstance(duty, Run) else self._lead(duty), process):
                    return
                self._idle.release()
        finally:
            process.kill()

    def _lead(self, lead: Lead) -> Run | None:
        """Lead until there is a job for this thread and another thread leads."""
        while (run := lead()) is not None and not self.give(lead):
            self._refuse(run)
        return run

    def _serve(self, run: Run | None, process: _Process) -> bool:
        """Run this body and those that its slot goes on to; false when the slot was given away meanwhile."""
        crew = self._crew
        while run is not None:
            if not crew.end(run, self._outcome(run, process)):
                return False
            run = crew.next()
            if run is not None and run.on_loop:
                self._hand_over([run])
                return True
        return True

    def _outcome(self, run: Run, process: _Process) -> Outcome:
        try:
            if run.task.isolated and run.refusal is None:
                return process.child().perform(run, self._crew.watch)
            self._crew.watch(run)
            return perform(run)
        except Exception as error:  # noqa: BLE001  # a thread that ended here would take its slot and its job along
            return failed_to_run(run, error)


class _Process:
    """A thread's process for isolated bodies; what it takes is loaded with the first of them."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def child(self) -> Child:
        if self._child is None:
            from rota.isolation import Child

            self._child = Child()
        return self._child

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
