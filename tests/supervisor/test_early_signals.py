"""Signals that come while a process still loads what it needs to heed them, and the end of its terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import psutil
import pytest

from rota import Rota, State
from supervisor.conftest import Supervised, Yard
from working import eventually

EARLY = """
import os
import signal
import sys

class Tells:
    def find_spec(self, name, path, target=None):
        if name == os.environ["SHOP_AT"] and ("ROTA_SUPERVISED" in os.environ) == (os.environ["SHOP_IN"] == "child"):
            os.kill(os.getpid(), int(os.environ["SHOP_SIGNAL"]))
        return None

from rota.cli import main
sys.meta_path.insert(0, Tells())
if __name__ == "__main__":
    main()
"""
Early = Callable[..., Supervised]


@pytest.fixture
def early(yard: Yard) -> Early:
    """Start a worker that sends itself a signal when it loads a module."""
    (yard.folder / "early.py").write_text(EARLY)

    def start(*options: str, number: int, at: str, within: str = "parent") -> Supervised:
        return yard.start(*options, module="early", SHOP_AT=at, SHOP_SIGNAL=str(int(number)), SHOP_IN=within)

    return start


@pytest.mark.parametrize("at", ["rota.cli.group", "rota.supervisor.supervisor"])
def test_a_hang_up_ends_no_supervisor(yard: Yard, app: Rota, early: Early, at: str) -> None:
    parent = early("--processes", "1", number=signal.SIGHUP, at=at)
    parent.said("rolling restart: done")
    yard.working(1)
    assert parent.stopped() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_a_terminal_sends_to_all_a_worker_leaves_to_its_supervisor(
    yard: Yard, app: Rota, early: Early, number: int
) -> None:
    parent = early("--processes", "1", number=number, at="rota.cli.group", within="child")
    yard.working(1)
    assert parent.stopped() == 0
    assert "another starts" not in parent.log
    assert "Traceback" not in parent.log


def test_a_supervisor_that_is_interrupted_starts_nothing(yard: Yard, early: Early) -> None:
    parent = early("--processes", "2", number=signal.SIGINT, at="rota.cli.worker")
    assert parent.wait() == 0
    assert "Traceback" not in parent.log


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)])
def test_a_lone_worker_ends_as_ever(yard: Yard, early: Early, number: int, status: int) -> None:
    lone = early(number=number, at="rota.cli.group")
    assert lone.wait() == status
    assert lone.log == ""


ON_A_TERMINAL = """
import os, pty, signal, sys, time
ends, how, *command = sys.argv[1:]
said = os.dup(2)
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(said, 2)
    if how == "nohup":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execvp(command[0], command)
while not os.access(ends, os.F_OK):
    time.sleep(0.02)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.fixture
def seated(yard: Yard) -> Early:
    """Start a worker on a terminal of its own, which ends when the file `end` is there."""

    def start(*options: str, how: str) -> Supervised:
        return yard.start(*options, before=(sys.executable, "-c", ON_A_TERMINAL, str(yard.folder / "end"), how))

    return start


@pytest.mark.parametrize("options", [(), ("--processes", "1")], ids=["lone", "supervised"])
def test_the_end_of_its_terminal_stops_it(yard: Yard, app: Rota, seated: Early, options: tuple[str, ...]) -> None:
    parent = seated(*options, "--shutdown-timeout", "0.1s", how="plain")
    job = app.named("until").enqueue(str(yard.folder / "never"))
    eventually(lambda: job.refresh().status is State.RUNNING)
    (yard.folder / "end").touch()
    assert parent.wait() == 0
    assert (job.refresh().status, job.attempt, app.workers()) == (State.QUEUED, 0, [])


@pytest.mark.parametrize("options", [(), ("--processes", "1")], ids=["lone", "supervised"])
def test_with_nohup_it_goes_on(yard: Yard, app: Rota, seated: Early, options: tuple[str, ...]) -> None:
    parent = seated(*options, how="nohup")
    yard.working(1)
    (yard.folder / "end").touch()
    if options:
        parent.said("rolling restart: done")
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    [worker] = psutil.Process(parent.pid).children()
    worker.send_signal(signal.SIGTERM)
    assert parent.wait() == 0
