"""An attempt whose job another worker took over can end as it likes: it changes nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from accounts import account, note, noted, starts
from rota import Rota
from rota.clock import SECOND, machine_now
from rota.model import State
from working import eventually, working

PATIENCE = 30.0
LEASE = 60


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_the_slow_end_of_a_timed_out_attempt_leaves_the_one_that_took_over_alone(
    store_url: str, ledger: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The time-out of the first attempt and the loss of its lease come together, and its retry policy takes its time."""
    ending, end, go = threading.Event(), threading.Event(), threading.Event()

    def slow_policy(attempt: int, error: BaseException) -> float:
        ending.set()
        end.wait(PATIENCE)
        return 0

    def plain() -> None:
        with noted(ledger):
            go.wait(PATIENCE)

    async def coroutine() -> None:
        note(ledger, "start")
        await asyncio.sleep(PATIENCE)

    with Rota(store_url) as first, Rota(store_url) as other:
        first.task(name="slow", timeout=0.2, retry=slow_policy)(plain if kind == "plain" else coroutine)
        other.task(name="slow")(plain)
        with working(first, concurrency=1, lease=LEASE):
            job = first.send("slow")
            assert ending.wait(PATIENCE)
            assert len(first.store.lost(10, machine_now() + 2 * LEASE * SECOND).lost) == 1
            with working(other, concurrency=1, lease=LEASE) as heir:
                eventually(lambda: starts(ledger) == 2)
                end.set()
                eventually(lambda: "its outcome is not recorded" in caplog.text)
                row = job.refresh().row
                assert (row.state, row.worker, row.claim, row.attempt) == (State.RUNNING, heir.id, 2, 2)
                go.set()
                assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert [attempt.outcome for attempt in job.attempts()] == ["lost"]
        assert account(first, [job.id], ledger).starts == 2


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_no_worker_is_taken_for_lost_when_the_machines_clock_is_set_forward(
    store_url: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a sleep: every lease of a store that goes by this clock has run out at that moment."""
    seconds, nanoseconds, ahead = time.time, time.time_ns, [0]
    monkeypatch.setattr(time, "time", lambda: seconds() + ahead[0])
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds() + ahead[0] * 1_000_000_000)
    go = threading.Event()
    with ExitStack() as end:
        apps = [end.enter_context(Rota(store_url)) for _ in range(4)]
        for app in apps:

            @app.task(name="long", max_attempts=1)
            def long() -> None:
                with noted(ledger):
                    go.wait(PATIENCE)

            end.enter_context(working(app, lease=5.0, concurrency=1))  # a third of it is long enough for a beat
        job = apps[0].send("long")
        eventually(lambda: starts(ledger) == 1)
        rows = eventually(lambda: apps[0].workers() if len(apps[0].workers()) == len(apps) else [])
        joined = {worker.id: worker.lease_until for worker in rows}
        eventually(lambda: all(worker.lease_until > joined[worker.id] for worker in apps[0].workers()))
        for _ in range(2):
            ahead[0] += 3_600
            eventually(lambda: all(worker.lease_until > machine_now() for worker in apps[0].workers()))
        go.set()
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        assert {worker.id for worker in apps[0].workers()} == joined.keys()
    assert (job.attempt, starts(ledger)) == (1, 1)
