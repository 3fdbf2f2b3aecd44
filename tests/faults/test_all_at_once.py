"""All that moves jobs moves them at once: none is lost, and nobody stands in another's way for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Move, Rota
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, Ended, Failed, Failure, State, WorkerRow
from rota.operate import where
from servers import PostgresServer
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MANY, WORKERS, ROUNDS = 10_000, 8, 10
CHANGED, *OTHERS = QUEUES = [f"q{number}" for number in range(5)]
"""What is done by hand concerns the jobs of the first queue."""


def test_due_jobs_inserts_purges_cancels_and_retries_in_bulk_go_together(
    app: Rota, fleet: Fleet, postgres_server: PostgresServer, ledger: Path
) -> None:
    """No lock is waited for in a circle: Postgres would end one of those who wait, after a second, and say so in its log."""
    jobs = [
        job
        for queue in QUEUES
        for job in app.named("quick").using(queue=queue, delay=2).enqueue_many([()] * (MANY // len(QUEUES)))
    ]
    log = postgres_server.directory / "log"
    said = log.stat().st_size
    for _ in range(WORKERS):
        fleet.worker(queues=QUEUES, lease=30, level="WARNING")
    rounds(fleet.url, ledger, [insert_and_fail, purge, cancel, retry])
    eventually(lambda: left(app, OTHERS) == 0, within=PATIENCE)
    app.change_all(Move.RETRY, where("cancelled"))
    eventually(lambda: left(app, QUEUES) == 0, within=PATIENCE)

    done = account(app, [job.id for job in jobs], ledger)
    assert done.states == {State.SUCCEEDED: MANY}
    assert done.overlaps == []
    assert "deadlock" not in log.read_text()[said:]
    assert "WARNING" not in fleet.logs()
    assert "ERROR" not in fleet.logs()


def left(app: Rota, queues: list[str]) -> int:
    """How many jobs of these queues have not succeeded."""
    return sum(count.jobs for count in app.stats().counts if count.queue in queues and count.state is not State.SUCCEEDED)


def rounds(url: str, ledger: Path, doings: list[Callable[[Rota], object]]) -> None:
    """Do each of these so many times, all at once, spread over the time that the jobs take."""

    def go_on(doing: Callable[[Rota], object]) -> None:
        with Rota(url) as app:
            for number in range(ROUNDS):
                begun = 1 + number * MANY // 2 // ROUNDS
                eventually(lambda begun=begun: starts(ledger) >= begun, within=PATIENCE)
                doing(app)

    with ThreadPoolExecutor(len(doings)) as pool:
        list(pool.map(go_on, doings))


def insert_and_fail(app: Rota) -> None:
    """Jobs that come in, one by one and many at once, run elsewhere and fail; they are for the purge."""
    task = app.named("fail").using(queue="elsewhere", max_attempts=1)
    task.enqueue_many([()] * 300)
    task.using(key="the only one").enqueue()
    row = WorkerRow(new_id(), "elsewhere", "h", 1, ["elsewhere"], ["fail"], 1, 60 * SECOND, "1")
    app.store.join(row)
    claims = app.store.claim(Ask(row.id, ("elsewhere",), 500))
    app.store.finish(row.id, [Ended(claim.id, claim.claim, Failed(Failure("E", "m"))) for claim in claims])
    app.store.leave(row.id)


def purge(app: Rota) -> None:
    app.purge(failed=0)


def cancel(app: Rota) -> None:
    app.change_all(Move.CANCEL, where(("scheduled", "queued", "running"), queue=CHANGED))


def retry(app: Rota) -> None:
    app.change_all(Move.RETRY, where("cancelled", queue=CHANGED))
