"""Several processes under one: how they begin, share the work and end."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest

from accounts import account, lines, starts
from rota import Rota, State
from supervisor.conftest import PATIENCE, Yard
from working import eventually

both = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@both
def test_so_many_workers_share_the_jobs_and_end_together(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "3", "--name", "front", "--concurrency", "2")
    pids = yard.working(3)
    assert sorted(row.name for row in app.workers()) == ["front-1", "front-2", "front-3"]
    assert sorted(pids) == sorted(process.pid for process in parent.processes())
    jobs = app.named("until").enqueue_many([(str(yard.folder / "go"),)] * 6)
    eventually(lambda: starts(yard.ledger) == 6)
    assert {line.pid for line in lines(yard.ledger)} == set(pids)
    (yard.folder / "go").touch()
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    assert parent.stopped() == 0
    assert app.workers() == []
    assert parent.log.rstrip().endswith("all workers have ended")
    assert account(app, [job.id for job in jobs], yard.ledger).repeated == {}


def test_a_task_that_no_worker_knows_is_looked_at_now_and_then_and_holds_nobody_up(yard: Yard, app: Rota) -> None:
    good, odd, more = app.named("quick").enqueue(), app.send("no.such.task"), app.named("quick").enqueue()
    parent = yard.start("--processes", "2")
    assert {job.wait(PATIENCE).status for job in (good, more)} == {State.SUCCEEDED}
    eventually(lambda: odd.refresh().row.excused > 1)
    assert (odd.status, odd.attempt) == (State.SCHEDULED, 0)
    parent.said("handed back no.such.task")
    assert parent.stopped() == 0


def test_the_supervisor_runs_none_of_the_apps_code_and_stays_small(yard: Yard) -> None:
    parent = yard.start("--processes", "1")
    yard.working(1)
    assert parent.pid not in yard.loaded()
    assert not any(".db" in file.path for file in psutil.Process(parent.pid).open_files())
    assert psutil.Process(parent.pid).memory_info().rss < 45_000_000


def test_its_lines_are_objects_where_the_workers_are(yard: Yard) -> None:
    parent = yard.start("--processes", "1", "--log-format", "json")
    yard.working(1)
    assert parent.stopped() == 0
    told = [json.loads(line) for line in parent.log.splitlines()]
    first = next(line for line in told if line["message"].startswith("supervisor (pid"))
    assert {"at", "level", "message", "logger"} == set(first)
    hello = next(line for line in told if line["message"].startswith("worker "))
    assert f"(pid {hello['pid']}) on " in hello["message"]
    assert hello["process"] == str(hello["pid"])  # for lack of a name
    assert told[-1]["message"] == "all workers have ended"


def test_each_line_says_which_process_wrote_it(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "2", "--name", "front")
    yard.working(2)
    called = {"front-1", "front-2"}
    jobs = app.named("quick").enqueue_many([()] * 5)
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    assert parent.stopped() == 0
    for said in (r"worker .* serves all queues", r"ran quick  \[", "stopping: 0 running", "stopped"):
        found = set(re.findall(rf"^\d\d:\d\d:\d\d \[(.+?)\] {said}", parent.log, re.MULTILINE))
        assert found
        assert found == called or (found < called and said.startswith("ran"))
    assert f" [{parent.pid}]" not in parent.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_jobs_may_end_within_the_time_of_a_stop(yard: Yard, app: Rota, number: int) -> None:
    job = app.named("until").enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "2")
    eventually(lambda: starts(yard.ledger) == 1)
    parent.send(number)
    parent.said(r"stopping: 1 running")
    (yard.folder / "go").touch()
    assert parent.wait() == 0
    assert (job.refresh().status, job.attempt) == (State.SUCCEEDED, 1)


def test_a_signal_to_the_whole_group_counts_once(yard: Yard, app: Rota) -> None:
    """As a terminal sends Ctrl+C: the children have it from the terminal and from the supervisor."""
    job = app.named("until").enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "2")
    yard.working(2)
    eventually(lambda: starts(yard.ledger) == 1)
    for process in (psutil.Process(parent.pid), *parent.processes()):
        process.send_signal(signal.SIGINT)
    parent.said(r"stopping: \d running", times=2)
    (yard.folder / "go").touch()
    assert parent.wait() == 0
    assert (job.refresh().status, job.attempt) == (State.SUCCEEDED, 1)
    assert "Traceback" not in parent.log


def test_a_job_due_in_an_hour_keeps_nobody(yard: Yard, app: Rota) -> None:
    job = app.named("quick").using(delay=3600).enqueue()
    parent = yard.start("--processes", "2", "--shutdown-timeout", "10m")
    yard.working(2)
    assert parent.stopped() == 0
    assert job.refresh().status is State.SCHEDULED


def test_a_second_signal_hands_back_at_once(yard: Yard, app: Rota) -> None:
    jobs = app.named("until").enqueue_many([(str(yard.folder / "never"),)] * 2)
    parent = yard.start("--processes", "2", "--concurrency", "1", "--shutdown-timeout", "10m")
    eventually(lambda: starts(yard.ledger) == 2)
    parent.send(signal.SIGTERM)
    parent.said("stopping 2 workers")
    parent.send(signal.SIGTERM)
    assert parent.wait() == 0
    assert [(job.refresh().status, job.attempt) for job in jobs] == [(State.QUEUED, 0)] * 2


IMPATIENT = """
import logging
import sys

from rota.supervisor import Plan, Supervisor

logging.basicConfig(level="INFO")
plan = Plan([sys.executable, "-m", "rota", *sys.argv[1:]], processes=2, shutdown_timeout=0, grace=3)
sys.exit(Supervisor(plan).run())
"""


@pytest.mark.slow
def test_a_process_that_does_not_end_in_time_is_killed(yard: Yard, app: Rota) -> None:
    (yard.folder / "impatient.py").write_text(IMPATIENT)
    parent = yard.start(module="impatient")
    [first, _] = yard.working(2)
    os.kill(first, signal.SIGSTOP)
    assert parent.stopped() == 1
    assert f"(pid {first}) has not ended in time and is killed" in parent.log
    assert parent.log.count("has not ended in time") == 1


LATE = """
import logging
import sys

from rota.supervisor import Plan, Supervisor

logging.basicConfig(level="INFO")
sys.exit(Supervisor(Plan(["./begin", *sys.argv[1:]])).run())
"""


def test_what_the_system_cannot_start_is_tried_again(yard: Yard, app: Rota) -> None:
    """As while a deploy has taken away the interpreter, or where there are too many processes."""
    (yard.folder / "late.py").write_text(LATE)
    parent = yard.start(module="late")
    parent.said("worker 1 could not be started; next try in 1 s: .*No such file or directory")
    (yard.folder / "begun").write_text(f'#!/bin/sh\nexec {sys.executable} -m rota "$@"\n')
    (yard.folder / "begun").chmod(0o755)
    (yard.folder / "begun").rename(yard.folder / "begin")
    yard.working(1)
    assert parent.stopped() == 0


@pytest.mark.slow
def test_children_do_not_outlive_a_supervisor_that_is_killed(yard: Yard, app: Rota) -> None:
    job = app.named("until").enqueue(str(yard.folder / "never"))
    parent = yard.start("--processes", "2", "--shutdown-timeout", "0.2s")
    yard.working(2)
    eventually(lambda: starts(yard.ledger) == 1)
    children = parent.processes()
    parent.send(signal.SIGKILL)
    assert psutil.wait_procs(children, timeout=30)[1] == []
    assert parent.log.count("the supervisor is gone: this worker stops") == 2
    assert app.workers() == []
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


def test_a_process_that_is_still_loading_ends_with_its_supervisor(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os, time\nfrom pathlib import Path\nPath('begun').touch()\ntime.sleep(3600)\n")
    parent = yard.start("--processes", "1", app="slow:app")
    eventually((tmp_path / "begun").exists)
    children = parent.processes()
    parent.send(signal.SIGKILL)
    assert psutil.wait_procs(children, timeout=30)[1] == []


def test_a_stop_does_not_wait_for_what_is_still_loading(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import os, time\nfrom pathlib import Path\nPath('begun').touch()\ntime.sleep(3600)\n")
    parent = yard.start("--processes", "1", app="slow:app")
    eventually((tmp_path / "begun").exists)
    assert parent.stopped() == 0
    assert "Traceback" not in parent.log


def test_programs_that_jobs_start_are_no_children_of_the_supervisor(yard: Yard, app: Rota, tmp_path: Path) -> None:
    told = tmp_path / "told"
    (tmp_path / "tell.py").write_text(
        "import os, subprocess, sys\nfrom rota import Rota\napp = Rota(os.environ['SHOP_URL'])\n"
        "@app.task(name='tell')\ndef tell(path: str) -> None:\n"
        '    code = \'import os; print(os.environ.get("ROTA_SUPERVISED"), sorted(os.listdir("/proc/self/fd")))\'\n'
        "    said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout\n"
        "    open(path, 'w').write(said)\n"
    )
    parent = yard.start("--processes", "1", app="tell:app")
    assert app.named("tell").enqueue(str(told)).wait(30).status is State.SUCCEEDED
    assert told.read_text() == "None ['0', '1', '2', '3']\n"
    assert parent.stopped() == 0
