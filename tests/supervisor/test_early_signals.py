"""Signals that come while a process still loads what it needs to heed them."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from rota import Rota
from supervisor.conftest import Supervised, Yard

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


@pytest.mark.parametrize("at", ["rota.cli.group", "rota.cli.worker", "rota.supervisor.supervisor"])
def test_a_hang_up_ends_no_supervisor(yard: Yard, app: Rota, early: Early, at: str) -> None:
    parent = early("--processes", "2", number=signal.SIGHUP, at=at)
    parent.said("rolling restart: done")
    yard.working(2)
    assert parent.stopped() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_a_terminal_sends_to_all_a_worker_leaves_to_its_supervisor(
    yard: Yard, app: Rota, early: Early, number: int
) -> None:
    parent = early("--processes", "2", number=number, at="rota.cli.group", within="child")
    yard.working(2)
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
