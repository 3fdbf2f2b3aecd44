"""Workers of an earlier Rota and tables of a later one: they go on where these let them, and else end in words."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet, Program

from accounts import Line, lines
from newer import GO_ON, migrated, newer
from rota import Rota
from rota.model import State
from working import eventually

SQL = pytest.mark.parametrize("shared_url", ["sqlite", "postgres"], indirect=True)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), SQL]

WHEEL = Path(__file__).parents[1] / "releases" / "rota-0.1.0-py3-none-any.whl"
"""The Rota before places of limits were noted together; `releases/build.py` makes it."""


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


def test_it_ends_in_words_where_the_tables_are_changed_beyond_it(fleet: Fleet, url: str, ledger: Path, earlier: Path) -> None:
    made = fleet.program("rota", "migrate", "--url", url, packages=[earlier])
    assert made.wait() == 0, made.log
    options = json.dumps({"lease": 3, "poll": 0.5, "concurrency": 4})
    old = fleet.program("fault_limited", options, packages=[earlier])
    pairs = fleet.program("fault_enqueuer", "2", "0", "pair", packages=[earlier])
    free = fleet.program("fault_enqueuer", "5", "0", "free", packages=[earlier])
    assert pairs.wait() == 0
    eventually(lambda: lines(ledger), within=PATIENCE)
    app = Rota(url)
    assert any(not migration.older for migration in app.pending())
    app.migrate()
    migrated_at = time.time_ns() // 1000
    new = fleet.program("fault_limited", options)
    assert old.wait() != 0
    assert re.search("CRITICAL th(e|is) worker ends.* install a newer Rota here", old.log)
    assert free.wait() == 0
    ids = [*sent(pairs), *sent(free), *(job.id for job in app.named("pair").enqueue_many([()] * 20))]
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    assert len([row for row in app.store.get(sent(free)) if row.created_at > migrated_at]) > 20
    # What the older one had begun when it was too old it recorded or handed back, so nothing was lost and ran again.
    assert [note.outcome for id in ids for note in app.store.attempts(id) if note.outcome == "lost"] == []
    app.close()
    stop(new)
    told = lines(ledger)
    assert {line.job for line in told} == set(ids)
    assert most_at_once([line for line in told if line.job in {*sent(pairs), *ids[-20:]}]) <= 2


def sent(enqueuer: Program) -> list[str]:
    """The ids of the jobs that it enqueued."""
    ids: list[str] = json.loads(enqueuer.log.splitlines()[-1])["ids"]
    return ids


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
