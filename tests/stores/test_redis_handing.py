"""A job that comes in while a worker sleeps is handed to it: claimed as it is added, and sent along with the ring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fresh import fresh_url
from redis_servers import RedisServer
from rota.bell import Bell
from rota.model import Ask, State, Succeeded
from rota.stores import open_store
from rota.stores.base import Line, Store
from rota.testing.contract.lines import SOON, answered, line_of, rung
from rota.testing.contract.scene import LEASE, NOW, finish, join, new, put, queued, row, state

AWHILE = 0.05
"""Seconds in which what is not to come would have come."""


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with fresh_url("redis", request, tmp_path) as url, closing(open_store(url)) as store:
        store.open()
        yield store


def sleeper(store: Store) -> str:
    worker = join(store)
    store.rest(worker, True)
    return worker


def offer(line: Line, worker: str, queues: tuple[str, ...] = ("default",), limit: int = 5, within: float = AWHILE) -> bool:
    """Fall asleep with a claim ready, for a moment; says whether something rang."""
    with closing(Bell()) as bell:
        return line.wait(within, bell, Ask(worker, queues, limit))


def queued_now(store: Store) -> str:
    """The id of a job that was just inserted by the server's clock."""
    job = new()
    store.insert([job])
    return job.id


def test_a_job_is_claimed_as_it_comes_and_sent_along_with_the_ring(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        job = queued(store, args='[["é"],{}]', priority=7)
        assert (row(store, job).state, row(store, job).worker) == (State.RUNNING, worker)
        assert offer(line, worker, within=SOON)
        [claimed] = answered(line).claimed
        assert (claimed.id, claimed.claim, claimed.args, claimed.priority) == (job, 1, '[["é"],{}]', 7)
        assert finish(store, worker, claimed, Succeeded())
        assert state(store, job) is State.SUCCEEDED


def test_a_lone_job_goes_to_one_sleeper_and_the_next_to_another(store: Store) -> None:
    one, two = sleeper(store), sleeper(store)
    with line_of(store) as first, line_of(store) as second:
        assert not offer(first, one)
        assert not offer(second, two)
        jobs = [queued(store), queued(store)]
        assert {row(store, job).worker for job in jobs} == {one, two}
        third = queued(store)
        assert state(store, third) is State.QUEUED, "nobody offered to run it"


def test_an_offer_is_for_the_queues_that_were_asked_for(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker, queues=("mail", "it's %s"))
        assert state(store, queued(store, queue="default")) is State.QUEUED
        assert state(store, queued(store, queue="it's %s")) is State.RUNNING


def test_a_job_is_not_handed_over_past_those_that_wait(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        put(store, new(), new())
        assert state(store, queued(store, priority=9)) is State.QUEUED


@pytest.mark.parametrize(
    "options", [{"key": "k"}, {"context": "{}"}, {"delay": 1_000_000}, {"args": '["' + "x" * 5_000 + '"]'}]
)
def test_a_job_that_takes_more_than_a_plain_one_is_queued_or_scheduled(store: Store, options: dict[str, Any]) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        job = queued(store, **options)
        assert state(store, job) is (State.SCHEDULED if "delay" in options else State.QUEUED)
        assert rung(line, SOON)


def test_jobs_that_come_together_are_claimed_by_turns(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        jobs = [each.id for each in put(store, new(), new())]
        assert {state(store, job) for job in jobs} == {State.QUEUED}
        assert offer(line, worker, within=SOON)
        assert {claimed.id for claimed in answered(line).claimed} == set(jobs)


def test_who_is_dead_is_handed_nothing(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
    job = queued(store)
    assert state(store, job) is State.QUEUED


def test_whose_lease_is_over_is_handed_nothing(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        job = queued(store, now=NOW + LEASE)
        assert state(store, job) is State.QUEUED


def test_who_has_not_renewed_an_offer_is_handed_nothing(store: Store, redis_server: RedisServer) -> None:
    worker = sleeper(store)
    store.expire(worker)
    store.beat(worker, [])
    with line_of(store) as line:
        assert not offer(line, worker)
        with redis_server.client() as client:
            [offers] = client.scan_iter("*:offers")
            seconds, micros = client.time()
            old = (seconds - 11) * 1_000_000 + micros
            client.eval(
                "redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({'default'}, tonumber(ARGV[2])))", 1, offers, worker, old
            )
            assert state(store, queued_now(store)) is State.QUEUED
            now = seconds * 1_000_000 + micros
            store.claim(Ask(sleeper(store), ("default",), 1))
            client.eval(
                "redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({'default'}, tonumber(ARGV[2])))", 1, offers, worker, now
            )
            assert state(store, queued_now(store)) is State.RUNNING


def test_who_left_is_handed_nothing(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        store.leave(worker, now=NOW)
        assert state(store, queued(store)) is State.QUEUED


def test_a_turn_takes_the_offer_back(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        line.post(worker, [], Ask(worker, ("other",), 1))
        assert answered(line).claimed == []
        assert state(store, queued(store)) is State.QUEUED


def test_a_pause_takes_all_offers_back(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        store.pause("default")
        assert state(store, queued(store)) is State.QUEUED


def test_what_was_handed_over_comes_with_the_next_answer_where_no_claim_was_ready(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        job = queued(store)
        assert rung(line, SOON)
        line.post(worker, [], Ask(worker, ("other",), 1))
        assert [claimed.id for claimed in answered(line).claimed] == [job]


def test_what_was_handed_over_and_never_read_goes_back_with_the_worker(store: Store) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        job = queued(store)
        store.leave(worker)
        assert (state(store, job), row(store, job).excused) == (State.QUEUED, 1)


def test_what_was_handed_to_a_former_self_is_not_run(store: Store) -> None:
    former, worker = sleeper(store), sleeper(store)
    with line_of(store) as line:
        assert not offer(line, former)
        queued(store)
        assert offer(line, worker, within=SOON)
        assert answered(line).claimed == []


def test_nothing_is_left_of_offers(store: Store, redis_server: RedisServer) -> None:
    worker = sleeper(store)
    with line_of(store) as line:
        assert not offer(line, worker)
        store.leave(worker)
        with redis_server.client() as client:
            assert not list(client.scan_iter("*:offers"))
