"""A deployment at a glance, and what `check` finds wrong with it."""

from __future__ import annotations

import asyncio

import pytest

from app.conftest import Clock
from app.words import claimed, joined
from rota import ConfigError, Rota, State
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import WorkerRow
from rota.rules.health import Problem, Trouble


def test_an_empty_store_has_every_state_and_nothing_in_it(app: Rota) -> None:
    stats = app.stats()
    assert stats.states == dict.fromkeys(State, 0)
    assert (stats.counts, stats.oldest_wait, stats.workers) == ([], None, [])
    scheme = app.url.partition(":")[0]
    assert stats.facts["store"] == {"postgresql": "postgres", "unix": "redis"}.get(scheme, scheme)


def test_jobs_are_counted_by_queue_task_and_state(app: Rota) -> None:
    app.named("pack").using(queue="goods").enqueue_many([(1,), (2,)])
    app.named("pack").using(queue="goods", delay=60).enqueue(3)
    app.named("ship").enqueue().cancel()
    stats = asyncio.run(app.astats())
    assert {(count.queue, count.task, count.state.value, count.jobs) for count in stats.counts} == {
        ("goods", "pack", "queued", 2),
        ("goods", "pack", "scheduled", 1),
        ("default", "ship", "cancelled", 1),
    }
    assert (stats.states[State.QUEUED], stats.states[State.SCHEDULED], stats.states[State.CANCELLED]) == (2, 1, 1)


def test_the_oldest_wait_counts_from_when_the_job_was_due(clocked: Rota, clock: Clock) -> None:
    clocked.named("t").using(delay=10).enqueue()
    assert clocked.stats().oldest_wait is None
    clock.forward(15)
    # No worker is there to promote it, so it is scheduled still; it waits all the same.
    assert clocked.stats().oldest_wait == 5 * SECOND
    clocked.run_one(["other"])
    clock.forward(1)
    assert clocked.stats().oldest_wait == 6 * SECOND


def test_workers_are_listed(app: Rota) -> None:
    id = joined(app, queues=["mail"])
    assert [worker.id for worker in app.workers()] == [worker.id for worker in asyncio.run(app.aworkers())] == [id]
    assert [worker.queues for worker in app.stats().workers] == [["mail"]]


# -- check --------------------------------------------------------------------------------------


def troubles(app: Rota, max_wait: float | None = None) -> dict[Trouble, int]:
    """What `check` finds: how many jobs each trouble concerns."""
    found = app.check(max_wait)
    assert found == asyncio.run(app.acheck(max_wait))
    assert all(problem.text for problem in found)
    return {problem.trouble: problem.jobs for problem in found}


def test_nothing_is_wrong_with_an_empty_store(clocked: Rota) -> None:
    assert clocked.check(max_wait=0) == []


def test_all_is_well_while_a_worker_serves_what_waits(clocked: Rota) -> None:
    clocked.send("t")
    joined(clocked, tasks=["t"])
    assert clocked.check(max_wait=60) == []


def test_jobs_of_a_worker_whose_lease_ran_out_are_told(clocked: Rota, clock: Clock) -> None:
    clocked.send("t")
    claimed(clocked, seconds=30)
    joined(clocked, seconds=10)  # it holds nothing, so nothing of its is late
    assert troubles(clocked) == {}
    clock.forward(32)
    assert clocked.check() == [
        Problem(Trouble.LEASE, "leases ran out and no worker took their jobs back: w (2 s ago); start a worker", 1)
    ]


def test_running_jobs_of_live_workers_are_not_taken_for_late_ones(clocked: Rota, clock: Clock) -> None:
    joined(clocked, seconds=10)
    clocked.send("t")
    claimed(clocked, seconds=600)
    clock.forward(60)
    assert troubles(clocked) == {}


def test_a_queue_that_nobody_serves_is_told(clocked: Rota) -> None:
    clocked.named("t").using(queue="Mail Out").enqueue_many([(), ()])
    joined(clocked, queues=["default"], tasks=["t"])
    text = "no live worker serves queue 'Mail Out': start one with --queues 'Mail Out'"
    assert clocked.check() == [Problem(Trouble.UNSERVED_QUEUE, text, 2)]


def test_a_queue_whose_only_worker_is_late_is_unserved(clocked: Rota, clock: Clock) -> None:
    joined(clocked, seconds=10, tasks=["t"])
    clocked.send("t")
    assert troubles(clocked) == {}
    clock.forward(10)
    assert troubles(clocked) == {Trouble.UNSERVED_QUEUE: 1}


def test_due_jobs_that_nobody_promotes_are_unserved_and_wait(clocked: Rota, clock: Clock) -> None:
    clocked.named("t").using(delay=60).enqueue()
    assert troubles(clocked, max_wait=5) == {}
    clock.forward(70)
    assert troubles(clocked, max_wait=5) == {Trouble.UNSERVED_QUEUE: 1, Trouble.WAITING: 1}


def test_a_task_that_no_worker_of_its_queue_knows_is_told(clocked: Rota) -> None:
    clocked.named("ship").using(queue="goods").enqueue()
    clocked.named("ship").using(queue="goods", delay=60).enqueue()
    joined(clocked, queues=["default"], tasks=["ship"])
    joined(clocked, queues=["goods"], tasks=["pack"])
    text = "no live worker of its queue knows task 'ship': deploy its code or delete its jobs"
    assert clocked.check() == [Problem(Trouble.UNKNOWN_TASK, text, 2)]
    joined(clocked, tasks=["ship"])
    assert clocked.check() == []


def test_a_job_that_waits_too_long_is_told(clocked: Rota, clock: Clock) -> None:
    joined(clocked, seconds=3600, tasks=["t"])
    clocked.send("t")
    clock.forward(300)
    assert troubles(clocked, max_wait=300) == {}
    clock.forward(1)
    text = "t on queue 'default' has waited for 301 s, longer than 300 s: add workers or look at what they do"
    assert clocked.check(max_wait=300) == [Problem(Trouble.WAITING, text, 1)]
    assert clocked.check() == []


def test_workers_of_several_versions_are_told_once_a_deploy_should_be_over(clocked: Rota, clock: Clock) -> None:
    def join(name: str, version: str, seconds: float = 9000) -> None:
        row = WorkerRow(new_id(), name, "here", 1, None, [], 1, int(seconds * SECOND), version)
        clocked.store.join(row, clocked.now())

    join("old", "0.1.0")
    join("gone", "0.0.1", seconds=60)
    clock.forward(600)
    join("new", "0.2.0")
    clock.forward(3599)
    assert clocked.check() == []
    clock.forward(1)
    join("newer", "0.2.0")
    [problem] = clocked.check()
    assert problem.trouble is Trouble.VERSIONS
    assert problem.text.endswith("(0.1.0: old; 0.2.0: new, newer)")


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_what_the_store_warns_of_is_told(store_url: str) -> None:
    with Rota(f"{store_url}&options=-c%20synchronous_commit%3Doff") as app:
        [problem] = app.check()
        assert problem.trouble is Trouble.STORE
        assert problem.text.startswith("synchronous_commit is off")


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
@pytest.mark.parametrize("wait", [-1, "5m", float("nan"), True])
def test_the_longest_wait_is_a_span(app: Rota, wait: float) -> None:
    with pytest.raises(ConfigError, match=r"^max_wait="):
        app.check(wait)
