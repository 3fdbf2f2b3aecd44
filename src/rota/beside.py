"""A worker beside something else in the same process: a web server, a script, a program with windows.

It works in threads of its own, and nothing that befalls it takes the program down.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import FrameType
from typing import Any, Protocol, TypedDict

from rota.aloud import Aloud
from rota.app import Rota
from rota.clock import SECOND, span
from rota.errors import ConfigError
from rota.forks import in_child
from rota.keeping import Keeper
from rota.worker import Worker

log = logging.getLogger("rota")


class WSGI(Protocol):
    """A WSGI application."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any], /) -> Iterable[bytes]: ...


class BesideOptions(TypedDict, total=False):
    """What `Beside` can be told, and what each is when it is left out stands there."""

    queues: Sequence[str] | None
    concurrency: int
    lease: float | timedelta
    poll: float | timedelta
    shutdown_timeout: float | timedelta
    name: str | None


class Beside:
    """A worker that lives as long as a `with` or `async with` block, or from `start` to `stop`; `app.beside()` makes one.

    - `queues`: the queues to serve; `None` for all that there are.
    - `concurrency`: how many bodies run at once.
    - `lease`: how long its jobs are its own after it was last heard of.
    - `poll`: it looks for work at least so often when nothing wakes it.
    - `shutdown_timeout`: how long its end waits for running bodies before they are handed back, which uses no attempt.
    - `name`: what people call it; host and process id by default.

    Beginning waits for nothing: a store that is away is tried again and again, and missing tables are made. What became of
    each job is written to the standard error stream where the program has set up no logging. A worker that falls is started
    again after a wait that grows, and `check` tells of it. In a main thread that leaves SIGTERM at its default, that signal
    unwinds the program as Ctrl+C does, so that jobs in hand are handed back. An eager app needs no worker and gets none.

    >>> app = Rota("memory://")
    >>> @app.task(name="deliver", queue="mail", keep_result=True)
    ... def deliver(to: str) -> str:
    ...     return f"a letter to {to}"
    >>> with app.beside(queues=["mail"]):
    ...     deliver.enqueue("Ada").wait(timeout=30).result()
    'a letter to Ada'
    >>> app.close()
    """

    def __init__(
        self,
        app: Rota,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 4,
        lease: float | timedelta = 60.0,
        poll: float | timedelta = 1.0,
        shutdown_timeout: float | timedelta = 5.0,
        name: str | None = None,
    ) -> None:
        self.app = app
        self._make = partial(
            Worker,
            app,
            queues=queues,
            concurrency=concurrency,
            lease=lease,
            poll=poll,
            shutdown_timeout=shutdown_timeout,
            name=name,
        )
        self._grace = span(shutdown_timeout, "shutdown_timeout") / SECOND
        self._aloud = Aloud()
        self._keeper: Keeper | None = None
        self._ending: Keeper | None = None
        self._pid = os.getpid()
        self._locked = threading.Lock()
        self._terminator: Terminator | None = None
        in_child(self._forget)

    # -- from anywhere --------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work, and return at once. The end of the program ends it too, if `stop` did not.

        After a fork the child has no worker and may start one of its own. Raises `ConfigError` where it is at work in this
        process, and for options, tasks and a URL that cannot be right.
        """
        self._begin()
        self._heed_sigterm()

    def stop(self) -> None:
        """Claim no more, wait for what runs, hand back what takes longer, and return when all threads have ended.

        It takes `shutdown_timeout` and three seconds at the most; Ctrl+C has everything handed back at once. One that is not
        at work is left as it is.
        """
        self._end()
        self._leave_sigterm()

    @property
    def alive(self) -> bool:
        """Whether it is at work in this process: not before its start, in a fork, after its end, or while it is down."""
        return self._keeper is not None and not self._keeper.down

    def __enter__(self) -> Beside:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- from coroutines ------------------------------------------------------------------------

    async def astart(self) -> None:
        """`start` for coroutines: the loop goes on meanwhile."""
        await off_loop(self._begin, self._hurry)
        self._heed_sigterm()

    async def astop(self) -> None:
        """`stop` for coroutines. Where its caller is cancelled, everything is handed back at once before that is heard."""
        try:
            await off_loop(self._end, self._hurry)
        finally:
            self._leave_sigterm()

    async def __aenter__(self) -> Beside:
        try:
            await self.astart()
        except BaseException:  # cancelled while it began
            await self.astop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.astop()

    # -- in servers that fork -------------------------------------------------------------------

    def wsgi(self, application: WSGI) -> WSGI:
        """The application, with a worker that starts with the first request in each process that serves it."""

        def serve(environ: dict[str, Any], start_response: Callable[..., Any], /) -> Iterable[bytes]:
            if self._keeper is None:
                self._begin_once()
                self._heed_sigterm()
            return application(environ, start_response)

        return serve

    def _forget(self) -> None:
        """In a forked child: the threads are the parent's, and so is the worker."""
        parent, self._pid = self._pid, os.getpid()
        self._locked = threading.Lock()
        had_one, self._keeper, self._ending = self._keeper is not None, None, None
        if self._terminator is not None:
            self._terminator.withdraw()
            self._terminator = None
        if had_one and not _forked_by_multiprocessing():
            log.warning(
                "the worker beside this program stays in process %d, and this fork of it (%d) has none: call start() here too, "
                "for example in gunicorn's post_fork, or begin only after the fork",
                parent,
                self._pid,
            )

    # -- inside ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._locked:
            if self._keeper is not None:
                raise ConfigError("this worker is at work already: make another with app.beside()")
            self._have_keeper()

    def _begin_once(self) -> None:
        """Begin, unless another thread has done so since."""
        with self._locked:
            if self._keeper is None:
                self._have_keeper()

    def _have_keeper(self) -> None:
        if self.app.eager:
            return
        if not self.app.holding.is_open:
            # What a URL lacks is told here, and the driver is loaded by this thread: a fork in the middle of another
            # thread's import would leave the child without that module for ever.
            self.app.holding.unopened()
        keeper = Keeper(self.app, self._make)
        self._aloud.begin()
        try:
            keeper.start()
        except BaseException:
            self._aloud.end()
            raise
        self._keeper = keeper
        atexit.register(self._end)

    def _end(self) -> None:
        with self._locked:
            keeper, self._keeper = self._keeper, None
            self._ending = keeper
        if keeper is None:
            return
        try:
            keeper.stop(self._grace)
        finally:
            self._ending = None
            self._aloud.end()
            atexit.unregister(self._end)

    def _hurry(self) -> None:
        if (keeper := self._ending) is not None:
            keeper.request_stop(0.0)

    def _heed_sigterm(self) -> None:
        if self._keeper is not None and self._terminator is None and threading.current_thread() is threading.main_thread():
            self._terminator = Terminator.of_this_program()

    def _leave_sigterm(self) -> None:
        if self._terminator is not None and threading.current_thread() is threading.main_thread():
            self._terminator.leave()
            self._terminator = None


class Terminator:
    """Unwinds the program at SIGTERM, with the exit status that a shell shows for the signal.

    By default SIGTERM ends a process at once: its jobs would wait for the end of their lease and lose an attempt.
    """

    def __init__(self) -> None:
        self._users = 1

    @staticmethod
    def of_this_program() -> Terminator | None:
        """The one that is set, or a new one where SIGTERM has its default. To be called in the main thread."""
        now = signal.getsignal(signal.SIGTERM)
        if isinstance(now, Terminator):
            now._users += 1
            return now
        if now is not signal.SIG_DFL:
            return None  # the program, or its server, has its own way
        made = Terminator()
        signal.signal(signal.SIGTERM, made)
        return made

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def leave(self) -> None:
        self._users -= 1
        if not self._users:
            self.withdraw()

    def withdraw(self) -> None:
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


async def off_loop(call: Callable[[], None], hurry: Callable[[], None]) -> None:
    """Run a blocking call in a thread of its own, for those of the loop may all be held by what hangs.

    A caller that is cancelled hurries the call, and is cancelled when it has ended.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(None) if error is None else ended.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            call()
        except BaseException as met:  # noqa: BLE001  # it is raised where the call is awaited
            error = met
        with suppress(RuntimeError):  # the loop was closed: nobody is left to hear
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="rota-beside-call", daemon=True).start()
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        hurry()
        await ended
        raise


def _forked_by_multiprocessing() -> bool:
    """Whether this fork is a process of `multiprocessing`, which nobody expects to have a worker."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("multiprocessing."):
            return True
        frame = frame.f_back
    return False
