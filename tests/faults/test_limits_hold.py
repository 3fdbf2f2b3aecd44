"""Limits hold over six processes that are killed at random, and nothing stalls: judged by what the bodies wrote down."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from kit import Fleet, Program

from accounts import Line, account, lines
from rota import Rota
from rota.clock import SECOND
from rota.model import JobRow, State
from working import eventually

pytestmark = pytest.mark.slow

LEASE = 1.5
WORKERS = 6
STRETCH = 60.0
PER_SECOND = 8
TENANTS = "abcdefgh"


def start(fleet: Fleet) -> Program:
    return fleet.program("fault_limited", json.dumps({"lease": LEASE, "poll": 0.5, "concurrency": 4}))


@pytest.mark.timeout(240)
def test_limits_hold_while_workers_are_killed(app: Rota, fleet: Fleet, ledger: Path) -> None:
    chance = random.Random(5)
    ids: dict[str, str] = {}

    def fill() -> None:
        """Keep some jobs of every task waiting, so that a stall is a stall."""
        waiting = app.stats().counts
        for task in ("pair", "shared one", "shared two", "spaced", "tenant"):
            there = sum(count.jobs for count in waiting if count.task == task and not count.state.final)
            calls: Sequence[tuple[str, ...]] = [(TENANTS[n % 8],) if task == "tenant" else () for n in range(60)]
            if there < 60:
                ids.update({job.id: task for job in app.named(task).using(max_attempts=50).enqueue_many(calls)})

    workers = [start(fleet) for _ in range(WORKERS)]
    started = dict.fromkeys((worker.pid for worker in workers), time.monotonic_ns())
    killed: dict[int, int] = {}
    end = time.monotonic() + STRETCH
    while time.monotonic() < end:
        fill()
        time.sleep(chance.uniform(0.2, 1.5))
        victim = chance.randrange(WORKERS)
        killed[workers[victim].pid] = time.monotonic_ns()
        workers[victim].kill()
        workers[victim] = start(fleet)
        started[workers[victim].pid] = time.monotonic_ns()
    for job, task in ids.items():
        if task == "spaced" and app.get(job).status in (State.QUEUED, State.HELD):
            app.get(job).cancel()  # eight a second would take too long to end
    eventually(lambda: all(not count.jobs for count in app.stats().counts if not count.state.final), within=90)

    done = account(app, list(ids), ledger)
    assert set(done.states) <= {State.SUCCEEDED, State.CANCELLED}
    assert done.overlaps == []
    told = lines(ledger)
    rows = {row.id: row for step in range(0, len(ids), 500) for row in app.store.get(list(ids)[step : step + 500])}
    tasks = {"pair": ["pair"], "shared": ["shared one", "shared two"], "tenant": ["tenant"]}
    for limit, size in (("pair", 2), ("shared", 3), ("tenant", 4)):
        of = [line for line in told if ids[line.job] in tasks[limit]]
        assert most_at_once(of, killed) == size, limit
    for name in TENANTS:
        of = [line for line in told if ids[line.job] == "tenant" and json.loads(rows[line.job].args)["*"] == [name]]
        assert most_at_once(of, killed) == 1, name
    for earlier, later in pairwise(sorted(claim_times([rows[job] for job, task in ids.items() if task == "spaced"]))):
        assert later - earlier >= SECOND // PER_SECOND
    # What a killed worker held comes back when its lease ends, so no task rests for longer than that and a little: as long as a
    # few workers take from their start to their first job, one after the other.
    first: dict[int, int] = {}
    for line in told:
        first.setdefault(line.pid, line.monotonic)
    takes = median(first[pid] - at for pid, at in started.items() if pid in first) / 1e9
    for task in ("pair", "shared one", "shared two", "spaced", "tenant"):
        moments = sorted(line.monotonic for line in told if line.word == "start" and ids[line.job] == task)
        longest = max(later - earlier for earlier, later in pairwise(moments)) / 1e9
        assert longest < 3 * LEASE + 1.0 + 4 * takes, (
            f"{task} rested for {longest:.1f} s although jobs waited; workers took {takes:.1f} s to start"
        )


def claim_times(rows: Sequence[JobRow]) -> Iterator[int]:
    for row in rows:
        if row.claimed_at is not None:
            yield row.claimed_at


def most_at_once(told: Sequence[Line], killed: Mapping[int, int]) -> int:
    """The largest number of bodies that ran at the same moment; one without an end ended with its process."""
    ended = {(line.job, line.claim) for line in told if line.word == "end"}
    moments = [(line.monotonic, 1 if line.word == "start" else -1) for line in told]
    moments += [(killed[line.pid], -1) for line in told if line.word == "start" and (line.job, line.claim) not in ended]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most
