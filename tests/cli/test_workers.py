"""`rota workers`: who works, and on what."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from cli.conftest import Call, environment, on_terminal
from rota import Rota, current_job
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, WorkerRow
from working import eventually, working

WORKER = {"id", "name", "host", "pid", "queues", "tasks", "concurrency", "lease", "version", "started_at", "lease_until"}
PATIENCE = 30.0


def test_where_nobody_works_that_is_said(call: Call) -> None:
    assert call("workers") == "no worker is at work\n"
    assert call.json("workers") == {"workers": [], "more": False}


def test_workers_are_listed_with_the_jobs_that_they_run(url: str, call: Call) -> None:
    go = threading.Event()
    with Rota(url) as app:

        @app.task(name="shop.build", queue="reports")
        def build() -> None:
            current_job().progress(1, 4, "pages")
            go.wait(PATIENCE)

        with working(app, queues=["reports"], concurrency=3, name="builder"):
            job = build.enqueue()
            try:
                eventually(lambda: job.refresh().progress)
                told = call.json("workers")
                said = [line.split() for line in call("workers").splitlines()]
                short = call.json("workers", "--limit", "1")
                shown = call("jobs", "show", job.id)
            finally:
                go.set()
            job.wait(PATIENCE)
    assert (told["more"], short["more"]) == (False, True)
    [worker] = told["workers"]
    assert {*WORKER, "jobs"} <= set(worker)
    assert (worker["name"], worker["queues"], worker["concurrency"]) == ("builder", ["reports"], 3)
    [running] = worker["jobs"]
    assert (running["id"], running["task"], running["progress"]["note"]) == (job.id, "shop.build", "pages")
    assert f"  worker     builder ({worker['id']})\n" in shown
    heads, row, _, job_heads, job_row = said
    assert heads == ["WORKER", "HOST", "PID", "QUEUES", "JOBS", "SLOTS", "SINCE", "LEASE", "VERSION"]
    assert (row[0], row[3:6]) == ("builder", ["reports", "1", "3"])
    assert job_heads == ["JOB", "TASK", "WORKER", "ATTEMPT", "FOR", "PROGRESS"]
    assert job_row[:4] == [job.id, "shop.build", "builder", "1/5"]
    assert job_row[5:] == ["25", "%", "pages"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_names_are_told_apart_by_their_ends_on_a_terminal(url: str, tmp_path: Path) -> None:
    long = "a.department.of.long.winded.names.and.its.many.subsidiaries"
    with Rota(url) as app:
        workers = [
            WorkerRow(new_id(), f"{long}-{number}", "host", number, [f"{long}.q{number}"], [], 8, 600 * SECOND, "1")
            for number in range(60)
        ]
        for worker in workers:
            app.store.join(worker, None)
            app.send(f"{long}.task{worker.pid}")
            assert app.store.claim(Ask(worker.id, ("default",), 1), None)
    for command, tables in (("workers", ["-", "task"]), ("top --once", [".q", "-"])):
        said = on_terminal(*command.split(), cwd=tmp_path, env=environment(ROTA_URL=url, NO_COLOR="1"), columns=80)
        lines = said.replace("\r", "").splitlines()
        assert max(len(line) for line in lines) <= 80
        for each in tables:
            assert len({found[0] for line in lines if (found := re.search(rf"\S+{re.escape(each)}\d+(?= )", line))}) >= 60
