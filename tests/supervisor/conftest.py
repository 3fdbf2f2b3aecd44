"""Supervisors as the command line starts them, with real processes under them, on stores that these can share."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fresh import fresh_url
from rota import Rota
from working import eventually

TESTS = Path(__file__).parents[1]
PATIENCE = 40.0
SHOP = """
import os
import time
from pathlib import Path

from accounts import noted
from rota import Rota, current_job

app = Rota(os.environ["SHOP_URL"])
LEDGER = os.environ["SHOP_LEDGER"]
with open(LEDGER + ".loaded", "a") as told:
    told.write(f"{os.getpid()}\\n")


@app.task(name="quick", retry=0)
def quick() -> None:
    with noted(LEDGER):
        pass


@app.task(name="until", retry=0)
def until(path: str) -> None:
    with noted(LEDGER):
        while not os.access(path, os.F_OK):
            time.sleep(0.01)


@app.task(name="single", retry=0, concurrency=1)
def single(path: str) -> None:
    with noted(LEDGER):
        while not os.access(path, os.F_OK):
            time.sleep(0.01)


@app.task(name="die", retry=0)
def die() -> None:
    with noted(LEDGER):
        os.kill(os.getpid(), 9)


@app.task(name="leave", retry=0)
def leave() -> None:
    with noted(LEDGER):
        os._exit(0)
"""


class Supervised:
    """A `rota worker` with processes under it, or without; what all of them say goes to one log."""

    def __init__(
        self, folder: Path, url: str, *options: str, app: str, before: tuple[str, ...], module: str, **more: str
    ) -> None:
        self._log = folder / f"worker-{len(list(folder.glob('worker-*.log')))}.log"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("ROTA_", "NOTIFY_", "WATCHDOG_"))}
        environment |= {
            "SHOP_URL": url,
            "SHOP_LEDGER": str(folder / "ledger"),
            "PYTHONPATH": str(TESTS),
            "PWD": str(folder),
        } | more
        command = [*before, sys.executable, "-m", module, "worker", "--app", app, "--lease", "5s", "--poll", "1s", *options]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def processes(self) -> list[psutil.Process]:
        """Those under it that have not ended."""
        children = psutil.Process(self.pid).children(recursive=True)
        return [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]

    def said(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until it has said this so often, and answer what was found."""
        return eventually(lambda: len(found := re.findall(pattern, self.log)) >= times and found, within=PATIENCE)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, timeout: float = PATIENCE) -> int:
        return self._process.wait(timeout)

    def stopped(self) -> int:
        """The exit status after a SIGTERM."""
        self.send(signal.SIGTERM)
        return self.wait()


class Yard:
    """Starts workers in a folder with an app, and ends all that is left of them."""

    def __init__(self, folder: Path, url: str, app: Rota) -> None:
        self.folder = folder
        self.url = url
        self.app = app
        self.ledger = folder / "ledger"
        self._started: list[Supervised] = []
        (folder / "shop.py").write_text(SHOP)

    def start(
        self, *options: str, app: str = "shop:app", before: tuple[str, ...] = (), module: str = "rota", **more: str
    ) -> Supervised:
        started = Supervised(self.folder, self.url, *options, app=app, before=before, module=module, **more)
        self._started.append(started)
        return started

    def working(self, number: int) -> list[int]:
        """Wait until exactly so many workers are known to the store, and answer their process ids."""
        return eventually(lambda: len(rows := self.app.workers()) == number and [row.pid for row in rows], within=PATIENCE)

    def loaded(self) -> list[int]:
        """The ids of the processes that loaded the app."""
        return [int(line) for line in Path(f"{self.ledger}.loaded").read_text().split()]

    def close(self) -> None:
        for each in self._started:
            left = [psutil.Process(each.pid), *each.processes()] if each.alive else []
            for process in left:
                process.kill()
            if each.alive:
                each.wait()
            print(each.log)  # shown where a test fails


@pytest.fixture(params=["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def app(url: str) -> Iterator[Rota]:
    with Rota(url) as app:
        app.store  # the tables are made before a worker starts
        yield app


@pytest.fixture
def yard(tmp_path: Path, url: str, app: Rota) -> Iterator[Yard]:
    yard = Yard(tmp_path, url, app)
    try:
        yield yard
    finally:
        yard.close()
