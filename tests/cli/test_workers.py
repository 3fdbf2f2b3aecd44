"""`rota workers`: who works, and on what."""

from __future__ import annotations

import threading

from cli.conftest import Call
from rota import Rota, current_job
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
            finally:
                go.set()
            job.wait(PATIENCE)
    assert (told["more"], short["more"]) == (False, True)
    [worker] = told["workers"]
    assert {*WORKER, "jobs"} <= set(worker)
    assert (worker["name"], worker["queues"], worker["concurrency"]) == ("builder", ["reports"], 3)
    [running] = worker["jobs"]
    assert (running["id"], running["task"], running["progress"]["note"]) == (job.id, "shop.build", "pages")
    heads, row, _, job_heads, job_row = said
    assert heads == ["WORKER", "HOST", "PID", "QUEUES", "SLOTS", "JOBS", "SINCE", "LEASE", "VERSION"]
    assert (row[0], row[3:6]) == ("builder", ["reports", "3", "1"])
    assert job_heads == ["JOB", "TASK", "WORKER", "ATTEMPT", "FOR", "PROGRESS"]
    assert job_row[:4] == [job.id, "shop.build", "builder", "1/5"]
    assert job_row[5:] == ["25", "%", "pages"]
