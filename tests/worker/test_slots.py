"""As many bodies run at once as there are slots, in their order, and no claimed job waits long for one."""

from __future__ import annotations

import threading
from pathlib import Path

import isolated_bodies

from accounts import account, most_at_once, starts
from rota import Rota
from rota.model import State
from working import eventually, working

PATIENCE = 30.0


def test_plain_bodies_fill_every_slot_and_no_more(app: Rota, ledger: Path, tmp_path: Path) -> None:
    gate = threading.Barrier(8)  # passes only when eight are there at once

    @app.task
    def together() -> None:
        gate.wait(PATIENCE)

    with working(app, concurrency=8):
        jobs = together.enqueue_many([()] * 16)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}


def test_slots_are_shared_by_threads_coroutines_and_processes(isolated: Rota, ledger: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    kinds = [isolated_bodies.until_there_plain, isolated_bodies.until_there_async, isolated_bodies.until_there_isolated]
    with working(isolated, concurrency=8):
        jobs = [kind.enqueue(str(ledger), str(go)) for _ in range(6) for kind in kinds]
        eventually(lambda: starts(ledger) == 8)
        go.touch()
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
    assert most_at_once(ledger) == 8
    assert account(isolated, [job.id for job in jobs], ledger).starts == 18


def test_the_larger_priority_runs_first_and_the_older_among_equals(app: Rota) -> None:
    order: list[str] = []

    @app.task
    def mark(name: str) -> None:
        order.append(name)

    for name, priority in [("c", 0), ("a", 5), ("d", 0), ("b", 5), ("e", -1)]:
        mark.using(priority=priority).enqueue(name)
    with working(app, concurrency=1):
        eventually(lambda: len(order) == 5)
    assert order == ["a", "b", "c", "d", "e"]


def test_only_the_named_queues_are_served(app: Rota) -> None:
    @app.task
    def mark() -> None: ...

    other = mark.using(queue="other").enqueue()
    with working(app, queues=["mine"]):
        assert mark.using(queue="mine").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert other.refresh().status is State.QUEUED


def test_jobs_claimed_ahead_of_a_slow_one_go_back_for_others(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def quick(number: int) -> None:
        if number == 500:
            go.wait(PATIENCE)

    many = quick.enqueue_many([(number,) for number in range(2_000)])
    with working(app, concurrency=1, shutdown_timeout=0):
        eventually(lambda: many[499].refresh().status is State.SUCCEEDED)
        with working(app, concurrency=2):
            eventually(lambda: app.stats().states[State.SUCCEEDED] == 1_999, within=PATIENCE)
        go.set()
    handed_back = [job.refresh().row.excused for job in many]
    assert max(handed_back) <= 3, "a job went back and forth"


def test_forty_quick_jobs_do_not_wait_behind_a_slow_one(app: Rota) -> None:
    go = threading.Event()

    @app.task
    def slow() -> None:
        go.wait(PATIENCE)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=4):
        blocked = slow.enqueue()
        jobs = quick.enqueue_many([()] * 40)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        assert blocked.refresh().status is State.RUNNING
        go.set()


def test_a_system_without_threads_gets_the_job_back(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    @app.task
    async def first() -> None: ...

    with working(app, concurrency=1) as worker:
        first.enqueue().wait(PATIENCE)
        former = threading.stack_size()
        # More than the address space holds, so that no thread can be started. What runs already is not concerned.
        threading.stack_size((1 << 47) - 4096)
        try:
            job = quick.enqueue()
            eventually(lambda: job.refresh().row.excused > 0)
        finally:
            threading.stack_size(former)
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert worker._crew.free == 1
