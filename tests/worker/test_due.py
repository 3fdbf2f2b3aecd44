"""What is not yet due waits in the store and in no worker's hands."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from accounts import account, noted
from rota import Rota
from rota.model import State
from working import eventually, working


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_jobs_due_after_several_leases_are_claimed_once_each_and_not_before(app: Rota, ledger: Path) -> None:
    @app.task
    def quick() -> None:
        with noted(ledger):
            pass

    with ExitStack() as workers:
        for _ in range(4):
            workers.enter_context(working(app, lease=0.8))
        jobs = quick.using(delay=1.7).enqueue_many([()] * 20)
        eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    done = account(app, [job.id for job in jobs], ledger)
    assert (done.starts, done.repeated) == (20, {})
    for job in jobs:
        row = job.refresh().row
        assert row.claim == 1
        assert (row.claimed_at or 0) >= row.due
