"""Bodies in a process of their own (`isolated=True`), which can be killed: at a time-out, at a cancel, at a shutdown.

A child is spawned, never forked, imports the task's module, and serves one body after another until it is closed or killed.
Nothing but names, JSON text and outcomes crosses the pipe.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import Any

from rota.attempt import TIMED_OUT, Run, conclude, perform_here, raised, timed_out
from rota.codec import failure_of
from rota.errors import ConfigError
from rota.model import Claimed, Outcome
from rota.rules.decide import Raised
from rota.task import Task

_LOOK = 0.1
"""Seconds between looks at whether the job should stop."""


class ChildDied(Exception):
    """The process that ran the body is gone: it was killed, crashed, or called `os._exit`."""


class Child:
    """A process for isolated bodies, owned by one thread. It is started at the first body and again after a kill."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection[Any, Any] | None = None

    def perform(self, run: Run) -> Outcome:
        """Run the body in the process to its end, or until the job should stop, which kills the process."""
        run.started = time.monotonic_ns()
        pipe = self._ready()
        try:
            pipe.send((run.task.__module__, run.task.__qualname__, run.job))
            while not run.interrupted:
                if run.deadline is not None and time.monotonic() >= run.deadline:
                    run.interrupt(TIMED_OUT)
                elif pipe.poll(_LOOK):
                    kind, value = pipe.recv()
                    if kind == "outcome":
                        outcome: Outcome = value
                        return outcome
                    run.progress = value
        except (EOFError, OSError):
            return conclude(run, self._died(run))
        self.kill()
        return conclude(run, timed_out(run) if run.stop == TIMED_OUT else raised(run, ChildDied()))

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
            self._process.join()
            self._process.close()
        self._pipe = self._process = None

    def _ready(self) -> Connection[Any, Any]:
        if self._process is not None and not self._process.is_alive():
            self.close()
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), name="rota-isolated", daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _died(self, run: Run) -> Raised:
        process = self._process
        if process is None:
            code = None
        else:
            process.join(5)
            code = process.exitcode
        self.kill()
        error = ChildDied(f"worker lost: the process of the body {_manner(code)}")
        return Raised(error, failure_of(error))


def check_isolated(task: Task[..., Any, Any]) -> None:
    """Refuse a task that another process could not find by its name. Raises `ConfigError`."""
    if "<locals>" in task.__qualname__ or "<lambda>" in task.__qualname__:
        raise ConfigError(
            f"task {task.name} is isolated, but {task.__qualname__} is defined inside a function, "
            "where its own process cannot import it: define it at the top of a module"
        )


def _manner(code: int | None) -> str:
    if code is None:
        return "is gone"
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


class _Reporter(Run):
    """A run whose progress goes up the pipe as it is set."""

    __slots__ = ("_pipe",)

    def __init__(self, job: Claimed, task: Task[..., Any, Any], pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe
        super().__init__(job, task)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "progress" and value is not None:
            self._pipe.send(("progress", value))


def _serve(pipe: Connection[Any, Any]) -> None:
    """The child's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the whole terminal; the worker decides what it means
    threading.Thread(target=_end_with_parent, name="rota-parent-watch", daemon=True).start()
    while True:
        try:
            module, qualname, job = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(("outcome", _perform(module, qualname, job, pipe)))


def _perform(module: str, qualname: str, job: Claimed, pipe: Connection[Any, Any]) -> Outcome:
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return perform_here(_Reporter(job, found, pipe))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
