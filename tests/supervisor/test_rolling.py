"""SIGHUP replaces one process after another, so that they run new code, and there is always somebody at work."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from accounts import account, starts
from rota import Rota, State
from supervisor.conftest import PATIENCE, Yard
from working import eventually

both = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
DONE = "rolling restart: done, every worker is a new process"


def test_one_after_another_is_replaced_while_jobs_run_to_their_end(yard: Yard, app: Rota) -> None:
    go = yard.folder / "go"
    jobs = app.named("until").enqueue_many([(str(go),)] * 3)
    parent = yard.start("--processes", "3", "--concurrency", "1")
    before = yard.working(3)
    eventually(lambda: starts(yard.ledger) == 3)
    parent.send(signal.SIGHUP)
    parent.said(DONE)
    assert re.findall(r"worker (\d) \(pid \d+\): another process", parent.log) == ["1", "2", "3"]
    go.touch()
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    assert not {*before} & {*yard.working(3)}
    assert {job.attempt for job in jobs} == {1}
    assert parent.stopped() == 0


def test_the_new_processes_run_the_new_code_also_behind_a_link_that_was_moved(yard: Yard, app: Rota, tmp_path: Path) -> None:
    for release in ("one", "two"):
        (tmp_path / release).mkdir()
        text = (tmp_path / "shop.py").read_text().replace('name="quick"', f'name="{release}"')
        (tmp_path / release / "release.py").write_text(text)
    (tmp_path / "current").symlink_to("one")
    parent = yard.start("--processes", "2", "--app-dir", "current", app="release:app")
    yard.working(2)
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "current")
    parent.send(signal.SIGHUP)
    parent.said(DONE)
    assert app.send("two").wait(30).status is State.SUCCEEDED
    assert parent.stopped() == 0


@pytest.mark.slow
def test_a_new_process_that_does_not_start_ends_it_and_the_others_go_on(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "2")
    before = yard.working(2)
    good = (yard.folder / "shop.py").read_text()
    (yard.folder / "shop.py").write_text(good + "\nthis is no Python\n")
    parent.send(signal.SIGHUP)
    parent.said(r"rolling restart: worker 1 \(pid \d+\) ended with status 1 before it worked, so no more are replaced")
    assert sorted(process.pid for process in parent.processes()) == sorted(before)
    assert parent.log.count("SyntaxError: ") == 1
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    (yard.folder / "shop.py").write_text(good)
    parent.send(signal.SIGHUP)
    parent.said(DONE)
    assert not {*before} & {*yard.working(2)}
    assert parent.stopped() == 0


def test_a_stop_during_it_ends_all(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "3")
    yard.working(3)
    parent.send(signal.SIGHUP)
    parent.said("another process takes its place")
    children = parent.processes()
    assert parent.stopped() == 0
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert app.workers() == []


def test_two_in_a_row_end_with_the_newest_code_everywhere(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "2")
    yard.working(2)
    parent.send(signal.SIGHUP)
    parent.said("another process takes its place")
    (yard.folder / "shop.py").write_text((yard.folder / "shop.py").read_text().replace('name="quick"', 'name="newest"'))
    parent.send(signal.SIGHUP)
    parent.said(DONE)
    eventually(
        lambda: [row.tasks for row in app.workers()] == [["die", "leave", "newest", "single", "until"]] * 2, within=PATIENCE
    )
    assert parent.stopped() == 0


@pytest.mark.slow
@both
def test_jobs_that_come_in_all_the_while_run_once_each_and_no_worker_is_missing(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "2")
    yard.working(2)
    parent.send(signal.SIGHUP)
    ids: list[str] = []
    fewest = 2

    def enqueued_until_done() -> bool:
        nonlocal fewest
        fewest = min(fewest, len(app.workers()))
        ids.extend(job.id for job in app.named("quick").enqueue_many([()] * 20))
        return DONE in parent.log

    eventually(enqueued_until_done, within=PATIENCE)
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    done = account(app, ids, yard.ledger)
    assert (done.starts, done.repeated, fewest) == (len(ids), {}, 2)
    assert parent.stopped() == 0


@pytest.mark.slow
def test_four_deploys_during_one_job_use_up_no_attempt(yard: Yard, app: Rota) -> None:
    job = app.named("until").using(max_attempts=3).enqueue(str(yard.folder / "go"))
    parent = yard.start("--processes", "1", "--shutdown-timeout", "0.1s")
    for deploy in range(1, 5):
        eventually(lambda deploy=deploy: starts(yard.ledger) == deploy, within=PATIENCE)
        parent.send(signal.SIGHUP)
        parent.said(DONE, times=deploy)
    eventually(lambda: starts(yard.ledger) == 5, within=PATIENCE)
    (yard.folder / "go").touch()
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert (job.attempt, job.row.excused) == (1, 4)
    assert parent.stopped() == 0


@pytest.mark.slow
def test_a_limit_has_room_again_for_what_a_restart_handed_back(yard: Yard, app: Rota) -> None:
    jobs = app.named("single").enqueue_many([(str(yard.folder / "go"),)] * 2)
    parent = yard.start("--processes", "2", "--shutdown-timeout", "0.1s")
    eventually(lambda: starts(yard.ledger) == 1)
    yard.working(2)
    parent.send(signal.SIGHUP)
    parent.said(DONE)
    eventually(lambda: starts(yard.ledger) == 2, within=PATIENCE)
    (yard.folder / "go").touch()
    assert [(job.wait(PATIENCE).status, job.refresh().attempt) for job in jobs] == [(State.SUCCEEDED, 1)] * 2
    assert parent.stopped() == 0
