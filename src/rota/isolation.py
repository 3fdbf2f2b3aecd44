"""Bodies in a process of their own (`isolated=True`), which can be killed: at a time-out, at a cancel, at a shutdown.

A child is spawned, never forked, imports the task's module, and serves one body after another until it is closed or killed.
Nothing but names, JSON text and outcomes crosses the pipe.
"""

from __future__ import annotations

import atexit
import errno
import importlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

from rota.attempt import Run, conclude, perform_here, raised, timed_out, unbegun
from rota.clock import SECOND
from rota.codec import failure_of
from rota.context import CurrentJob
from rota.errors import ConfigError
from rota.forks import end_fork
from rota.forwarding import Forwarder, Told, log_here, wanted
from rota.model import Claimed, Outcome, Released, Succeeded
from rota.rules.decide import End, Raised
from rota.task import Task

if TYPE_CHECKING:  # a worker without isolated bodies need not carry the machinery of processes
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

log = logging.getLogger("rota")

START = 60.0
"""Seconds that a process has to start and to import a task's module; a task with a longer time-out has as many as that."""
_LOOK = 0.1
"""Seconds between looks at whether the job should stop."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""What the system says that has too many open files or processes, or too little memory."""


class ChildDied(Exception):
    """The process that ran the body is gone: it was killed, crashed, or called `os._exit`."""


class Child:
    """A process for isolated bodies, owned by one thread. It is started at the first body and again after a kill."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection[Any, Any] | None = None

    def perform(self, run: Run, begins: Callable[[Run], object] = Run.start_clock) -> Outcome:
        """Run the body in the process to its end, or until the job should stop, which kills the process.

        `begins` is called when the body begins: neither the start of a process nor its imports are the body's time. They have
        `START` seconds, or as many as the body where that is more, and end at once when the job should stop.
        """
        if run.stop is not None:
            return conclude(run, unbegun(run))
        begin_by = time.monotonic() + _start_limit(run.task)
        try:
            if (unserved := self._start_or_hand_back(run)) is not None:
                return unserved
            end = self._send(run, begin_by)
            while end is None:
                if self._look(_LOOK) and (outcome := self._hear(run, begins)) is not None:
                    return outcome
                end = _cut_short(run, begin_by)
            return self._end(run, begins, end)
        except (EOFError, OSError) as error:
            return conclude(run, self._died(error))

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End the process; it must not be running a body."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            atexit.unregister(self._process.kill)
            self._process.join()
            self._process.close()
        self._pipe = self._process = None

    def _start_or_hand_back(self, run: Run) -> Released | None:
        """Start the process where there is none; where the system has no room for it now, that is no fault of the job."""
        try:
            self._start()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            log.error("no process can be started: %s", error)
            run.stop_clock()
            return Released("no process could be started for it", SECOND)
        return None

    def _start(self) -> None:
        """Start the process where there is none. It may take its time to be ready: see `_send`."""
        if self._process is not None and not self._process.is_alive():
            self.close()
        if self._pipe is not None:
            return
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), name="rota-isolated", daemon=True)
        try:
            process.start()
        finally:
            theirs.close()
        # It does not heed the SIGTERM by which Python ends such processes at its own exit.
        atexit.register(process.kill)
        self._pipe, self._process = ours, process

    def _send(self, run: Run, begin_by: float) -> End | None:
        """Give the process its body once it listens, and answer why it should not get it, if so.

        Not before: it imports the program's main module first, and while that hangs, large arguments would not go through.
        """
        assert self._pipe is not None
        while (end := _cut_short(run, begin_by)) is None:
            if self._look(_LOOK) and self._pipe.recv()[0] == "ready":
                hooks = [hook.place for hook in run.task.hooks.around_bodies(run.task.name)]
                task = run.task
                given: Given = (task.__module__, task.__qualname__, task.name, run.job, run.worker, hooks, wanted())
                self._pipe.send(given)
                break
        return end

    def _look(self, patience: float) -> bool:
        """Whether the process said something. Raises `EOFError` when it is gone without a word."""
        assert self._pipe is not None
        assert self._process is not None
        if self._pipe.poll(patience):
            return True
        # A process that the body started may hold the pipe open, so its end is no sure sign.
        if self._process.is_alive() or self._pipe.poll(0):
            return False
        raise EOFError

    def _hear(self, run: Run, begins: Callable[[Run], object]) -> Outcome | None:
        """Take one word from the process; the last one is the outcome."""
        assert self._pipe is not None
        word, job, said = self._pipe.recv()
        if word == "log":
            _log(run if job == run.job.id else None, said)
            return None
        if job != run.job.id:  # a thread that a former body left behind
            return None
        match word:
            case "began":
                begins(run)
            case "progress":
                run.progress = said
            case "finishing":
                run.finishing = True
            case "result":
                run.result = said
            case "unfit":
                return conclude(run, Raised(ImportError(said.message), said))
            case "ended":
                run.stop_clock()
                outcome: Outcome = said
                return outcome
        return None

    def _end(self, run: Run, begins: Callable[[Run], object], end: End) -> Outcome:
        """Kill the process, unless the body was quicker, and answer the outcome."""
        assert self._pipe is not None
        assert self._process is not None
        self._process.kill()
        self._process.join()
        outcome = None
        try:
            while outcome is None and self._pipe.poll(0):
                outcome = self._hear(run, begins)
        except (EOFError, OSError):
            pass
        self.kill()
        return conclude(run, end) if outcome is None else outcome

    def _died(self, why: EOFError | OSError) -> Raised:
        if self._process is None:
            manner = f"could not be started: {why}"
        else:
            self._process.join(5)
            manner = _manner(self._process.exitcode)
            self.kill()
        error = ChildDied(f"worker lost: the process of the body {manner}")
        return Raised(error, failure_of(error))


def check_isolated(task: Task[..., Any, Any]) -> None:
    """Refuse a task that another process could not find by its name. Raises `ConfigError`."""
    if "<locals>" in task.__qualname__ or "<lambda>" in task.__qualname__:
        raise ConfigError(
            f"task {task.name} is isolated, but {task.__qualname__} is defined inside a function, "
            "where its own process cannot import it: define it at the top of a module"
        )


def _cut_short(run: Run, begin_by: float) -> End | None:
    """Why the process should be killed now, if it should."""
    now = time.monotonic()
    if run.started is None and run.stop is not None:
        return unbegun(run)
    if run.started is None and now >= begin_by:
        error = TimeoutError(
            f"timed out before it began: its process did not start and import {run.task.__module__} "
            f"within {_start_limit(run.task):g} s"
        )
        return Raised(error, failure_of(error))
    if run.interrupted:
        return raised(run, ChildDied())
    if run.deadline is not None and now >= run.deadline:
        return timed_out(run)
    return None


def _start_limit(task: Task[..., Any, Any]) -> float:
    """How many seconds a process may take until it begins a body of this task."""
    return max(START, (task.timeout or 0) / SECOND)


def _log(run: Run | None, told: Told) -> None:
    with suppress(Exception):  # a filter of the program's may raise anything, and the body goes on
        log_here(told, None if run is None else CurrentJob(run.job, run))


def _manner(code: int | None) -> str:
    if code is None:
        return "is gone"
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


Tell = Callable[[str, str, object], None]
"""Says a word about the job with this id."""


Given = tuple[str, str, str, Claimed, str, Sequence[tuple[str, str]], int]
"""What a process gets to run a body: the task's module, place and name, its job and worker, the hooks, and the log's level."""

_TOLD = frozenset({"progress", "finishing", "result"})


class _Reporter(Run):
    """A run of which is told up the pipe what its body says, before that is acted upon."""

    __slots__ = ("_tell",)

    def __init__(self, job: Claimed, task: Task[..., Any, Any], worker: str, tell: Tell) -> None:
        self._tell = tell
        super().__init__(job, task, worker)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in _TOLD and value:
            self._tell(name, self.job.id, value)


def _serve(pipe: Connection[Any, Any]) -> None:
    """The child's main function."""
    from multiprocessing.reduction import ForkingPickler

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave_to_the_worker)
    threading.Thread(target=_end_with_parent, name="rota-parent-watch", daemon=True).start()
    sending = threading.Lock()  # a body's threads may tell of progress at once

    def tell(word: str, job: str, said: object) -> None:
        data = ForkingPickler.dumps((word, job, said))  # which may have objects deleted, and they may log
        with sending:
            pipe.send_bytes(data)

    forwarder = Forwarder(lambda job, told: tell("log", job, told))
    while True:
        try:
            tell("ready", "", None)
            given: Given = pipe.recv()
        except (EOFError, OSError):
            return
        _perform(given, tell, forwarder)


def _perform(given: Given, tell: Tell, forwarder: Forwarder) -> None:
    module, qualname, name, job, worker, hooks, level = given
    try:
        task = _find(module, qualname, name)
        forwarder.serve(job.id, level)
        if hooks:
            _find_hooks(task, hooks)
    except BaseException as error:  # noqa: BLE001  # a module may raise anything, or exit
        tell("unfit", job.id, failure_of(error))
        return
    tell("began", job.id, None)
    own = os.getpid()
    outcome = perform_here(_Reporter(job, task, worker, tell))
    if os.getpid() != own:
        end_fork(job.task, job.id, isinstance(outcome, Succeeded))
    tell("ended", job.id, outcome)


def _find(module: str, qualname: str, name: str) -> Task[..., Any, Any]:
    """The task of this name, where its function is or anywhere else at the top of the module."""
    home = importlib.import_module(module)
    found: Any = home
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Task):  # by its place rather than its name: a program's main module is called otherwise here
        return found
    for candidate in vars(home).values():
        if isinstance(candidate, Task) and candidate.name == name:
            return candidate
    raise ConfigError(
        f"task {name} is isolated, but its own process finds no such task in module {module}: define it at the top"
    )


def _find_hooks(task: Task[..., Any, Any], places: Sequence[tuple[str, str]]) -> None:
    """Import the modules in which the worker's hooks stand, so that they register themselves; tell of those that did not."""
    for module in dict.fromkeys(module for module, _ in places):
        try:
            importlib.import_module(module)
        except BaseException:
            log.exception("the hooks of module %s are not called for isolated task %s: its import fails", module, task.name)
    here = {hook.place for hook in task.hooks.around_bodies(task.name)}
    for module, name in places:
        if (module, name) not in here:
            log.error(
                "hook %s.%s is not called for isolated task %s: its own process imports module %s, which does not register it; "
                "register hooks at the top of a module",
                module, name, task.name, module,
            )  # fmt: skip


def _leave_to_the_worker(_number: int, _frame: FrameType | None) -> None:
    """Ctrl+C and a supervisor's stop reach the whole group; the worker decides what they mean for a body.

    A function, since programs that the body starts would inherit signals that are ignored.
    """


def _end_with_parent() -> None:
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
