"""Programs with a worker beside them, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from working import eventually

HERE = Path(__file__).parent
PATIENCE = 30.0


class Program:
    """A process that is at work. What it writes to either stream is in `said`."""

    def __init__(self, command: list[str], url: str, said: Path) -> None:
        self._said = said
        environment = os.environ | {"BESIDE_URL": url, "PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": "1"}
        with said.open("wb") as output:
            self.process = subprocess.Popen(command, env=environment, cwd=said.parent, stdout=output, stderr=output)

    @property
    def said(self) -> str:
        return self._said.read_text()

    def lines(self) -> list[str]:
        """What Rota wrote by itself."""
        return [line for line in self.said.splitlines() if line.startswith("rota: ")]

    def has_said(self, text: str) -> None:
        eventually(lambda: text in self.said or not self._runs())
        assert text in self.said

    def get(self, path: str) -> str:
        """What its web server answers."""
        port = eventually(lambda: re.search(r"(?:127\.0\.0\.1:|port=)(\d+)", self.said))[1]

        def answer() -> str:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as page:
                return str(page.read().decode())

        return eventually(answer)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit status; a negative one is the signal that it died of."""
        return self.process.wait(PATIENCE)

    def _runs(self) -> bool:
        return self.process.poll() is None


class Programs:
    """Starts programs on one store, and ends at the end what still runs."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._started: list[Program] = []

    def python(self, *arguments: str) -> Program:
        started = Program([sys.executable, *arguments], self.url, self._folder / f"said-{len(self._started)}.txt")
        self._started.append(started)
        return started

    def script(self, name: str, *arguments: str) -> Program:
        return self.python(str(HERE / name), *arguments)

    def close(self) -> None:
        for program in self._started:
            if program.process.poll() is None:
                program.process.kill()
            program.process.wait(PATIENCE)
            print(f"-- {program.process.args}\n{program.said}")  # shown where a test fails
