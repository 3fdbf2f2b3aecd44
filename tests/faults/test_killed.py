"""Workers that die lose no job: what they held is taken back when their lease ends."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from kit import PATIENCE, Fleet

from accounts import account, lines, starts
from rota import Rota
from rota.model import State
from rota.rules.health import Trouble
from working import eventually

pytestmark = pytest.mark.slow


def finished(app: Rota) -> int:
    states = app.stats().states
    return states[State.SUCCEEDED] + states[State.FAILED] + states[State.CANCELLED]


@pytest.mark.timeout(120)
def test_twenty_kills_during_two_thousand_jobs_lose_none(app: Rota, fleet: Fleet, ledger: Path) -> None:
    chance = random.Random(2)
    jobs = app.named("nap").using(max_attempts=25).enqueue_many([(0.006,)] * 2_000)
    for _ in range(20):
        begun = starts(ledger)
        worker = fleet.worker()
        eventually(lambda begun=begun: starts(ledger) > begun + chance.randrange(60) or finished(app) == 2_000)
        worker.kill()
    fleet.worker()
    eventually(lambda: finished(app) == 2_000, within=PATIENCE)
    done = account(app, [job.id for job in jobs], ledger)
    assert done.states == {State.SUCCEEDED: 2_000}
    assert done.overlaps == []
    # What a body began a second time had ended unrecorded, or was under way, in a process that was killed since.
    by_process = Counter((line.job, line.pid) for line in lines(ledger) if line.word == "start")
    assert set(by_process.values()) == {1}
    lost = Counter(
        {job.id: sum(attempt.outcome == "lost" for attempt in job.attempts()) for job in jobs if job.id in done.repeated}
    )
    assert [job for job, times in done.repeated.items() if times > 1 + lost[job]] == []


@pytest.mark.timeout(60)
def test_a_job_that_kills_its_process_ends_failed_and_the_next_one_runs(app: Rota, fleet: Fleet, ledger: Path) -> None:
    deadly = app.named("die").using(max_attempts=3).enqueue()
    harmless = app.named("quick").enqueue()
    worker = fleet.worker(concurrency=1)

    def supervised() -> bool:
        nonlocal worker
        if not worker.alive:
            assert worker.wait() == -signal.SIGKILL
            worker = fleet.worker(concurrency=1)
        return deadly.refresh().status.final and harmless.refresh().status.final

    eventually(supervised, within=PATIENCE)
    assert (deadly.status, deadly.attempt) == (State.FAILED, 3)
    assert "worker lost" in (deadly.reason or "")
    assert harmless.status is State.SUCCEEDED
    assert starts(ledger, deadly.id) == 3
    assert account(app, [deadly.id, harmless.id], ledger).overlaps == []


@pytest.mark.timeout(60)
def test_a_worker_with_the_same_name_and_process_id_is_another(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    """As a container has it that is started anew under the same host name, with its program as process 1."""
    namespace = ["unshare", "--pid", "--fork", "--kill-child"] if os.geteuid() == 0 else []
    go = tmp_path / "go"
    job = app.named("until").enqueue(str(go))
    first = fleet.worker(name="pod-0", before=namespace)
    eventually(lambda: starts(ledger) == 1)
    first.kill()
    killed = time.monotonic()
    go.touch()
    fleet.worker(name="pod-0", before=namespace)
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert time.monotonic() - killed < 10
    assert (job.attempt, starts(ledger)) == (2, 2)
    assert [attempt.outcome for attempt in job.attempts()] == ["lost"]
    eventually(lambda: len(app.workers()) == 1)


@pytest.mark.timeout(90)
def test_no_job_of_a_living_worker_is_ever_taken_for_lost(app: Rota, fleet: Fleet, ledger: Path) -> None:
    """One looks for lost jobs in a tight loop while four workers take five thousand."""
    jobs = app.named("quick").enqueue_many([()] * 5_000)
    ended = threading.Event()
    lost = []

    def reap() -> None:
        while not ended.is_set():
            lost.extend(app.store.lost(500).lost)

    reaper = threading.Thread(target=reap)
    reaper.start()
    try:
        for _ in range(4):
            fleet.worker(lease=15)
        eventually(lambda: finished(app) == 5_000, within=60)
    finally:
        ended.set()
        reaper.join()
    assert lost == []
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 5_000}, {})
    assert "ERROR" not in fleet.logs()
    assert "WARNING" not in fleet.logs()


@pytest.mark.timeout(60)
def test_the_process_of_an_isolated_body_ends_with_its_worker(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    job = app.named("until_isolated").enqueue(str(tmp_path / "never"))
    worker = fleet.worker()
    eventually(lambda: starts(ledger) == 1)
    child = psutil.Process(lines(ledger)[0].pid)
    worker.kill()
    child.wait(10)
    assert job.refresh().status is State.RUNNING


@pytest.mark.timeout(60)
def test_jobs_come_back_after_a_lease_however_long_they_may_take(app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path) -> None:
    """Until then the worker that holds them shows in the check."""
    go = tmp_path / "go"
    jobs = [app.named(task).enqueue(str(go)) for task in ("short_until", "long_until", "until")]
    first = fleet.worker()
    eventually(lambda: starts(ledger) == 3)
    first.kill()
    [problem] = eventually(app.check)
    assert (problem.trouble, problem.jobs) == (Trouble.LEASE, 3)
    fleet.worker()
    eventually(lambda: starts(ledger) == 6)
    go.touch()
    assert [(job.wait(PATIENCE).status, job.attempt) for job in jobs] == [(State.SUCCEEDED, 2)] * 3
    assert app.check() == []


@pytest.mark.timeout(60)
def test_a_batch_whose_sender_is_killed_half_way_is_not_there(app: Rota, fleet: Fleet, tmp_path: Path) -> None:
    half = tmp_path / "half"
    sender = fleet.program("fault_bulk", "40000", str(half))
    eventually(half.exists)
    sender.kill()
    assert app.stats().counts == []
    assert app.send("quick").refresh().status is State.QUEUED
