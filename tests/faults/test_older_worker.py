"""A worker of an earlier Rota goes on while the tables become those of this one, beside workers of both."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet, Program

from accounts import Line, account, lines
from newer import GO_ON, migrated, newer
from rota import Rota
from rota.model import State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WHEEL = Path(__file__).parents[1] / "releases" / "rota-0.1.0-py3-none-any.whl"
"""The Rota before migrations said whether older processes may go on; `releases/build.py` makes it."""
TASKS = ("pair", "shared one", "shared two", "tenant")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the earlier Rota in it."""
    folder = tmp_path_factory.mktemp("earlier")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(folder),
    ]
    subprocess.run([*pip, str(WHEEL)], check=True, capture_output=True)
    return folder


def test_it_enqueues_claims_finishes_and_keeps_limits(fleet: Fleet, url: str, ledger: Path, earlier: Path) -> None:
    made = fleet.program("rota", "migrate", "--url", url, packages=[earlier])
    assert made.wait() == 0, made.log
    options = json.dumps({"lease": 3, "poll": 0.5, "concurrency": 4})
    old = fleet.program("fault_limited", options, packages=[earlier])
    enqueuer = fleet.program("fault_enqueuer", "4", "0", "free", packages=[earlier])
    eventually(lambda: lines(ledger), within=PATIENCE)

    app = Rota(url)
    due = app.pending()
    assert due
    assert all(migration.older for migration in due)
    app.migrate()
    migrated = time.time_ns() // 1000
    new = fleet.program("fault_limited", options)
    eventually(lambda: len(app.workers()) == 2, within=PATIENCE)
    ids: dict[str, str] = {}
    for _ in range(30):
        for task in TASKS:
            ids |= {job.id: task for job in app.named(task).enqueue_many([("a",), ("b",)] if task == "tenant" else [()] * 2)}
    assert enqueuer.wait() == 0
    free = json.loads(enqueuer.log.splitlines()[-1])["ids"]
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids) + len(free), within=PATIENCE)

    done = account(app, [*ids, *free], ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids) + len(free)}, {})
    after = [row for row in app.store.get(free) if row.created_at > migrated]
    assert len(after) > 20
    app.close()
    told = [line for line in lines(ledger) if line.job in ids]
    for worker in (old, new):
        assert {ids[line.job] for line in told if line.pid == worker.pid} == set(TASKS), worker.name
        stop(worker)
    late = fleet.program("fault_limited", options, packages=[earlier])
    assert late.wait() != 0
    assert "install a newer Rota here" in late.log  # as `0006_needs` says: those alone that know of it may start as well
    for limit, room in (("pair", 2), ("shared", 3), ("tenant", 2)):
        assert most_at_once([line for line in told if ids[line.job].startswith(limit)]) <= room
    for program in (old, new, enqueuer):
        assert not [word for word in ("ERROR", "Traceback") if word in program.log]


def test_one_that_starts_on_newer_tables_works_where_they_let_it_and_else_ends_in_words(
    app: Rota, fleet: Fleet, url: str, ledger: Path
) -> None:
    migrated(url, GO_ON)
    worker = fleet.worker()
    job = app.named("quick").enqueue()
    assert job.wait(PATIENCE).status is State.SUCCEEDED
    stop(worker)
    assert not [word for word in ("WARNING", "ERROR", "Traceback") if word in worker.log]
    with newer(GO_ON, GO_ON.replace("go on", "end").replace("colour", "shape")):
        Rota(url).migrate()
    late = fleet.worker()
    assert late.wait() != 0
    assert "a process must know their version 1000" in late.log


def most_at_once(told: Sequence[Line]) -> int:
    now = most = 0
    for line in sorted(told, key=lambda line: (line.monotonic, line.word == "start")):
        now += 1 if line.word == "start" else -1
        most = max(most, now)
    return most


def stop(worker: Program) -> None:
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.log
