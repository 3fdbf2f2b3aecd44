"""A child: a worker process as its supervisor has it. Its ends of the pipes and the end of the process become events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from rota.supervisor.link import VARIABLE

_END = b"\x04\n"
"""What no child says: its supervisor writes it after all that the child said, for the thread that reads."""
_OF_TERMINALS = (getattr(signal, "SIGINT", None), getattr(signal, "SIGHUP", None))
_SYSTEMD = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""What the service manager told the supervisor alone."""


class Heard(Struct, frozen=True):
    """A child said something."""

    child: Child
    word: str
    rest: str


class Exited(Struct, frozen=True):
    """A child's process ended, and everything that it said was heard."""

    child: Child


class Child:
    """A process, started when this is made. Raises `OSError` where the system cannot start it."""

    def __init__(
        self, number: int, name: str | None, command: Sequence[str], folder: str, post: Callable[[Heard | Exited], None]
    ) -> None:
        self.number = number
        self._name = name
        self._post = post
        theirs_in, self._to_child, self._from_child, self._theirs_out = _pipes()
        try:
            self._process = _spawn(command, folder, (theirs_in, self._theirs_out), name)
        except BaseException:
            for end in (self._to_child, self._from_child, self._theirs_out):
                os.close(end)
            raise
        finally:
            os.close(theirs_in)
        self.started_at = time.monotonic()
        self.joined_at: float | None = None
        self.workers: list[str] = []
        """The ids under which it joined the store."""
        self.jobs = 0
        """How many jobs it has ended."""
        self.kill_at: float | None = None
        """When it is killed, if it has not ended by then: it was told to stop."""
        self.killed = False
        self.most_jobs: int | None = None
        self.most_memory: int | None = None
        self._heard: dict[str, float] = {}
        self._behind_since = self.started_at
        self._reader = threading.Thread(target=self._read, name=f"rota-child-{self.pid}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"rota-child-{self.pid}-end", daemon=True)
        try:
            self._reader.start()
            self._waiter.start()
        except RuntimeError as error:
            self._end_unseen()
            raise OSError(str(error)) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status; below zero the number of the signal that ended it; `None` while it runs."""
        return self._process.returncode

    @property
    def loaded(self) -> bool:
        """Whether it has loaded the app: it gives signs of life from then on."""
        return bool(self._heard)

    def __str__(self) -> str:
        return f"worker {self._name or self.number} (pid {self.pid})"

    def how_it_ended(self) -> str:
        status = self.status or 0
        if status >= 0:
            return f"ended with status {status}"
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"

    # -- signs of life --------------------------------------------------------------------------

    def hear(self, word: str, rest: str) -> None:
        """Take note of what it said."""
        now = time.monotonic()
        match word:
            case "joined":
                self.workers.append(rest)
                self.joined_at = self.joined_at or now
            case "ended" if rest.isdecimal():
                self.jobs += int(rest)
            case "alive" | "led" | "beat":
                self._heard[word] = now
            case _:  # a word of another version
                pass

    def pardon(self) -> None:
        """Whoever listens was held up, so the silence until now says nothing."""
        now = time.monotonic()
        self._heard = dict.fromkeys(self._heard, now)
        self._behind_since = now
        if not self._heard:
            self.started_at = now

    def silent(self) -> float:
        """For how many seconds no thread of it has given a sign."""
        return time.monotonic() - max(self._heard.values(), default=self.started_at)

    def gets_on(self, within: float) -> bool:
        """Whether both threads that deal with the store gave a sign within so many seconds, if both began to."""
        threads = [self._heard[word] for word in ("led", "beat") if word in self._heard]
        return len(threads) == 2 and time.monotonic() - min(threads) < within

    def behind(self, others_get_on: bool) -> float:
        """For how many seconds it has not got on while others did; to be told again and again whether it is so now.

        Nothing before it has joined: until then it waits for the store in its own time.
        """
        now = time.monotonic()
        if not others_get_on or self.joined_at is None:
            self._behind_since = now
        return now - self._behind_since

    # -- what it is told ------------------------------------------------------------------------

    def say(self, *words: str) -> None:
        with suppress(OSError):  # it has ended, or has not read for very long
            os.write(self._to_child, " ".join(words).encode() + b"\n")

    def stop(self, word: str, within: float) -> None:
        """Tell it to `stop`, or to hand back `now`, and have it killed after so many seconds."""
        at = time.monotonic() + within
        self.kill_at = at if self.kill_at is None else min(self.kill_at, at)
        self.say(word)

    def kill(self) -> None:
        self.killed = True
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        os.close(self._to_child)

    # -- threads of its own ---------------------------------------------------------------------

    def _read(self) -> None:
        with os.fdopen(self._from_child, "rb", buffering=0) as said:
            for line in said:
                if line.endswith(_END):
                    return
                word, _, rest = line.decode(errors="replace").strip().partition(" ")
                self._post(Heard(self, word, rest))

    def _wait(self) -> None:
        self._process.wait()
        self._end_reading()
        self._post(Exited(self))

    def _end_reading(self) -> None:
        """Have all heard that was said. The pipe's own end may not come: a process that a body left behind may hold it."""
        if sys.platform != "win32":
            os.set_blocking(self._theirs_out, True)  # the child had it otherwise
        with suppress(OSError):  # nobody reads any more
            os.write(self._theirs_out, _END)
        self._reader.join()
        os.close(self._theirs_out)

    def _end_unseen(self) -> None:
        """See the process off where there is no thread for what it says or for its end."""
        self._process.kill()
        self._process.wait()
        self.close()
        if self._reader.ident is not None:
            self._end_reading()
            return
        os.close(self._from_child)
        os.close(self._theirs_out)


def _pipes() -> tuple[int, int, int, int]:
    """Two pipes, each by its end to read and its end to write; or `OSError` and none."""
    down = os.pipe()
    try:
        up = os.pipe()
    except OSError:
        for end in down:
            os.close(end)
        raise
    if sys.platform != "win32":
        os.set_blocking(down[1], False)  # a process that stands still and reads nothing must not hold up its supervisor
    return *down, *up


def _spawn(command: Sequence[str], folder: str, ends: tuple[int, int], name: str | None) -> subprocess.Popen[bytes]:
    """Start the command anew in a process that has these two ends of pipes, and no other file of this one."""
    environment = {key: value for key, value in os.environ.items() if key not in _SYSTEMD}
    if sys.platform == "win32":
        import msvcrt

        handles = [msvcrt.get_osfhandle(end) for end in ends]
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        environment[VARIABLE] = f"{handles[0]},{handles[1]},{name or ''}"
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles})
        return subprocess.Popen(command, cwd=folder, env=environment, startupinfo=startup)
    environment[VARIABLE] = f"{ends[0]},{ends[1]},{name or ''}"
    # What a terminal sends to all is held back in the child until it has handlers of its own.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, [each for each in _OF_TERMINALS if each is not None])
    try:
        return subprocess.Popen(command, cwd=folder, env=environment, pass_fds=ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
