"""Starts contenders' adapter scripts and real worker commands, and ends them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.adapters.tally import ARRIVED, FIRST, STARTED, open_slots
from bench.contenders import ADAPTERS, Contender
from bench.environments import programs
from bench.stores import Place

PATIENCE = 60.0
"""Seconds after which a run that makes no headway is given up."""


class Broken(Exception):
    """A contender's program failed, or did not get on."""


@dataclass
class Run:
    """A contender at work on one fresh place."""

    contender: Contender
    place: Place
    folder: Path
    """Where its worker processes keep their tallies."""

    def environ(self, **more: str) -> dict[str, str]:
        mine = {"BENCH_URL": self.place.url, "BENCH_TALLY": str(self.folder), "PYTHONPATH": str(ADAPTERS)}
        return os.environ | mine | {"PYTHONWARNINGS": "ignore"} | more

    def python(self) -> str:
        return str(programs(self.contender) / "python")

    # -- the adapter script -------------------------------------------------------------------------

    def start(self, command: str, *arguments: int, **environ: str) -> subprocess.Popen[str]:
        """Start a sub-command of the adapter."""
        return subprocess.Popen(
            [self.python(), str(ADAPTERS / "script.py"), self.contender.adapter, command, *map(str, arguments)],
            env=self.environ(**environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answers(self, command: str, *arguments: int, **environ: str) -> list[dict[str, float]]:
        """Run a sub-command to its end and return what it answered. Raises `Broken`."""
        return collect(self.start(command, *arguments, **environ), command)

    # -- workers ------------------------------------------------------------------------------------

    @contextmanager
    def workers(self, n: int = 1, gate: bool = False) -> Iterator[list[subprocess.Popen[bytes]]]:
        """`n` worker commands, ended on the way out. With the gate, their first bodies wait for `open_gate`."""
        bin_ = str(programs(self.contender))
        command = [part.replace("{bin}", bin_) for part in self.contender.worker]
        environ = self.environ(BENCH_GATE="1") if gate else self.environ()
        log = (self.folder / "worker.log").open("ab")
        processes = [
            subprocess.Popen(command, env=environ, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
            for _ in range(n)
        ]
        try:
            yield processes
        finally:
            for process in processes:
                end(process)
            log.close()

    def tallies(self) -> list[memoryview]:
        return [open_slots(path) for path in sorted(self.folder.glob("*.tally"))]

    def forget_tallies(self) -> None:
        for path in self.folder.glob("*.tally"):
            path.unlink()

    def first_start(self, processes: list[subprocess.Popen[bytes]]) -> int:
        """Wait for the first body and return the moment it began, in monotonic nanoseconds."""
        for _ in self._patiently(processes, pause=0.002):
            if firsts := [slots[FIRST] for slots in self.tallies() if slots[FIRST]]:
                return min(firsts)
        raise AssertionError

    def open_gate(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Wait until each worker has its first body in hand, then let them all go."""
        for _ in self._patiently(processes, pause=0.002):
            if sum(slots[ARRIVED] for slots in self.tallies()) == len(processes):
                (self.folder / "go").touch()
                return

    def last_finish(self, jobs: int, processes: list[subprocess.Popen[bytes]]) -> int:
        """Wait until the store has no unfinished job and return that moment.

        The store is left in peace until all but a few bodies have started, or none has for a while.
        """
        tallies = self.tallies()
        nearly = jobs - max(16, jobs // 100)
        before, since = -1, time.monotonic()
        for _ in self._patiently(processes, pause=0.001):
            started = sum(slots[STARTED] for slots in tallies)
            if started >= nearly:
                break
            if started != before:
                before, since = started, time.monotonic()
            elif time.monotonic() - since > PATIENCE / 3:
                raise Broken(f"{self.contender.name} stopped at {started} of {jobs} bodies{self.last_words()}")
        for _ in self._patiently(processes, pause=0.002):
            asked = time.monotonic_ns()
            unfinished = self.place.ask(self.contender.unfinished)
            now = time.monotonic_ns()
            started = sum(slots[STARTED] for slots in tallies)
            if not unfinished and started >= nearly:
                return now
            # A question that takes long, for the dead rows it walks over, is asked less often.
            time.sleep(3 * (now - asked) / 1e9)
        raise AssertionError

    def last_words(self) -> str:
        log = self.folder / "worker.log"
        lines = log.read_text(errors="replace").strip().splitlines()[-15:] if log.exists() else []
        return "".join(f"\n    {line}" for line in lines)

    def _patiently(self, processes: list[subprocess.Popen[bytes]], pause: float) -> Iterator[None]:
        """Yield again and again; raises `Broken` when a worker has ended or patience has."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            yield
            if any(process.poll() is not None for process in processes):
                raise Broken(f"a worker of {self.contender.name} ended{self.last_words()}")
            time.sleep(pause)
        raise Broken(f"{self.contender.name} did not get on in {PATIENCE:.0f} s{self.last_words()}")


@contextmanager
def prepared(contender: Contender, place: Place) -> Iterator[Run]:
    """A run of the contender on the place, its tables made."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        run = Run(contender, place, folder)
        run.answers("setup")
        yield run
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def collect(process: subprocess.Popen[str], command: str) -> list[dict[str, float]]:
    """Let the adapter pass its gate, wait for its end and return its answers. Raises `Broken`."""
    try:
        out, err = process.communicate("\n", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Broken(f"{command} did not end in {PATIENCE:.0f} s") from None
    if process.returncode:
        raise Broken(f"{command} failed: " + "\n    ".join(err.strip().splitlines()[-8:]))
    answers = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [answer for answer in answers if "ready" not in answer]


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process group to end, and insist after a while: the place that it works on goes with it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
            return


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The process and all its descendants."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]
