"""What the tests of the command line share: commands run in this process or in one of their own, on stores with some jobs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fresh import fresh_url
from rota import Abandon, Job, Rota, current_job
from rota.cli.group import rota

SHOP = """
import logging
import os
import time
from rota import Rota, current_job

app = Rota()

@app.task
def greet(name: str) -> None:
    logging.getLogger("shop").info("hello, %s", name)

@app.task(retry=0.01, max_attempts=2)
def broken() -> None:
    raise ValueError("it broke")

@app.task
def slow(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not current_job().should_stop:
        time.sleep(0.01)
"""


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty store that several processes can share, of each kind."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def shop(url: str) -> Iterator[Shop]:
    """An app with jobs in several states."""
    made = Shop(url)
    yield made
    made.app.close()


class Shop:
    """Three jobs that were run, one each that waits, is scheduled and is cancelled."""

    def __init__(self, url: str) -> None:
        self.app = app = Rota(url)

        @app.task(name="shop.greet", queue="mail", keep_result=True)
        def greet(name: str, punctuation: str = "!") -> str:
            current_job().progress(1, 2, "half")
            return f"hello, {name}{punctuation}"

        @app.task(name="shop.bill", queue="bills")
        def bill(order: int) -> None:
            raise Abandon(f"order {order} was refunded")

        self.greet, self.bill = greet, bill
        self.greeted: Job[Any] = greet.enqueue("Ada", punctuation="?")
        self.refused: list[Job[Any]] = [bill.enqueue(1), bill.enqueue(2)]
        app.drain()
        self.waiting: Job[Any] = greet.enqueue("Bob")
        self.later: Job[Any] = greet.using(delay=3600, key="later").enqueue("Cid")
        self.cancelled: Job[Any] = greet.using(delay=3600).enqueue("Dan")
        self.cancelled.cancel()


@pytest.fixture
def call(url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command on the store, in this process. Its tables are there."""
    with Rota(url) as app:
        app.store.open()
    monkeypatch.setenv("ROTA_URL", url)
    monkeypatch.delenv("ROTA_APP", raising=False)
    return Call()


class Call:
    """Runs commands. They write to a pipe, as far as they can tell."""

    def __call__(self, *args: str, status: int = 0, input: str | None = None) -> str:
        """What it wrote to its standard output; its exit status must be `status`."""
        result = self.result(*args, input=input)
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result.stdout

    def json(self, *args: str, status: int = 0) -> Any:
        return json.loads(self(*args, "--json", status=status))

    def result(self, *args: str, input: str | None = None) -> Result:
        return CliRunner().invoke(rota, list(args), input=input, prog_name="rota")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with an app in `shop.py`, on the store of `ROTA_URL`."""
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "rota", *args]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change a command's behaviour."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "PYTHONIO", "NO_COLOR", "LC_"))}
    return ours | more


def run(*args: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, to its end."""
    made = environment() if env is None else dict(env)
    return subprocess.run(command(*args), cwd=cwd, env=made, capture_output=True, text=True, timeout=timeout, check=False)


def on_terminal(*args: str, cwd: Path, env: dict[str, str], columns: int, status: int = 0) -> str:
    """What a command writes to a terminal of this width; its exit status must be `status`."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*args), cwd=cwd, env=env | {"COLUMNS": str(columns)}, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == status, written
    return written.decode()
