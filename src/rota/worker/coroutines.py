"""The event loop that runs coroutine functions, in a thread of its own so that no body can keep the worker from its work."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial

from rota.attempt import Run, aperform, failed_to_run
from rota.worker.crew import Crew

log = logging.getLogger("rota")


class Coroutines:
    """One loop for all coroutine bodies, started when the first comes."""

    def __init__(self, crew: Crew, hand_over: Callable[[Sequence[Run]], None]) -> None:
        self._crew = crew
        self._hand_over = hand_over
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def start(self, runs: Sequence[Run]) -> None:
        """Run these bodies, each of which has a slot. One wake-up of the loop serves them all."""
        self._ready().call_soon_threadsafe(self._launch, runs)

    def close(self) -> None:
        """Cancel what still runs, give it a moment, and end the loop."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._wind_up)
            thread.join(5)

    def _ready(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="rota-loop", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except BaseException:  # asyncio lets a SystemExit of a task that a body began through to here
                log.warning("something on the event loop tried to end it; it goes on", exc_info=True)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _launch(self, runs: Sequence[Run]) -> None:
        """On the loop: begin a task for each body, in a context that no other body has seen."""
        loop = asyncio.get_running_loop()
        for run in runs:
            task = loop.create_task(self._live(run), context=copy_context(), name=run.job.task)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            # Reaches the task behind its first step, for one that is cancelled before that would never hand its job in.
            run.cancel = partial(loop.call_soon_threadsafe, task.cancel)

    async def _live(self, run: Run) -> None:
        crew = self._crew
        try:
            crew.watch(run)
            outcome = await aperform(run)
        except Exception as error:  # noqa: BLE001  # a task that ended here would take its slot and its job along
            outcome = failed_to_run(run, error)
        run.cancel = None
        if not crew.end(run, outcome):
            return
        following = crew.next()
        if following is None:
            return
        if following.on_loop:
            # Through the loop rather than from here, whose context is the ended body's.
            asyncio.get_running_loop().call_soon(self._launch, [following], context=_clean)
        else:
            self._hand_over([following])

    def _wind_up(self) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        loop = asyncio.get_running_loop()
        loop.call_later(0.1 if self._tasks else 0, loop.stop)


_clean = copy_context()
