"""Processes are replaced after so many jobs, or when they have grown too large."""

from __future__ import annotations

import pytest

from accounts import account, lines
from rota import Rota, State
from supervisor.conftest import PATIENCE, Yard
from working import eventually

LEAK = """
import os

from accounts import noted
from rota import Rota

app = Rota(os.environ["SHOP_URL"])
kept = []


@app.task(name="leak", retry=0)
def leak(megabytes: int) -> None:
    with noted(os.environ["SHOP_LEDGER"]):
        kept.append(b"x" * (megabytes * 1_000_000))
"""


@pytest.mark.slow
def test_a_process_is_replaced_after_so_many_jobs(yard: Yard, app: Rota) -> None:
    parent = yard.start("--max-jobs", "40", "--name", "only")
    [first] = yard.working(1)
    ids: list[str] = []
    for _ in range(2):
        before = len(parent.log)
        while "another process takes its place: it has ended" not in parent.log[before:]:
            jobs = app.named("quick").enqueue_many([()] * 10)
            ids += [job.id for job in jobs]
            eventually(lambda jobs=jobs: all(job.refresh().status.final for job in jobs))
        eventually(lambda before=before: "serves all queues" in parent.log[before:])
        eventually(lambda: len(app.workers()) == 1)
    assert yard.working(1) != [first]
    assert [row.name for row in app.workers()] == ["only-1"]
    done = account(app, ids, yard.ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    assert parent.stopped() == 0


@pytest.mark.parametrize("processes", [2])
def test_a_process_that_has_grown_too_large_is_replaced_and_the_others_are_not(yard: Yard, app: Rota, processes: int) -> None:
    (yard.folder / "leaks.py").write_text(LEAK)
    parent = yard.start("--processes", str(processes), "--max-memory", "200MB", app="leaks:app")
    before = yard.working(processes)
    assert app.named("leak").enqueue(300).wait(30).status is State.SUCCEEDED
    [grown] = {line.pid for line in lines(yard.ledger)}
    parent.said(rf"\(pid {grown}\): another process takes its place: it has [23]\d\d MB in memory")
    eventually(lambda: grown not in [row.pid for row in app.workers()] and len(app.workers()) == processes, within=PATIENCE)
    assert len({*before} & {row.pid for row in app.workers()}) == processes - 1
    assert parent.stopped() == 0


@pytest.mark.slow
def test_what_is_due_while_its_successor_cannot_start_goes_on_working(yard: Yard, app: Rota) -> None:
    parent = yard.start("--max-jobs", "1")
    [first] = yard.working(1)
    good = (yard.folder / "shop.py").read_text()
    (yard.folder / "shop.py").write_text("this is no Python")
    for _ in range(2):
        assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    parent.said("before it could take over from worker 1")
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    (yard.folder / "shop.py").write_text(good)
    eventually(lambda: [row.pid for row in app.workers()] not in ([], [first]), within=PATIENCE)
    assert parent.stopped() == 0
