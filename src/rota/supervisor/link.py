"""A child's end of the two pipes to its supervisor: over one it gives signs of life, over the other it is told to stop.

Pipes, since they work on every system, and since their end tells a child that its supervisor is gone, however that came.
The words are lines. From the child: `alive`, `led`, `beat`, `joined ID`, `ended N`. To the child: `stop`, `now`, `dead ID`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

log = logging.getLogger("rota")
VARIABLE = "ROTA_SUPERVISED"
"""The environment variable that makes `rota worker` a child: the two ends of the pipes and its name, by commas."""
_EVERY = 1.0
"""Seconds between two signs of the same kind, at the least."""


class Stoppable(Protocol):
    """A worker, as far as it is told to stop."""

    shutdown_timeout: float

    def request_stop(self, handback_in: float) -> None: ...


class Link:
    """Made before the app is loaded. Gives the signs that `rota.worker.signs.Signs` describes."""

    every = _EVERY

    def __init__(self, reads: int, writes: int, name: str | None) -> None:
        self.name = name
        self._reads = reads
        self._writes = writes
        self._said: dict[bytes, float] = {}
        self._ended = 0
        self._lock = threading.Lock()
        self._worker: Stoppable | None = None
        self._bury: Callable[[str], None] | None = None
        self._dead: list[str] = []

    @classmethod
    def inherited(cls) -> Link | None:
        """The link of this process, if a supervisor started it. Programs that its jobs start do not inherit it."""
        said = os.environ.pop(VARIABLE, None)
        if said is None:
            return None
        reads, writes, name = said.split(",", 2)
        link = cls(_descriptor(int(reads), os.O_RDONLY), _descriptor(int(writes), os.O_WRONLY), name or None)
        _leave_signals_to_the_supervisor()
        threading.Thread(target=link._listen, name="supervisor-link", daemon=True).start()
        return link

    def lead(self, worker: Stoppable, bury: Callable[[str], None]) -> None:
        """From now on this worker is told to stop, and of dead ones; before, a stop ends the process at once."""
        with self._lock:
            self._worker, self._bury = worker, bury
            dead, self._dead = self._dead, []
        for each in dead:
            bury(each)

    @property
    def called(self) -> str:
        """What people call this process among the others, and its supervisor does as well: by its name, or by its number."""
        return self.name or str(os.getpid())

    # -- signs of life --------------------------------------------------------------------------

    def alive(self) -> None:
        self._seldom(b"alive")

    def led(self) -> None:
        self._seldom(b"led")

    def beat(self) -> None:
        self._seldom(b"beat")

    def joined(self, worker: str) -> None:
        self._say(b"joined " + worker.encode())

    def ended(self, jobs: int) -> None:
        self._ended += jobs  # by the thread that leads alone, which also says it

    def stopping(self) -> None: ...

    def _seldom(self, word: bytes) -> None:
        now = time.monotonic()
        if now - self._said.get(word, 0.0) < _EVERY:
            return
        self._said[word] = now
        self._say(word)
        if word == b"led" and self._ended:
            jobs, self._ended = self._ended, 0
            self._say(b"ended %d" % jobs)

    def _say(self, line: bytes) -> None:
        with suppress(OSError):  # it is gone, or so busy that the pipe is full: the work goes on
            os.write(self._writes, line + b"\n")

    # -- what it is told ------------------------------------------------------------------------

    def _listen(self) -> None:
        with os.fdopen(self._reads, "rb", buffering=0) as told:
            for line in told:
                word, _, rest = line.decode().strip().partition(" ")
                match word:
                    case "stop":
                        self._stop(None)
                    case "now":
                        self._stop(0.0)
                    case "dead":
                        self._tell_of(rest)
                    case _:  # a word of a later version, while an older process is still there
                        pass
        if self._worker is not None:
            log.warning("the supervisor is gone: this worker stops")
        self._stop(None)

    def _stop(self, handback_in: float | None) -> None:
        with self._lock:
            worker = self._worker
        if worker is None:
            os._exit(0)  # the app is still being loaded, and nothing was claimed
        worker.request_stop(worker.shutdown_timeout if handback_in is None else handback_in)

    def _tell_of(self, dead: str) -> None:
        with self._lock:
            bury = self._bury
            if bury is None:
                self._dead.append(dead)
        if bury is not None:
            bury(dead)


def _leave_signals_to_the_supervisor() -> None:
    """A terminal sends Ctrl+C and its hang-up to all processes; children do what the supervisor makes of it.

    By functions, since programs that bodies start would inherit signals that are ignored.
    """
    for name in ("SIGINT", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda _number, _frame: None)


def _descriptor(number: int, flags: int) -> int:
    """The pipe's end as it was passed on, by number or on Windows by handle; programs started here do not get it."""
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.open_osfhandle(number, flags)
    os.set_inheritable(number, False)
    if flags == os.O_WRONLY:
        os.set_blocking(number, False)
    return number
