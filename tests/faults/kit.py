"""Real worker processes, to be killed, stopped and starved."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
PATIENCE = 40.0


class Program:
    """A process that runs one of the modules beside this file; what it says goes to a log."""

    def __init__(
        self,
        log: Path,
        url: str,
        ledger: Path,
        module: str,
        *arguments: str,
        before: Sequence[str] = (),
        packages: Sequence[Path] = (),
    ) -> None:
        self._log = log
        environment = os.environ | {
            "FAULT_URL": url,
            "FAULT_LEDGER": str(ledger),
            "PYTHONPATH": os.pathsep.join([*map(str, packages), str(HERE), str(HERE.parent)]),
        }
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*before, sys.executable, "-m", module, *arguments], env=environment, stdout=output, stderr=output
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def name(self) -> str:
        return f"{self._log.stem} (process {self.pid})"

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit status."""
        return self._process.wait(timeout)

    def memory(self) -> int:
        """How many bytes it has in memory."""
        return int(psutil.Process(self.pid).memory_info().rss)


class Fleet:
    """Starts programs on one store and ends them all at the end."""

    def __init__(self, folder: Path, url: str, ledger: Path) -> None:
        self.url = url
        self.ledger = ledger
        self._folder = folder
        self._programs: list[Program] = []

    def worker(self, *, before: Sequence[str] = (), **options: Any) -> Program:
        """A worker; `options` are those of `Worker` and of `fault_worker`. It works within a second or so."""
        told = {"lease": 1.5, "poll": 0.5, "concurrency": 4, "shutdown_timeout": 10.0} | options
        return self.program("fault_worker", json.dumps(told), before=before)

    def program(
        self, module: str, *arguments: str, before: Sequence[str] = (), packages: Sequence[Path] = (), url: str = ""
    ) -> Program:
        """Run a module beside this file, on the fleet's store or another, with these folders of packages before all others."""
        log = self._folder / f"{module}-{len(self._programs)}.log"
        started = Program(log, url or self.url, self.ledger, module, *arguments, before=before, packages=packages)
        self._programs.append(started)
        return started

    def command(self, *arguments: str, app: str = "fault_app:app") -> None:
        """Run a command of `rota` on the programs' app, to its end; it must not fail."""
        told = self.program("rota", *arguments, "--app", app)
        assert told.wait() == 0, told.log

    def close(self) -> None:
        for program in self._programs:
            if program.alive:
                program.send(signal.SIGCONT)
                program.kill()
        print(self.logs())  # shown where a test fails

    def logs(self) -> str:
        return "\n".join(f"-- {program.name}\n{program.log}" for program in self._programs)
