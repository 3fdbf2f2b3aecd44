"""Workers that are held up, by the system or by their own bodies, keep their jobs as long as they can be heard of."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import account, ends, starts
from rota import Rota
from rota.model import State
from working import eventually

pytestmark = pytest.mark.slow


@pytest.mark.timeout(60)
@pytest.mark.parametrize("task", ["until", "grumble"])
def test_a_worker_that_wakes_after_its_lease_changes_nothing_and_goes_on(
    app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path, task: str
) -> None:
    go = tmp_path / "go"
    job = app.named(task).enqueue(str(go))
    zombie = fleet.worker()
    eventually(lambda: starts(ledger) == 1)
    zombie.send(signal.SIGSTOP)
    other = fleet.worker()
    eventually(lambda: starts(ledger) == 2)
    go.touch()
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    recorded = job.refresh().row
    other.send(signal.SIGTERM)
    assert other.wait() == 0

    zombie.send(signal.SIGCONT)
    eventually(lambda: ends(ledger) == 2)
    eventually(lambda: "lease" in zombie.log and "lost" in zombie.log)
    more = app.named("quick").enqueue_many([()] * 20)
    for each in more:
        assert each.wait(PATIENCE).status is State.SUCCEEDED
    assert job.refresh().row == recorded
    assert recorded.worker not in {worker.id for worker in app.workers()}
    zombie.send(signal.SIGTERM)
    assert zombie.wait() == 0
    done = account(app, [job.id, *(each.id for each in more)], ledger)
    assert done.repeated == {job.id: 2}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("task", ["nap", "anap"])
def test_a_body_of_many_leases_runs_once(app: Rota, fleet: Fleet, ledger: Path, task: str) -> None:
    jobs = app.named(task).enqueue_many([(3.5,)] * 2)
    for _ in range(2):
        fleet.worker(lease=1.0)
    for job in jobs:
        assert job.wait(PATIENCE).status is State.SUCCEEDED
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.starts, done.repeated) == (2, {})


@pytest.mark.timeout(60)
def test_a_body_that_lets_no_other_thread_run_may_lose_its_lease_and_then_does_not_count(
    app: Rota, fleet: Fleet, ledger: Path
) -> None:
    job = app.named("hog").enqueue(4.0)
    first = fleet.worker(lease=1.0)
    eventually(lambda: starts(ledger) == 1)
    second = fleet.worker(lease=1.0)
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    eventually(lambda: ends(ledger) == starts(ledger) == 2)
    eventually(lambda: "lost" in first.log)
    for worker in (first, second):
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert (job.refresh().attempt, job.status) == (2, State.SUCCEEDED)
    account(app, [job.id], ledger)


@pytest.mark.timeout(60)
def test_an_isolated_body_that_lets_no_other_thread_run_keeps_its_lease(app: Rota, fleet: Fleet, ledger: Path) -> None:
    job = app.named("hog_isolated").enqueue(3.2)
    for _ in range(2):
        fleet.worker(lease=1.0)
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    assert account(app, [job.id], ledger).starts == 1
