"""Effects and the state of jobs that are finished with them agree, whenever their workers are killed."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from kit import PATIENCE, Fleet, Program

from effects import effects, prepare, transaction
from rota import Rota
from rota.model import State
from working import eventually

SQL = pytest.mark.parametrize("shared_url", ["sqlite", "postgres"], indirect=True)
pytestmark = [pytest.mark.slow, SQL]

TRANSFERS = 2_000
ACCOUNTS = 20
OPENING = 1_000
POINTS = ("before the effects", "before the finish", "before the commit", "after the commit")
"""Where a transfer may kill its own process: everything that it does lies between two of these."""
BY_THEMSELVES = 16
FROM_OUTSIDE = 18


def start(fleet: Fleet) -> Program:
    return fleet.program("fault_transfers", json.dumps({"lease": 1.5, "poll": 0.5, "concurrency": 4}))


@pytest.mark.timeout(120)
def test_two_thousand_transfers_under_thirty_kills_are_each_made_once(app: Rota, url: str, fleet: Fleet) -> None:
    chance = random.Random(7)
    app.store.open()
    prepare(url)
    with transaction(url) as own:
        own.execute("create table accounts (number integer primary key, balance integer not null)")
        for number in range(ACCOUNTS):
            own.execute(f"insert into accounts values ({number}, {OPENING})")
    calls = [(*chance.sample(range(ACCOUNTS), 2), chance.randrange(1, 100), "") for _ in range(TRANSFERS)]
    for n in range(BY_THEMSELVES):
        at = TRANSFERS // BY_THEMSELVES * n + chance.randrange(50)
        calls[at] = (*calls[at][:3], POINTS[n % len(POINTS)])
    jobs = app.named("transfer").using(max_attempts=100).enqueue_many(calls)

    def made() -> int:
        return sum(count.jobs for count in app.stats().counts if count.state is State.SUCCEEDED)

    workers = [start(fleet), start(fleet)]
    died = killed = 0
    next_kill = 40

    def all_made() -> bool:
        """Whether all are; until then a worker that died is replaced, and now and then one is killed."""
        nonlocal died, killed, next_kill
        for place, worker in enumerate(workers):
            if not worker.alive:
                died += 1
                workers[place] = start(fleet)
        done = made()
        place = killed % len(workers)
        if done >= next_kill and killed < FROM_OUTSIDE and workers[place].alive:
            next_kill += (TRANSFERS - 200) // FROM_OUTSIDE
            workers[place].kill()
            workers[place] = start(fleet)
            killed += 1
        return done == TRANSFERS

    eventually(all_made, within=2 * PATIENCE)
    assert died + killed >= 30, (died, killed)
    steps = [[job.id for job in jobs[step : step + 500]] for step in range(0, TRANSFERS, 500)]
    assert Counter(row.state for ids in steps for row in app.store.get(ids)) == {State.SUCCEEDED: TRANSFERS}
    assert Counter(effects(url)) == Counter(job.id for job in jobs)
    expected = dict.fromkeys(range(ACCOUNTS), OPENING)
    for source, target, amount, _ in calls:
        expected[source] -= amount
        expected[target] += amount
    with transaction(url) as own:
        assert dict(own.execute("select number, balance from accounts").fetchall()) == expected
    assert sum(expected.values()) == ACCOUNTS * OPENING
