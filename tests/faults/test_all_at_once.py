"""All that moves jobs moves them at once: none is lost, and nobody stands in another's way for ever."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Limit, Move, Rota
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
    said_by_workers = [line for line in fleet.logs().splitlines() if "WARNING" in line or "ERROR" in line]
    assert [line for line in said_by_workers if "no job is on queue" not in line] == []  # all of one may be cancelled at a time


LIMITED = ("pair", "shared one", "shared two", "tenant")


@pytest.mark.parametrize("shared_url", ["postgres"], indirect=True)
def test_limits_edits_deletes_pauses_and_lost_workers_go_together_too(
    app: Rota, fleet: Fleet, postgres_server: PostgresServer, ledger: Path
) -> None:
    """Places are taken and given back by claims, ends, reaps and changes at once, each of several jobs and several rooms."""
    log = postgres_server.directory / "log"
    said = log.stat().st_size
    app.store.open()
    for queue in QUEUES:
        for task in LIMITED:
            app.named(task).using(queue=queue).enqueue_many([("a",), ("b",), ("c",)] * 10 if task == "tenant" else [()] * 30)
    options = json.dumps({"lease": 1.5, "poll": 0.5, "concurrency": 6})
    workers = [fleet.program("fault_limited", options) for _ in range(3)]
    kept = {job.id for job in app.jobs(limit=5_000) if job.queue in OTHERS}

    def kill(_: Rota) -> None:
        workers.pop(0).kill()
        workers.append(fleet.program("fault_limited", options))

    rounds(fleet.url, ledger, [cancel, retry, edit, delete, resize, pause, reap, kill], number=5, of=len(kept))
    app.resume(CHANGED)
    eventually(lambda: retry(app) or left(app, QUEUES) == 0, within=PATIENCE)  # a lost one may be cancelled late

    done = account(app, list(kept), ledger)
    assert (done.states, done.overlaps) == ({State.SUCCEEDED: len(kept)}, [])
    assert {(room.running, room.held) for room in app.store.rooms()} <= {(0, 0)}
    assert "deadlock" not in log.read_text()[said:]
    assert "ERROR" not in fleet.logs()


@pytest.mark.parametrize("shared_url", ["postgres"], indirect=True)
def test_workers_that_leave_and_are_lost_at_once_do_not_wait_for_each_other(url: str, postgres_server: PostgresServer) -> None:
    """As in every deployment: each gives back places in some rooms, and has all looked at that hold jobs."""
    log = postgres_server.directory / "log"
    said = log.stat().st_size
    many, names = 6, "abcdef"
    together = threading.Barrier(many)
    with ExitStack() as apps:
        each = [apps.enter_context(Rota(url)) for _ in range(many)]
        for app in each:
            app.task(name="build", concurrency=Limit(1, key=lambda tenant: tenant))(lambda tenant: None)

        def work(number: int) -> None:
            app = each[number]
            tenants = random.Random(number).sample(names, len(names))
            for _ in range(30):
                app.named("build").enqueue_many([(tenant,) for tenant in tenants for _ in range(2)])
                row = WorkerRow(new_id(), "w", "h", 1, ["default"], ["build"], 1, (60 if number % 2 else 0) * SECOND, "1")
                app.store.join(row)
                assert app.limiting is not None
                app.store.admit(Ask(row.id, ("default",), 3, 3), app.limiting)
                together.wait()
                if number % 2:
                    app.store.leave(row.id)
                else:
                    app.store.lost(500)

        with ThreadPoolExecutor(many) as pool:
            list(pool.map(work, range(many)))
        assert {room.running for room in each[0].store.rooms()} == {0}
    assert "deadlock" not in log.read_text()[said:]


def edit(app: Rota) -> None:
    app.edit_all(where(("scheduled", "queued", "held")), priority=random.randrange(9))


def delete(app: Rota) -> None:
    app.change_all(Move.DELETE, where(("scheduled", "queued", "held", "succeeded"), queue=CHANGED, task=random.choice(LIMITED)))


def resize(app: Rota) -> None:
    app.set_limit("shared", random.choice([1, 2, 5, None]))
    app.set_limit("concurrency of pair", random.choice([1, 4, None]))


def pause(app: Rota) -> None:
    app.pause(CHANGED, 0.2)


def reap(app: Rota) -> None:
    for _ in range(50):
        app.store.lost(500)


def left(app: Rota, queues: list[str]) -> int:
    """How many jobs of these queues have not succeeded."""
    return sum(count.jobs for count in app.stats().counts if count.queue in queues and count.state is not State.SUCCEEDED)


def rounds(url: str, ledger: Path, doings: list[Callable[[Rota], object]], number: int = ROUNDS, of: int = MANY) -> None:
    """Do each of these so many times, all at once, spread over the time that the jobs take."""

    def go_on(doing: Callable[[Rota], object]) -> None:
        with Rota(url) as app:
            for round_ in range(number):
                begun = 1 + round_ * of // 2 // number
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
    app.change_all(Move.CANCEL, where(("scheduled", "queued", "held", "running"), queue=CHANGED))


def retry(app: Rota) -> None:
    app.change_all(Move.RETRY, where("cancelled", queue=CHANGED))
