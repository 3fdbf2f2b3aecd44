"""Machines whose clocks are wrong: on Postgres and Redis the server's clock decides what is due and whose lease ran out."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import starts
from rota import Rota
from rota.model import State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.mark.parametrize("shared_url", ["postgres", "redis"], indirect=True)
def test_a_machine_that_is_ahead_or_behind_starts_nothing_early_and_takes_no_ones_job(
    app: Rota, fleet: Fleet, ledger: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    running = app.named("until").enqueue(str(go))
    fleet.worker(lease=30, concurrency=1)
    eventually(lambda: starts(ledger, running.id) == 1)
    fleet.worker(name="ahead", ahead=600, lease=1.0)
    fleet.worker(name="behind", ahead=-600, lease=1.0)
    later = app.named("quick").using(delay=300).enqueue()
    soon = app.named("quick").using(delay=0.5).enqueue()

    assert soon.wait(PATIENCE).status is State.SUCCEEDED
    assert (soon.row.claimed_at or 0) >= soon.row.due
    seen = eventually(lambda: leases(app) if len(leases(app)) == 3 else None)
    # When both have renewed their lease for a second, they have looked for lost and for due jobs as well.
    eventually(lambda: all(leases(app)[name] > seen[name] + 1_000_000 for name in ("ahead", "behind")))
    assert (later.refresh().status, later.row.claim) == (State.SCHEDULED, 0)
    assert (running.refresh().status, running.row.claim, starts(ledger, running.id)) == (State.RUNNING, 1, 1)
    go.touch()
    assert (running.wait(PATIENCE).status, running.attempt) == (State.SUCCEEDED, 1)


def leases(app: Rota) -> dict[str, int]:
    """Until when each worker's lease lasts, by its name."""
    return {worker.name: worker.lease_until for worker in app.workers()}
