"""What systems differ in: forks after use, and signals that some of them lack."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from kit import Fleet

from accounts import account
from rota import Rota
from rota.model import State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

UNIX_ONLY = ["SIGALRM", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "setitimer", "alarm", "pause"]


def test_parent_and_child_both_enqueue_after_a_fork(app: Rota, fleet: Fleet) -> None:
    forking = fleet.program("fault_fork")
    assert forking.wait() == 0, forking.log
    assert "Traceback" not in forking.log
    assert app.stats().states[State.QUEUED] == 80


def test_a_worker_runs_on_a_system_without_the_signals_of_unix(app: Rota, fleet: Fleet, ledger: Path) -> None:
    worker = fleet.worker(without=UNIX_ONLY)
    jobs = [app.named(task).enqueue(0.1) for task in ("nap", "anap", "hog_isolated")]
    overrun = app.named("limited").using(max_attempts=1).enqueue(2.0)
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    eventually(lambda: overrun.refresh().status is State.FAILED)
    worker.send(signal.SIGINT)
    assert worker.wait() == 0, worker.log
    account(app, [*(job.id for job in jobs), overrun.id], ledger)
