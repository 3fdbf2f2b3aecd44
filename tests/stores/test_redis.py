"""What is Redis's own: keys that nobody needs are gone, servers forget scripts, and jobs are small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from redis import Redis

from redis_servers import RedisServer, serving
from rota.errors import SchemaMismatch
from rota.model import Ask, Edit, Ended, Failed, Failure, Move, NewJob, Report, Seal, State, Succeeded, TaskRow
from rota.stores import open_store
from rota.stores.base import Store
from rota.testing.contract.lines import SOON, answered, line_of, rung
from rota.testing.contract.scene import (
    LEASE,
    NOW,
    OUTCOMES,
    claim,
    finish,
    ids,
    join,
    new,
    put,
    queued,
    row,
    running,
    state,
)
from working import eventually

LASTING = {"{rota}:version", "{rota}:tasks"}
"""Keys that stay when every job and every worker is gone."""
MANY = 5_000


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with serving() as server:
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


def left(keys: Redis) -> set[str]:
    return set(keys.scan_iter("*", count=1_000))


# -- nothing is left over -----------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"key": "k"},
        {"key": "k", "key_waiting": True},
        {"context": '{"tenant":"7"}'},
        {"args": json.dumps([["x" * 5_000], {}])},
        {"priority": -2_000_000_000},
    ],
    ids=["plain", "with a key", "with a key while it waits", "with a context", "with long arguments", "with a priority"],
)
def test_a_job_that_is_not_kept_leaves_no_key(store: Store, keys: Redis, outcome: str, options: dict[str, object]) -> None:
    store.declare([TaskRow("tests.task", "default", 0, 5)])
    worker = join(store)
    job = running(store, worker, **options)
    store.beat(worker, [Report(job.id, job.claim, json.dumps({"note": "y" * 5_000}))], now=NOW)
    finish(store, worker, job, OUTCOMES["again"])
    store.promote(10, now=NOW + LEASE)
    [again] = claim(store, worker, now=NOW + LEASE)
    assert finish(store, worker, again, OUTCOMES[outcome], keep=False)
    store.leave(worker, now=NOW)
    assert left(keys) == LASTING


def test_a_plain_job_that_is_not_kept_leaves_no_key_either(store: Store, keys: Redis) -> None:
    worker = join(store)
    assert finish(store, worker, running(store, worker), OUTCOMES["succeeded"], keep=False)
    store.leave(worker, now=NOW)
    assert left(keys) == {"{rota}:version"}


def test_workers_that_are_gone_leave_no_key(store: Store, keys: Redis) -> None:
    for _ in range(20):
        store.rest(join(store), True)
    for worker in store.workers()[:10]:
        store.leave(worker.id, now=NOW)
    store.lost(100, now=NOW + LEASE)
    assert left(keys) == {"{rota}:version"}


def test_keys_of_another_prefix_are_left_alone(server: RedisServer, store: Store, keys: Redis) -> None:
    with closing(open_store(server.url(prefix="other"))) as other:
        theirs = queued(other)
        mine = queued(store)
        assert other.get([mine]) == store.get([theirs]) == []
        assert ids(claim(other, join(other))) == [theirs]
    assert {key.partition(":")[0] for key in left(keys)} == {"{rota}", "{other}"}


# -- what others do to the server ---------------------------------------------------------------


def test_a_server_that_forgot_the_scripts_is_told_them_again(store: Store, keys: Redis) -> None:
    worker = join(store)
    first = queued(store)
    keys.script_flush()
    assert ids(claim(store, worker)) == [first]
    keys.script_flush()
    assert len(put(store, *(new() for _ in range(3_000)))) == 3_000


def test_a_line_whose_script_was_forgotten_gets_its_answers_in_order(store: Store, keys: Redis) -> None:
    worker = join(store)
    jobs = [queued(store) for _ in range(4)]
    with line_of(store) as line:
        keys.script_flush()
        for _ in range(line.ahead):
            line.post(worker, [], Ask(worker, ("default",), 1))
        claimed = [answered(line).claimed[0] for _ in range(line.ahead)]
        assert ids(claimed) == jobs[: line.ahead]
        line.post(worker, [Ended(each.id, each.claim, Succeeded()) for each in claimed])
        assert answered(line).counted == set(ids(claimed))


def test_answers_that_came_together_are_heard_one_after_the_other(store: Store) -> None:
    worker = join(store)
    jobs = [queued(store) for _ in range(2)]
    with line_of(store) as line:
        for _ in range(2):
            line.post(worker, [], Ask(worker, ("default",), 1))
        assert [answered(line).claimed[0].id for _ in range(2)] == jobs


def test_jobs_whose_keys_somebody_deleted_keep_nobody_from_working(store: Store, keys: Redis) -> None:
    worker = join(store)
    gone, late, there = queued(store), queued(store, delay=5), queued(store)
    for id in (gone, late):
        keys.delete(f"{{rota}}:job:{id.replace('-', '')}")
    assert store.promote(10, now=NOW + 5).count == 0
    assert ids(claim(store, worker, limit=1)) == [there]
    keys.delete(f"{{rota}}:job:{there.replace('-', '')}")
    assert store.lost(10, now=NOW + LEASE).lost == []
    assert store.workers() == []


def test_a_store_that_was_emptied_is_one_without_jobs(store: Store, keys: Redis) -> None:
    worker = join(store)
    job = running(store, worker)
    keys.flushall()
    assert not store.beat(worker, [Report(job.id, job.claim)], now=NOW).alive
    assert not finish(store, worker, job, OUTCOMES["succeeded"])
    assert state(store, queued(store)) is State.QUEUED


# -- the layout ---------------------------------------------------------------------------------


def test_a_newer_layout_is_refused_where_this_rota_does_not_know_it(server: RedisServer, store: Store, keys: Redis) -> None:
    worker = join(store)
    keys.hset("{rota}:version", mapping={"version": 2, "needs": 1})
    with closing(open_store(server.url())) as other:
        other.open()
    keys.hset("{rota}:version", "needs", 2)
    with closing(open_store(server.url())) as other:
        for refused in (other.open, other.migrate, other.pending):
            with pytest.raises(SchemaMismatch, match=r"must know version 2 .* this one knows 1 at most; install a newer Rota"):
                refused()
        assert other.there()
    with pytest.raises(SchemaMismatch, match="install a newer Rota"):
        store.beat(worker, [], now=NOW)


def test_a_store_that_may_not_be_made_is_refused(server: RedisServer, keys: Redis) -> None:
    with closing(open_store(server.url(), migrate=False)) as store:
        assert not store.there()
        assert [each.name for each in store.pending()] == ["0001_layout"]
        with pytest.raises(SchemaMismatch, match="run `rota migrate`"):
            store.open()
        assert left(keys) == set()
        assert store.migrate() == ["0001_layout"]
        assert store.there()
        store.open()


def test_the_steps_that_make_the_layout_are_commands(server: RedisServer, keys: Redis) -> None:
    with closing(open_store(server.url(), migrate=False)) as store:
        [(_, text)] = store.schema()
        command, key, *fields = text.replace('"', "").split()
        keys.execute_command(command, key, *fields)
        store.open()


# -- sizes --------------------------------------------------------------------------------------


def test_a_small_job_weighs_less_than_five_hundred_bytes(store: Store, keys: Redis) -> None:
    def weight() -> int:
        return int(keys.info("memory")["used_memory"])

    put(store, new())
    before = weight()
    store.insert(NewJob(new().id, "shop.tasks.send_receipt", "default", '{"order_id":123456}') for _ in range(MANY))
    assert (weight() - before) / MANY < 500
    worker = join(store)
    while claims := claim(store, worker, 500):
        store.finish(worker, [Ended(each.id, each.claim, Succeeded(), took=1_000) for each in claims], now=NOW)
    assert (weight() - before) / MANY < 500


def test_long_texts_come_back_whatever_becomes_of_their_job(store: Store) -> None:
    worker = join(store)
    long = {name: json.dumps([name * 2_000]) for name in ("args", "context", "progress", "result", "reason")}
    id = queued(store, args=long["args"], context=long["context"])
    [first] = claim(store, worker)
    assert (first.args, first.context) == (long["args"], long["context"])
    store.beat(worker, [Report(id, 1, long["progress"])], now=NOW)
    finish(store, worker, first, OUTCOMES["released"])
    [second] = claim(store, worker)
    assert (second.args, second.context, row(store, id).progress) == (long["args"], long["context"], long["progress"])
    assert finish(store, worker, second, Failed(Failure("E", long["reason"])))
    kept = row(store, id)
    assert (kept.args, kept.context, kept.progress, kept.reason) == (
        long["args"],
        long["context"],
        long["progress"],
        long["reason"],
    )
    other = running(store, worker)
    assert finish(store, worker, other, Succeeded(long["result"]))
    assert row(store, other.id).result == long["result"]


def test_a_moment_at_the_end_of_the_calendar_is_kept_to_the_microsecond(store: Store) -> None:
    last = 253_402_300_799_999_999
    near, far = queued(store, run_at=last - 1), queued(store)
    [changed] = store.edit(Edit(run_at=last), [far], now=NOW)
    assert changed.after is State.SCHEDULED
    assert (row(store, near).due, row(store, far).due) == (last - 1, last)
    wholes = store.dump(None, 10)
    store.change(Move.DELETE, [near, far], now=NOW)
    seal = Seal("a move", "there", "here", NOW, leaving=False)
    store.seal(seal)
    assert store.load(seal.id, wholes, now=NOW) == 2
    store.unseal(seal.id)
    assert (row(store, near).due, row(store, far).due) == (last - 1, last)
    store.edit(Edit(run_at=5), [near, far], now=NOW)
    assert [each.due for each in claim(store, join(store))] == [5, 5]


def test_a_success_takes_back_the_reason_of_an_earlier_attempt(store: Store) -> None:
    worker = join(store)
    job = running(store, worker)
    finish(store, worker, job, OUTCOMES["again"])
    store.promote(1, now=NOW + LEASE)
    [again] = claim(store, worker, now=NOW + LEASE)
    assert row(store, job.id).reason == "it broke"
    finish(store, worker, again, OUTCOMES["succeeded"])
    assert (row(store, job.id).reason, row(store, job.id).claim) == (None, 2)


# -- connections --------------------------------------------------------------------------------


def test_no_more_connections_are_open_than_allowed(server: RedisServer, keys: Redis) -> None:
    before = len(server.clients())
    with closing(open_store(server.url(), max_size=2)) as store, ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: put(store, new()), range(500)))
        assert 1 <= len(server.clients()) - before <= 2


def test_a_store_that_is_closed_leaves_no_connection(server: RedisServer, keys: Redis) -> None:
    before = server.clients()
    with closing(open_store(server.url())) as store:
        queued(store)
        with line_of(store):
            assert len(server.clients()) == len(before) + 3
    eventually(lambda: server.clients().keys() <= before.keys())


def test_a_ring_on_a_channel_of_another_prefix_wakes_nobody(server: RedisServer, store: Store) -> None:
    with closing(open_store(server.url(prefix="other"))) as other:
        other.rest(join(other), True)
        store.rest(join(store), True)
        with line_of(store) as line:
            queued(other)
            assert not rung(line, 0.01)
            queued(store)
            assert rung(line, SOON)
