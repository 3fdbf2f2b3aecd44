"""As the first process of a container, and on a system that lacks what only Unix has."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from accounts import starts
from rota import Rota, State
from supervisor.conftest import PATIENCE, Supervised, Yard
from working import eventually

ORPHANS = """
import os
import subprocess
import sys

from rota import Rota

app = Rota(os.environ["SHOP_URL"])


@app.task(name="orphan", retry=0)
def orphan(path: str) -> None:
    # A program that starts another and ends: what it leaves behind becomes a child of process 1.
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', f'open({sys.argv[1]!r}, \\"w\\")'])"
    subprocess.run([sys.executable, "-c", code, path], check=True)
"""

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a namespace of processes")
NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")


def first_process(started: Supervised) -> psutil.Process:
    """The one that is process 1 in its namespace."""
    [child] = eventually(lambda: psutil.Process(started.pid).children())
    return child


@root
def test_as_process_one_it_heeds_signals_and_leaves_no_zombies(yard: Yard, app: Rota) -> None:
    (yard.folder / "orphans.py").write_text(ORPHANS)
    outer = yard.start("--processes", "2", app="orphans:app", before=NAMESPACE)
    eventually(lambda: len(app.workers()) == 2, within=PATIENCE)
    supervisor = first_process(outer)
    orphan = yard.folder / "orphan"
    assert app.named("orphan").enqueue(str(orphan)).wait(30).status is State.SUCCEEDED
    eventually(orphan.exists)
    eventually(lambda: [child.status() for child in supervisor.children()].count(psutil.STATUS_ZOMBIE) == 0)
    eventually(lambda: len(supervisor.children()) == 2)
    supervisor.send_signal(signal.SIGHUP)
    outer.said("rolling restart: done")
    supervisor.send_signal(signal.SIGTERM)
    assert outer.wait() == 0
    assert app.workers() == []


@root
def test_when_process_one_is_killed_nothing_is_left(yard: Yard, app: Rota) -> None:
    outer = yard.start("--processes", "2", before=NAMESPACE)
    eventually(lambda: len(app.workers()) == 2, within=PATIENCE)
    supervisor = first_process(outer)
    children = supervisor.children()
    supervisor.kill()
    outer.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []


ELSEWHERE = """
import os
import signal
import sys

for name in ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "setitimer"):
    delattr(signal, name)
for name in ("fork", "forkpty", "killpg", "getppid", "setsid", "waitid", "WNOWAIT", "getuid", "geteuid", "register_at_fork"):
    delattr(os, name)
sys.path.insert(0, os.getcwd())
from rota.cli import main

main()
"""


def test_it_runs_on_a_system_without_the_signals_and_calls_of_unix(yard: Yard, app: Rota, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    parent = yard.start("--processes", "2", before=(), module="elsewhere")
    first = yard.working(2)
    psutil.Process(first[0]).kill()
    eventually(lambda: len(app.workers()) == 2 and first[0] not in [row.pid for row in app.workers()], within=PATIENCE)
    job = app.named("quick").enqueue()
    assert job.wait(30).status is State.SUCCEEDED
    assert starts(yard.ledger) == 1
    parent.send(signal.SIGINT)
    assert parent.wait() == 0
    assert "Traceback" not in parent.log
