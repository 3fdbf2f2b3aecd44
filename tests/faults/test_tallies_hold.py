"""A limit that is mostly far from full holds over workers that are killed, frozen and cut off at random, and nothing stalls.

Workers count the places themselves then. What is so is judged by what the bodies wrote down.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import psycopg
import pytest
from kit import Fleet, Program
from psycopg import sql

from accounts import Line, account, lines
from rota import Rota
from rota.model import State
from servers import PostgresServer
from working import eventually

pytestmark = pytest.mark.slow

PLACES = 400
LEASE = 1.5
WORKERS = 4
STRETCH = 9.0
Attempt = tuple[str, int]


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """The one store in which workers count places."""
    with postgres_server.tables() as url:
        yield url


@pytest.fixture
def app(url: str) -> Iterator[Rota]:
    """The app as one who is not cut off has it."""
    with Rota(f"{url}&application_name=watcher") as app:
        yield app


def start(fleet: Fleet, number: int) -> Program:
    """The first has the slots for all slow jobs that may run at once; the others have few."""
    served = {"queues": ["slow"], "concurrency": PLACES} if number == 0 else {"queues": ["default"], "concurrency": 60}
    return fleet.program("fault_ample", json.dumps({"lease": LEASE, "poll": 0.5} | served))


@pytest.mark.timeout(120)
def test_a_wide_limit_holds_while_workers_are_killed_frozen_and_cut_off(
    app: Rota, fleet: Fleet, url: str, postgres_server: PostgresServer
) -> None:
    chance = random.Random(11)
    ids: list[str] = []
    counted: list[int] = []
    workers = [start(fleet, number) for number in range(WORKERS)]
    killed: dict[int, int] = {}
    frozen: dict[Program, float] = {}
    eventually(lambda: len(app.store.workers()) == WORKERS)
    end = time.monotonic() + STRETCH
    while (now := time.monotonic()) < end:
        waiting = sum(each.jobs for each in app.stats().counts if not each.state.final)
        if waiting < 1_500:
            for _ in range(20):
                ids += [job.id for job in app.named("quick").using(max_attempts=50).enqueue_many([()] * 60)]
                ids += [job.id for job in app.named("slow").using(max_attempts=50).enqueue_many([()] * 8)]
            if chance.random() < 0.5:
                ids += [
                    job.id
                    for job in app.named("slow")
                    .using(queue="slow", max_attempts=50)
                    .enqueue_many([()] * chance.choice((20, 600)))
                ]
        counted.append(tallies(url))
        for worker in [worker for worker, until in frozen.items() if now >= until]:
            del frozen[worker]
            worker.send(signal.SIGCONT)
        time.sleep(chance.uniform(0.05, 0.5))
        victim = chance.randrange(WORKERS)
        match chance.choice(("cut", "cut", "cut", "freeze", "kill", "cut all")):
            case "kill":
                frozen.pop(workers[victim], None)
                killed[workers[victim].pid] = time.time_ns() // 1000
                workers[victim].kill()
                workers[victim] = start(fleet, victim)
            case "freeze" if not frozen:
                workers[victim].send(signal.SIGSTOP)
                frozen[workers[victim]] = time.monotonic() + chance.choice((0.3, 2.5 * LEASE))
            case "cut":
                cut(postgres_server, [chance.choice(connections(postgres_server) or [0])])
            case "cut all":
                cut(postgres_server, connections(postgres_server))
    for worker in frozen:
        worker.send(signal.SIGCONT)
    eventually(lambda: not sum(each.jobs for each in app.stats().counts if not each.state.final), within=60)

    done = account(app, ids, fleet.ledger)
    assert set(done.states) == {State.SUCCEEDED}
    assert max(counted) > 0, "no worker counted places, so this test shows nothing"
    most = most_at_once(lines(fleet.ledger), killed, lost(app, ids))
    assert PLACES * 3 // 4 < most <= PLACES
    eventually(lambda: all(room.running == 0 for room in app.store.rooms()))


def tallies(url: str) -> int:
    """How many places workers count."""
    database, schema = url.split("&schema=")
    with psycopg.connect(database) as postgres:
        query = sql.SQL("select coalesce(sum(taken), 0) from {}.rota_tallies")
        [[taken]] = postgres.execute(query.format(sql.Identifier(unquote(schema)))).fetchall()
    return int(str(taken))


def connections(server: PostgresServer) -> list[int]:
    """The server's processes that work for the workers."""
    return sorted(pid for pid, said in server.backends().items() if " rota: " in said)


def cut(server: PostgresServer, pids: Sequence[int]) -> None:
    with server.connect() as admin:
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid = any(%s)", [list(pids)])


def lost(app: Rota, ids: Sequence[str]) -> dict[Attempt, int]:
    """When attempts lost their lease, and with it their places, by the store's clock."""
    again = [row.id for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500]) if row.claim > 1]
    return {(id, note.claim): note.ended_at for id in again for note in app.store.attempts(id)}


def most_at_once(told: Sequence[Line], killed: dict[int, int], lost: dict[Attempt, int]) -> int:
    """The largest number of bodies that ran at the same moment: each until it or its process ended, or its lease was taken."""
    ends = {(line.job, line.claim): line.wall for line in told if line.word == "end"}
    moments: list[tuple[int, int]] = []
    for line in told:
        attempt = (line.job, line.claim)
        until = min(known[key] for known, key in ((ends, attempt), (killed, line.pid), (lost, attempt)) if key in known)
        if line.word == "start" and until > line.wall:
            moments += [(line.wall, 1), (until, -1)]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most
