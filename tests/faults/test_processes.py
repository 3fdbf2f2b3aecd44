"""What systems differ in: forks after use, and signals that some of them lack."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest
from kit import PATIENCE, Fleet

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


@pytest.mark.parametrize(("task", "kin"), [("split", "nap"), ("asplit", "anap"), ("split_isolated", "hog_isolated")])
def test_a_body_that_comes_back_in_its_fork_too_leaves_no_second_worker(
    app: Rota, fleet: Fleet, ledger: Path, task: str, kin: str
) -> None:
    """It would take jobs out of pipes and off loops that it shares with the worker, and outlive that."""
    worker = fleet.worker(concurrency=1)
    forked = app.named(task).enqueue()
    assert forked.wait(PATIENCE).status is State.SUCCEEDED
    child = forked.result()
    eventually(lambda: ended(child))
    assert "forked, and came back in the child as well" in worker.log
    jobs = app.named(kin).enqueue_many([(0.0,)] * 20)
    eventually(lambda: all(row.state.final for row in app.store.get([job.id for job in jobs])), within=PATIENCE)
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 20}, {})
    assert app.store.attempts(forked.id) == []
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.log


def ended(pid: int) -> bool:
    """Whether the process is gone, or waits only for its parent to look at its status."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_a_worker_runs_on_a_system_without_the_signals_of_unix(app: Rota, fleet: Fleet, ledger: Path) -> None:
    worker = fleet.worker(without=UNIX_ONLY)
    jobs = [app.named(task).enqueue(0.1) for task in ("nap", "anap", "hog_isolated")]
    overrun = app.named("limited").using(max_attempts=1).enqueue(2.0)
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    eventually(lambda: overrun.refresh().status is State.FAILED)
    worker.send(signal.SIGINT)
    assert worker.wait() == 0, worker.log
    account(app, [*(job.id for job in jobs), overrun.id], ledger)


@pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True)
def test_a_program_in_one_archive_runs_its_own_app(url: str, app: Rota, tmp_path: Path) -> None:
    """As `python -m zipapp` makes it, started from elsewhere."""
    job = app.send("ok")
    archive = tmp_path / "shop.pyz"
    with ZipFile(archive, "w") as file:
        file.writestr("shop/__init__.py", "")
        file.writestr("shop/tasks.py", f"from rota import Rota\n\napp = Rota({url!r})\napp.task(name='ok')(lambda: None)\n")
        file.writestr("__main__.py", "from rota.cli import main\n\nmain()\n")
    with subprocess.Popen([sys.executable, archive, "worker", "--app", "shop.tasks:app"], stderr=subprocess.PIPE) as worker:
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=PATIENCE)[1]
    assert worker.returncode == 0, said
