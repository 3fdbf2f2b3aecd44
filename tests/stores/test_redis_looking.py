"""Looking at many jobs in Redis: each way finds the same, no step keeps the server for long, and nothing is left over."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from redis import Redis

from redis_servers import RedisServer, serving
from rota.clock import SECOND, Micros
from rota.model import (
    FINAL,
    UNFINISHED,
    Ask,
    Count,
    Edit,
    Ended,
    Failed,
    Filter,
    JobRow,
    Move,
    NewJob,
    Outcome,
    Report,
    Seal,
    State,
    Succeeded,
    TaskRow,
    Unfinished,
    Whole,
)
from rota.stores import open_store
from rota.stores.base import Store
from rota.testing.contract.races import at_once
from rota.testing.contract.scene import (
    BROKEN,
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    change,
    claim,
    everything,
    finish,
    ids,
    join,
    new,
    put,
    queued,
    row,
    running,
)

STEP = 1_000
"""Jobs that one script may look at."""
LASTING = {"{rota}:version", "{rota}:tasks", "{rota}:pauses"}
"""Keys that stay when every job and every worker is gone."""
LAST = "ffffffff-ffff-7fff-bfff-ffffffffffff"
"""No job sorts after it: a page that begins here is one of which it is not known how many jobs are on it."""


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with serving(appendonly="no") as server:
        yield server


@pytest.fixture
def keys(server: RedisServer) -> Iterator[Redis]:
    """What sees the keys themselves; there are none at first."""
    with server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def store(server: RedisServer, keys: Redis) -> Iterator[Store]:
    with closing(open_store(server.url())) as store:
        store.open()
        yield store


def crowded(store: Store) -> dict[str, JobRow]:
    """Thousands of jobs in every state, more than one step looks at, of a few tasks on a few queues; one task is rare."""
    workers = [join(store), join(store)]
    work(store, workers[0], 1_300, Succeeded())
    work(store, workers[1], 30, Failed(BROKEN))
    put(store, *(kind(number, delay=MINUTE + number % 7) for number in range(1_200)))
    store.change(Move.CANCEL, ids(store.find(Filter((State.SCHEDULED,)), 20)), now=NOW)
    put(store, new(task="rare", queue="mail"), new(task="rare", queue="bills", delay=9 * MINUTE))
    put(store, *(kind(number, priority=number % 3, run_at=NOW - number % 11) for number in range(1_250)))
    for worker in workers:
        claim(store, worker, 40, ("mail", "bills"))
    return {each.id: each for each in everything(store)}


def kind(number: int, **options: Any) -> NewJob:
    """Jobs that differ in their tasks and queues as their numbers do."""
    return new(task=f"shop.task{number % 5}", queue=("mail", "bills")[number % 2], **options)


def work(store: Store, worker: str, many: int, outcome: Outcome) -> None:
    """Have so many jobs come in and end."""
    put(store, *(kind(number) for number in range(many)))
    while claims := claim(store, worker, 500, ("mail", "bills")):
        store.finish(worker, [Ended(each.id, each.claim, outcome) for each in claims], now=NOW)


def matching(rows: dict[str, JobRow], which: Filter) -> list[str]:
    return [
        id
        for id in sorted(rows, reverse=True)
        if (not which.states or rows[id].state in which.states)
        and which.queue in (None, rows[id].queue)
        and which.task in (None, rows[id].task)
        and which.worker in (None, rows[id].worker)
    ]


# -- every way finds the same -------------------------------------------------------------------


def test_whatever_is_looked_for_among_many_jobs_is_found_newest_first(store: Store, keys: Redis) -> None:
    rows = crowded(store)
    workers = sorted({each.worker for each in rows.values() if each.worker})
    kinds = [(state,) for state in State] + [(), UNFINISHED, tuple(FINAL), (State.SCHEDULED, State.FAILED)]
    for states in kinds:
        for queue in (None, "mail"):
            for task, worker in ((None, None), ("shop.task3", None), ("rare", None), (None, workers[1])):
                which = Filter(states, queue, task, None, worker)
                expected = matching(rows, which)
                assert ids(store.find(which, 30)) == expected[:30], which
                assert ids(store.find(which, 5_000, LAST)) == expected, which
                at = len(expected) // 2
                assert not expected or ids(store.find(which, 40, expected[at])) == expected[at + 1 :][:40], which
    told = keys.info("commandstats")
    assert {"cmdstat_zrevrangebylex", "cmdstat_zscan", "cmdstat_zrange"} <= told.keys()  # all three ways were gone


def test_pages_through_a_state_that_is_far_from_the_newest_join(store: Store) -> None:
    worker = join(store)
    work(store, worker, 1_500, Failed(BROKEN))
    work(store, worker, 4_000, Succeeded())
    told: list[str] = []
    before = None
    while page := store.find(Filter((State.FAILED,)), 400, before):
        told += ids(page)
        before = page[-1].id
    assert told == sorted(told, reverse=True)
    assert len(set(told)) == len(told) == 1_500
    assert {each.state for each in store.get(told)} == {State.FAILED}


def test_very_long_jobs_come_in_several_answers_and_are_one_page(store: Store) -> None:
    jobs = [new(args=json.dumps([["x" * 1_000_000], {}])) for _ in range(12)]
    for job in jobs:
        put(store, job)
    expected = [job.id for job in reversed(jobs)]
    assert ids(store.find(Filter(), 100)) == ids(store.find(Filter((State.QUEUED,)), 100)) == expected
    assert ids(store.find(Filter((State.QUEUED,)), 5, expected[1])) == expected[2:7]


@pytest.mark.parametrize("others", [0, 1_500], ids=["few jobs", "many jobs"])
def test_an_unfinished_job_is_not_missed_while_it_changes_its_state(store: Store, others: int) -> None:
    put(store, *(new(queue="other", delay=MINUTE) for _ in range(others)))
    id, worker = queued(store), join(store)
    moves = 300

    def move(twin: Store) -> list[bool]:
        for _ in range(moves):
            [claimed] = claim(twin, worker)
            assert finish(twin, worker, claimed, OUTCOMES["snoozed"])
            twin.promote(10, now=NOW + SECOND)
        return []

    def look(twin: Store) -> list[bool]:
        return [ids(twin.find(Filter(UNFINISHED, "default"), 1)) == [id] for _ in range(moves)]

    _, seen = at_once(store, [move, look])
    assert len(seen) == moves
    assert all(seen)


def test_the_jobs_of_a_worker_that_is_not_known_are_found_and_counted(store: Store, keys: Redis) -> None:
    worker = join(store)
    claimed = running(store, worker, queue="mail")
    moved = Whole(row(store, claimed.id))
    store.leave(worker, now=NOW)
    change(store, Move.DELETE, claimed.id)
    seal = Seal("1", "there", "here", NOW, leaving=False)
    store.seal(seal)
    assert store.load("1", [moved], now=NOW) == 1
    store.unseal("1")
    assert store.unfinished() == [Unfinished("mail", State.RUNNING, worker, 1, NOW)]
    assert store.counts() == [Count("mail", "tests.task", State.RUNNING, 1, NOW)]
    assert ids(store.find(Filter((State.RUNNING,)), 10)) == ids(store.find(Filter(worker=worker), 10)) == [claimed.id]
    join(store, id=worker)
    assert store.unfinished() == [Unfinished("mail", State.RUNNING, worker, 1, NOW)]
    store.leave(worker, now=NOW)
    change(store, Move.DELETE, claimed.id)
    assert left(keys) == {"{rota}:version"}


# -- counting -----------------------------------------------------------------------------------


def test_counts_and_the_oldest_of_each_kind_are_as_every_job_says(store: Store) -> None:
    rows = crowded(store).values()
    expected = Counter((each.queue, each.task, each.state) for each in rows)
    told = store.counts()
    assert {(each.queue, each.task, each.state): each.jobs for each in told} == expected
    for count in told:
        dues = [each.due for each in rows if (each.queue, each.task, each.state) == (count.queue, count.task, count.state)]
        assert count.state.final or count.oldest == min(dues), count
    unfinished = {(each.queue, each.state, each.worker): (each.jobs, each.oldest) for each in store.unfinished()}
    for (queue, state, worker), (jobs, oldest) in unfinished.items():
        dues = [
            each.due
            for each in rows
            if (each.queue, each.state) == (queue, state) and (state is not State.RUNNING or each.worker == worker)
        ]
        assert (jobs, oldest) == (len(dues), min(dues)), (queue, state, worker)
    assert sum(jobs for jobs, _ in unfinished.values()) == sum(not each.state.final for each in rows)


def test_the_oldest_of_a_task_is_found_behind_thousands_of_others_and_at_any_priority(store: Store) -> None:
    put(store, *(new(task="usual", priority=5, run_at=NOW - 3_000) for _ in range(2_500)))
    put(store, *(new(task="usual", run_at=NOW - 4_000) for _ in range(1_500)))
    put(store, new(task="late", run_at=NOW - 7), new(task="late", priority=5, run_at=NOW - 9))
    put(store, *(new(task="usual", delay=MINUTE) for _ in range(2_500)), new(task="late", delay=9 * MINUTE))
    assert sorted((each.task, each.state, each.jobs, each.oldest) for each in store.counts()) == [
        ("late", State.QUEUED, 2, NOW - 9),
        ("late", State.SCHEDULED, 1, NOW + 9 * MINUTE),
        ("usual", State.QUEUED, 4_000, NOW - 4_000),
        ("usual", State.SCHEDULED, 2_500, NOW + MINUTE),
    ]


def test_what_flowed_is_counted_to_the_last_job(store: Store) -> None:
    worker = join(store)
    put(store, *(new(queue=f"q{number % 3}") for number in range(2_600)))
    moments = Counter[Micros]()
    for at in range(7):
        claims = store.claim(Ask(worker, ("q0", "q1", "q2"), 350), now=NOW)
        store.finish(worker, [Ended(each.id, each.claim, Succeeded()) for each in claims], now=NOW + at)
        moments[NOW + at] += len(claims)
    for span in (1, 3, 7):
        flow = store.flow(span, now=NOW + 6)
        ended = sum(each.jobs for each in flow if each.state is State.SUCCEEDED and each.worker == worker)
        assert ended == sum(many for at, many in moments.items() if at > NOW + 6 - span)
    assert ids(store.latest(State.SUCCEEDED, 1_500)) == ids(store.latest(State.SUCCEEDED, 5_000))[:1_500]
    assert len(store.latest(State.SUCCEEDED, 5_000)) == 2_450


# -- no step keeps the server for long ----------------------------------------------------------


def test_no_script_looks_at_more_than_a_thousand_jobs(store: Store, server: RedisServer) -> None:
    rows = crowded(store)
    with watched(server) as scripts:
        assert len(store.find(Filter(task="rare"), 50, LAST)) == 2
        assert store.find(Filter(worker="nobody"), 50) == []
        assert len(store.find(Filter(), 10_000)) == len(rows)
        assert len(store.find(Filter((State.SCHEDULED,), task="shop.task1"), 1_000, LAST)) > 200
        assert len(store.get(list(rows))) == len(rows)
        assert store.counts()
        assert store.unfinished()
        assert store.flow(MINUTE, now=NOW)
        assert len(store.latest(State.SUCCEEDED, 10_000)) == 1_300
        assert len(store.change(Move.CANCEL, list(rows), now=NOW)) == len(rows)
        assert len(store.edit(Edit(priority=7), list(rows), now=NOW)) == len(rows)
        assert store.prune({State.SUCCEEDED: 0}, 10_000, now=NOW + 1) == {State.SUCCEEDED: 1_300}
        assert len(store.change(Move.DELETE, list(rows), now=NOW)) == len(rows)
    assert sum(script.jobs for script in scripts) > 10 * len(rows)
    assert max(script.jobs for script in scripts) <= STEP
    assert max(script.members for script in scripts) <= 3 * STEP


CALLS: dict[str, Callable[[Store, Sequence[str]], object]] = {
    "get": lambda store, some: store.get(some),
    "find": lambda store, some: store.find(Filter(), 20),
    "find a page": lambda store, some: store.find(Filter(), 20, some[0]),
    "find a state": lambda store, some: store.find(Filter((State.QUEUED,)), 20),
    "find a key": lambda store, some: store.find(Filter(key="k"), 20),
    "find what there is not": lambda store, some: store.find(Filter(task="unknown"), 20),
    "find what few states have": lambda store, some: store.find(Filter(task="rare"), 20),
    "find what a worker runs": lambda store, some: store.find(Filter((State.RUNNING,), worker=store.workers()[0].id), 20),
    "counts": lambda store, some: store.counts(),
    "unfinished": lambda store, some: store.unfinished(),
    "latest": lambda store, some: store.latest(State.SUCCEEDED, 20),
    "prunable": lambda store, some: store.prunable(dict.fromkeys(FINAL, 0), now=NOW + 1),
    "prune": lambda store, some: store.prune(dict.fromkeys(FINAL, 0), 20, now=NOW + 1),
    "edit": lambda store, some: store.edit(Edit(priority=1), some, now=NOW),
    "cancel": lambda store, some: store.change(Move.CANCEL, some, now=NOW),
    "retry": lambda store, some: store.change(Move.RETRY, some, now=NOW),
    "delete": lambda store, some: store.change(Move.DELETE, some, now=NOW),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_costs_as_many_commands_among_few_jobs_as_among_many(server: RedisServer, keys: Redis, name: str) -> None:
    costs = []
    for many in (1_100, 2_400):
        with closing(open_store(server.url(prefix=f"of{many}"))) as store:
            worker = join(store)
            work(store, worker, many, Succeeded())
            running(store, worker, task="rare", queue="few")
            put(store, *(kind(number) for number in range(many)), new(key="k"))
            some = ids(store.find(Filter((State.QUEUED,)), 20))
            with watched(server) as scripts:
                CALLS[name](store, some)
            costs.append((len(scripts), sum(script.commands for script in scripts)))
    assert costs[0] == costs[1]
    assert costs[0][0] > 0


class Script:
    """What a script did."""

    def __init__(self) -> None:
        self.commands = 0
        self.jobs = 0
        """How many jobs it read."""
        self.members = 0
        """How many ids it named in any other command."""


@contextmanager
def watched(server: RedisServer) -> Iterator[list[Script]]:
    """The scripts that run within the block, one after the other, once it is over."""
    scripts: list[Script] = []
    with server.client() as client, client.monitor() as monitor:
        yield scripts
        with server.client() as other:
            other.echo("that was all")
        while "that was all" not in (said := str(monitor.connection.read_response())):
            _, _, told = said.partition("] ")
            name = told.partition(" ")[0].strip('"').upper()
            if name == "EVALSHA":
                scripts.append(Script())
            elif name == "SCRIPT":  # the server did not know the last one, and is told it
                scripts.pop()
            elif re.match(r"[\d.]+ \[\d+ lua\]", said):
                scripts[-1].commands += 1
                if name in ("GET", "MGET"):
                    scripts[-1].jobs += told.count(":job:")
                elif name not in ("MSET", "DEL"):
                    scripts[-1].members += told.count(" ")


# -- nothing is left over -----------------------------------------------------------------------


def left(keys: Redis) -> set[str]:
    return set(keys.scan_iter("*", count=1_000))


def delete_each(store: Store, jobs: Sequence[str]) -> None:
    for id in jobs:
        change(store, Move.DELETE, id)


def delete_all(store: Store, jobs: Sequence[str]) -> None:
    store.change(Move.DELETE, jobs, now=NOW)


def cancel_and_prune(store: Store, jobs: Sequence[str]) -> None:
    store.change(Move.CANCEL, jobs, now=NOW)
    while sum(store.prune(dict.fromkeys(FINAL, 0), 10, now=NOW + 1).values()):
        pass


def retry_and_delete(store: Store, jobs: Sequence[str]) -> None:
    store.change(Move.RETRY, jobs, now=NOW)
    store.edit(Edit(queue="elsewhere", priority=9), jobs, now=NOW)
    store.edit(Edit(delay=MINUTE), jobs[::2], now=NOW)
    store.change(Move.DELETE, jobs, now=NOW)


@pytest.mark.parametrize("remove", [delete_each, delete_all, cancel_and_prune, retry_and_delete])
def test_when_the_last_job_is_gone_no_key_is_left_of_any(
    store: Store, keys: Redis, remove: Callable[[Store, Sequence[str]], None]
) -> None:
    long = json.dumps([["x" * 5_000], {}])
    store.declare([TaskRow("tests.task", "default", 0, 5)])
    store.pause("mail", now=NOW)
    worker = join(store)
    for outcome in ("succeeded", "failed", "cancelled", "again", "snoozed", "released"):
        for options in (
            {},
            {"key": outcome},
            {"args": long, "context": long},
            {"priority": -5, "key": "", "key_waiting": True},
        ):
            job = running(store, worker, **options)
            store.beat(worker, [Report(job.id, job.claim, long)], now=NOW)
            finish(store, worker, job, OUTCOMES[outcome])
            if outcome == "released":
                change(store, Move.RETRY, job.id)
                store.edit(Edit(delay=MINUTE), [job.id], now=NOW)
    put(store, new(key="k1", priority=3), new(queue="mail", args=long), new(delay=MINUTE, key="k2"))
    jobs = ids(everything(store))
    assert len(jobs) == 27
    remove(store, jobs)
    store.leave(worker, now=NOW)
    assert (everything(store), store.counts(), store.queues()) == ([], [], [])
    assert left(keys) == LASTING


def test_what_was_lost_leaves_no_key_once_it_is_deleted(store: Store, keys: Redis) -> None:
    worker = join(store)
    jobs = [running(store, worker, key=f"k{number}", max_attempts=1 + number % 2).id for number in range(6)]
    store.lost(100, now=NOW + LEASE)
    assert {each.state for each in store.get(jobs)} == {State.QUEUED, State.FAILED}
    store.change(Move.DELETE, jobs, now=NOW)
    assert left(keys) == {"{rota}:version"}


def test_of_hundreds_of_changes_each_is_told_in_its_place(store: Store) -> None:
    jobs = [new(delay=number % 2) for number in range(600)]
    put(store, *jobs)
    asked = [job.id for job in jobs[::-1]] + [jobs[0].id]
    assert [each.id for each in store.change(Move.CANCEL, asked, now=NOW)] == asked
    told = store.change(Move.DELETE, asked, now=NOW)
    assert [(each.id, each.before, each.after) for each in told] == [(id, State.CANCELLED, None) for id in asked]
