"""A worker: claims jobs and runs them until it is stopped. `run` is for a process of its own, `start` for one beside others."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

from msgspec import structs

from rota.app import Rota
from rota.attempt import Run
from rota.bell import Bell
from rota.clock import SECOND, span
from rota.errors import ConfigError, StoreUnavailable
from rota.model import UNFINISHED, Filter, WorkerRow
from rota.options import check_queues
from rota.settings import check_lease
from rota.stores.base import Line, Store
from rota.task import declarations
from rota.worker.backoff import Backoff
from rota.worker.crew import Crew
from rota.worker.identity import Identity
from rota.worker.ledger import Ledger
from rota.worker.lookout import Lookout
from rota.worker.pulse import Pulse
from rota.worker.signs import Signs, Unwatched
from rota.worker.threads import Threads
from rota.worker.thrift import Thrift

if TYPE_CHECKING:
    from rota.worker.coroutines import Coroutines

log = logging.getLogger("rota")

_SIGNAL_LOOK = 0.1
"""Seconds between the main thread's looks at whether a signal came."""


class Worker:
    """Runs an app's jobs in this process.

    - `queues`: the queues to serve; `None` for all that there are.
    - `concurrency`: how many bodies run at once, threads, coroutines and processes together.
    - `lease`: how long its jobs are its own after it was last heard of; it is heard of three times in that.
    - `poll`: the longest time between looks for work when nothing wakes it.
    - `shutdown_timeout`: how long a stop waits for running bodies before they are handed back.

    Raises `ConfigError` for a setting that cannot be right and for tasks that cannot be run.
    """

    def __init__(
        self,
        app: Rota,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 8,
        lease: float | timedelta = 60.0,
        poll: float | timedelta = 5.0,
        shutdown_timeout: float | timedelta = 30.0,
        name: str | None = None,
    ) -> None:
        from rota import __version__

        self.app = app
        self.queues = check_queues(queues)
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigError(f"concurrency={concurrency!r}: a worker runs at least one job at a time")
        if self.queues == []:
            raise ConfigError("queues=[]: name the queues to serve, or leave it out to serve all")
        self.concurrency = concurrency
        self.shutdown_timeout = span(shutdown_timeout, "shutdown_timeout") / SECOND
        poll_seconds = span(poll, "poll") / SECOND
        if poll_seconds < 0.05:
            raise ConfigError(f"poll={poll!r}: looking for work more often than each 0.05 seconds only burdens the store")
        for task in app.tasks.values():
            task.signature.check()
        self._bell = Bell()
        self._crew = Crew(concurrency, self._bell, self._start)
        self._identity = Identity(name, self.queues, list(app.tasks), concurrency, check_lease(lease), __version__)
        self._poll = poll_seconds
        if app.limiting is not None:
            with app.holding.at_hand() as store:  # one that is away is not waited for
                app.limiting.check_store(store)
            self._poll = app.limiting.poll_within(poll_seconds)
        self._threads = Threads(self._crew, self._start)
        self._coroutines: Coroutines | None = None  # made at the first coroutine, so that others do not pay for asyncio
        self._making_loop = threading.Lock()
        self._ledger: Ledger | None = None
        self._stopping = threading.Event()
        self._handback_in: float | None = None
        self._started = False
        self._ended = threading.Event()
        self._store: Store | None = None
        self._pulse: Pulse | None = None
        self._error: BaseException | None = None
        self._signals = 0
        self._heeded = 0
        self.signs: Signs = Unwatched()
        """Told by every thread of the worker that it is alive; to be set before the start."""

    @property
    def id(self) -> str:
        """Its id in the store; unique to this start."""
        return self._identity.id

    # -- in a process of its own ----------------------------------------------------------------

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, and answer the exit status: 0, or 1 when it could not do its work.

        Raises what keeps it from starting, such as `SchemaMismatch`; a store that is away does not.
        The first signal stops claiming and waits for what runs; a second one hands it back at once. SIGHUP, as of a terminal
        that is closed, is such a signal where it would end the process otherwise.
        """
        former = {number: signal.signal(number, self._on_signal) for number in _stop_signals()}
        try:
            thrift = Thrift()
            self.start()
            while not self._ended.wait(_SIGNAL_LOOK):
                self._heed_signals()
                self.signs.alive()
                thrift.look(len(self._crew.in_hand), self._crew.moved_at)
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
        if self._error is not None:
            raise self._error
        return 1 if self._ledger is not None and self._ledger.failed else 0

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # It may interrupt any line of the main thread, one that holds a lock included, so it does nothing but count.
        self._signals += 1

    def _heed_signals(self) -> None:
        if self._signals > self._heeded:
            self._heeded += 1
            self.request_stop(self.shutdown_timeout if self._heeded == 1 else 0.0)

    # -- beside others --------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work in threads of its own. Waits for no store: one that is away is tried again and again."""
        if self._started:
            raise ConfigError("this worker was started before: make another")
        if not self._threads.give(self._lead):
            raise RuntimeError("the system gives this process no thread for the worker")
        self._started = True

    def request_stop(self, handback_in: float) -> None:
        """Stop claiming; hand back what still runs in so many seconds. Returns at once."""
        if not self._stopping.is_set():
            running = len(self._crew.in_hand) - self._crew.waiting
            hurry = "; another signal hands them back at once" if self._signals else ""
            with suppress(Exception):  # a log that fails keeps nobody from stopping
                log.info("stopping: %d running, with %g s to end%s", running, handback_in, hurry)
            self.signs.stopping()
        self._handback_in = handback_in
        self._stopping.set()
        if self._ledger is not None:
            self._ledger.stop(handback_in)

    def bury(self, worker: str) -> None:
        """Take back within a second what this other worker held, of which it is known that its process has ended.

        Its attempts count, as if its lease had run out.
        """
        if self._pulse is not None:
            self._pulse.bury(worker)

    def stop(self) -> None:
        """Stop as on SIGTERM, and wait for the end."""
        self.request_stop(self.shutdown_timeout)
        if self._started:
            self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, and answer whether it came within so many seconds."""
        return self._ended.wait(timeout)

    @property
    def trouble(self) -> str | None:
        """Why it ended by itself, in a line; `None` while it works and after a stop."""
        if self._error is not None:
            return f"{type(self._error).__name__}: {self._error}"
        return "it could not do its work" if self._ledger is not None and self._ledger.failed else None

    def after_fall(self, trouble: str) -> None:
        """Say in the store what befell the worker whose place this one takes. To be called before the start."""
        self._identity.take_on(structs.replace(self._identity.row, trouble=trouble))

    def fallen(self, trouble: str, lease: float) -> WorkerRow:
        """What says in the store, for so many seconds at the most, that this worker is down: a row without slots."""
        return structs.replace(
            self._identity.renew(), queues=[], tasks=[], concurrency=0, lease=span(lease, "lease"), trouble=trouble
        )

    # -- the thread that leads ------------------------------------------------------------------

    def _lead(self) -> Run | None:
        """Be the ledger, from where another thread left off, up to this thread's own job or the end."""
        try:
            ledger = self._ledger or self._begin()
            if ledger is not None and (run := ledger.lead()) is not None:
                return run
        except BaseException as error:  # noqa: BLE001  # `run` raises it in the main thread
            self._error = error
            with suppress(BaseException):  # the log may be what it falls over
                log.critical("the worker ends: %s", error)
        try:
            self._wind_up()
        finally:
            self._ended.set()
        return None

    def _begin(self) -> Ledger | None:
        """Join the store; `None` when stopped before that."""
        if (connected := self._connected()) is None:
            return None
        store, line = connected
        self._store = store
        likely = ["default", *(task.options.queue for task in self.app.tasks.values())]
        limits = self.app.limiting is not None
        lookout = Lookout(store, self._identity, self.app.now, self.queues, likely, self._poll, limits)
        ledger = Ledger(self.app, store, self._crew, self._bell, self._identity, lookout, self._poll, self.signs)
        self._pulse = Pulse(self.app, store, self._crew, self._identity, self.signs, ledger.hooks, ledger.ring, ledger.fail)
        if line is not None:
            ledger.begin_on(line)
        self._ledger = ledger
        if self._handback_in is not None:  # the stop came before there was a ledger to tell
            ledger.stop(self._handback_in)
        self.signs.joined(self._identity.id)
        self._pulse.start()
        self._say_hello(store)
        return ledger

    def _connected(self) -> tuple[Store, Line | None] | None:
        """A store of its own that knows this worker, and a line to it; `None` when stopped before that.

        What keeps the lease must not wait for bodies that use the app's store. Where the store has no room for both, nothing
        is kept: of many workers that start at once each would hold what another needs.
        """
        backoff = Backoff(self._stopping)
        while not self._stopping.is_set():
            store: Store | None = None
            try:
                store = self.app.store.twin()
                line = _line(store)
                try:
                    store.declare(declarations(self.app.tasks.values()))
                    store.join(self._identity.row, self.app.now())
                    self._identity.take_on(self._identity.row)
                except BaseException:
                    if line is not None:
                        line.close()
                    raise
            except StoreUnavailable as error:
                if store is not None:
                    store.close()
                self._identity.take_on(self._identity.renew())  # the store may have heard of this one although no answer came
                backoff.pause("the store is away", error)
            except BaseException:
                if store is not None:
                    store.close()
                raise
            else:
                return store, line
        return None

    def _wind_up(self) -> None:
        """End every thread and leave the store, whatever state it is in."""
        if self._pulse is not None:
            self._pulse.stop()
        self._threads.close()
        if self._coroutines is not None:
            self._coroutines.close()
        if self._store is None:
            return
        try:
            self._store.leave(self._identity.id, self.app.now())
        except Exception as error:  # noqa: BLE001  # the lease ends by itself
            log.warning("the store could not be told of the end: %s", error)
        if self._ledger is not None:
            self._ledger.hooks.close()
            self._ledger.close()  # its line, where it never led
        self._threads.join(0.2)
        self._store.close()
        with suppress(Exception):  # as above
            log.info("stopped")

    def _start(self, runs: Sequence[Run]) -> None:
        """Give each body to those who can run it."""
        plain = [run for run in runs if not run.on_loop]
        if plain:
            self._threads.start(plain)
        if len(plain) < len(runs):
            self._loop().start([run for run in runs if run.on_loop])

    def _loop(self) -> Coroutines:
        with self._making_loop:  # the ledger and any runner may come to the first coroutine at once
            if self._coroutines is None:
                from rota.worker.coroutines import Coroutines

                self._coroutines = Coroutines(self._crew, self._start)
            return self._coroutines

    def _say_hello(self, store: Store) -> None:
        queues = "all queues" if self.queues is None else "queues " + ", ".join(self.queues)
        log.info(
            "worker %s (pid %d) on %s serves %s with %d slots; its tasks (%d): %s",
            self._identity.row.name,
            os.getpid(),
            store.url,
            queues,
            self.concurrency,
            len(self.app.tasks),
            ", ".join(sorted(self.app.tasks)) or "none",
        )
        for warning in self._warnings(store):
            log.warning("%s", warning)

    def _warnings(self, store: Store) -> list[str]:
        try:
            return [*self._nothing_on(store), *store.vitals().warnings]
        except StoreUnavailable:
            return []

    def _nothing_on(self, store: Store) -> list[str]:
        """What is odd about the queues that it was told to serve: a name that is misspelt is served in silence for ever."""
        declared = {task.options.queue for task in self.app.tasks.values()}
        if not (odd := set(self.queues or ()) - declared):
            return []
        known = declared.union(store.queues())
        names = ", ".join(repr(name) for name in sorted(known)[:10]) or "none"
        return [
            f"no job is on queue {queue!r}, which this worker serves, and no task of its app names it: is it spelt right? "
            f"Known are {names}{', and others' if len(known) > 10 else ''}"
            for queue in sorted(odd - known)
            if not store.find(Filter(UNFINISHED, queue), 1)
        ]


def _stop_signals() -> list[int]:
    hang_up = getattr(signal, "SIGHUP", None)  # which Windows has not
    ends = hang_up is not None and signal.getsignal(hang_up) is signal.SIG_DFL
    return [signal.SIGTERM, signal.SIGINT, *([hang_up] if hang_up is not None and ends else [])]


def _line(store: Store) -> Line | None:
    """A line, if the store is there; whatever else goes wrong with one is for the ledger to meet and to tell."""
    try:
        return store.line()
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001
        return None
