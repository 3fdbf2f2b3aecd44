"""Limits in Redis: what a claim costs beside much that is held, what comes between its steps, and nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import pytest
from redis import Redis

from redis_servers import RedisServer, serving
from rota.clock import SECOND
from rota.model import Ample, Ask, Ended, LimitRow, Move, Report, Seal, State, Succeeded
from rota.rules.instances import Instance
from rota.rules.limits import Limit
from rota.rules.sizes import Concurrency, Size
from rota.stores import open_store
from rota.stores.base import Store
from rota.testing.contract.limits import MAIL, ONE, admit, close, ended, job, mail, room, running_and_held, settled, worker_of
from rota.testing.contract.scene import LEASE, MINUTE, NOW, OUTCOMES, change, ids, put, row
from rota.testing.limits import Declares

LASTING = {"{rota}:version"}
EACH_TENANT = mail(concurrency=Limit(1, key=lambda tenant: tenant, name="tenant"))
MANY = 4_000


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


def ample(store: Store, worker: str, enough: int, limit: int = 10) -> list[str]:
    """What a claim takes that does not look at each job: `mail` has a room with so many places before it is refused."""
    asked = Ask(worker, ("default",), limit, ample=Ample(((MAIL, "", enough),), {"mail": ((MAIL, ""),)}))
    return ids(store.finish(worker, [], asked, now=NOW).claimed)


# -- claims that do not look at each job --------------------------------------------------------


def test_an_ample_claim_takes_places_and_leaves_other_tasks_without(store: Store) -> None:
    worker = worker_of(store)
    jobs = [job(), job("other"), job(key="k")]
    put(store, *jobs)
    assert ample(store, worker, 0) == [each.id for each in jobs]
    assert store.rooms() == [LimitRow(MAIL, "", 2, 0)]
    assert [(row(store, each.id).state, row(store, each.id).claim) for each in jobs] == [(State.RUNNING, 1)] * 3


def test_an_ample_claim_is_refused_near_the_limit_of_what_runs_and_of_what_was_set(store: Store) -> None:
    worker = worker_of(store)
    put(store, *(job() for _ in range(30)))
    assert len(ample(store, worker, 5)) == 10
    assert ample(store, worker, 9) == []
    assert len(ample(store, worker, 10)) == 10
    store.set_limit(MAIL, Concurrency(40), now=NOW)
    assert ample(store, worker, 100) == []
    store.set_limit(MAIL, Concurrency(60), now=NOW)
    assert len(ample(store, worker, 0)) == 10


def test_an_ample_claim_is_refused_where_the_room_is_closed_or_holds_jobs(store: Store) -> None:
    worker = worker_of(store)
    put(store, *(job() for _ in range(3)))
    close(store, [Instance(MAIL)], SECOND, NOW)
    assert ample(store, worker, 100) == []
    settled(store, worker, ONE)
    close(store, [Instance(MAIL)], 1, NOW - MINUTE)
    assert ample(store, worker, 100) == []


@pytest.mark.parametrize("way", ["succeeded", "dropped", "failed", "left", "lost", "reported"])
def test_the_places_of_an_ample_claim_are_given_back_however_it_ends(store: Store, way: str) -> None:
    worker = worker_of(store)
    put(store, job(), job())
    first, second = ample(store, worker, 100)
    assert room(store, MAIL).running == 2
    match way:
        case "succeeded" | "reported":
            if way == "reported":
                store.beat(worker, [Report(first, 1, "{}")], now=NOW)
            assert store.finish(worker, [Ended(first, 1, Succeeded("7"))], now=NOW).counted == {first}
            assert (row(store, first).state, row(store, first).result) == (State.SUCCEEDED, "7")
            assert row(store, first).claimed_at == NOW
        case "dropped":
            store.finish(worker, [Ended(first, 1, Succeeded(), keep=False)], now=NOW)
        case "failed":
            store.finish(worker, [Ended(first, 1, OUTCOMES["failed"])], now=NOW)
        case "left":
            store.leave(worker, now=NOW)
        case "lost":
            store.lost(10, now=NOW + LEASE)
    assert room(store, MAIL).running == (0 if way in ("left", "lost") else 1)
    if way == "succeeded":
        store.finish(worker, [Ended(second, 1, Succeeded())], now=NOW)
        assert store.rooms() == []


def test_the_places_of_an_ample_claim_leave_with_the_job(store: Store) -> None:
    worker = worker_of(store)
    put(store, job())
    [id] = ample(store, worker, 100)
    store.seal(Seal("m", "a", "b", NOW, leaving=True))
    [whole] = store.dump(None, 10)
    assert (whole.job.id, whole.job.state, whole.places) == (id, State.RUNNING, ((MAIL, ""),))


# -- what comes between the steps of a claim ----------------------------------------------------


class Meanwhile:
    """Limits that have something happen once a claim has seen its candidates."""

    def __init__(self, limits: Declares, happens: Callable[[], None]) -> None:
        self._limits = limits
        self._happens: Callable[[], None] | None = happens

    def sizes(self, overrides: Mapping[str, Size]) -> Mapping[str, Size]:
        return self._limits.sizes(overrides)

    def instances(self, job: str, task: str, args: str) -> tuple[Instance, ...]:
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()
        return self._limits.instances(job, task, args)


def taken(store: Store, worker: str, limits: Declares, happens: Callable[[], None]) -> list[str]:
    ask = Ask(worker, ("default",), 10, 10)
    return ids(store.admit(ask, Meanwhile(limits, happens), now=NOW).claimed)


def test_a_size_that_is_set_while_a_claim_is_under_way_counts_for_it(store: Store) -> None:
    worker = worker_of(store)
    put(store, *(job() for _ in range(9)))
    four = mail(concurrency=4)
    assert len(taken(store, worker, four, lambda: store.set_limit(MAIL, Concurrency(2), now=NOW))) == 2
    put(store, job())
    assert len(taken(store, worker, four, lambda: store.set_limit(MAIL, None, now=NOW))) == 2


def test_a_job_that_moves_while_a_claim_is_under_way_is_passed_over(store: Store) -> None:
    worker, other = worker_of(store), worker_of(store)
    jobs = [job() for _ in range(4)]
    put(store, *jobs)

    def happens() -> None:
        change(store, Move.CANCEL, jobs[0].id)
        change(store, Move.DELETE, jobs[1].id)
        assert ids(admit(store, other, mail(concurrency=9), slots=1).claimed) == [jobs[2].id]

    assert taken(store, worker, mail(concurrency=9), happens) == [jobs[3].id]
    assert room(store, MAIL).running == 2


def test_a_worker_that_is_taken_for_dead_while_it_claims_gets_nothing(store: Store) -> None:
    worker = worker_of(store)
    put(store, job())
    assert taken(store, worker, ONE, lambda: store.leave(worker, now=NOW)) == []
    assert store.rooms() == []


# -- what a claim costs -------------------------------------------------------------------------


def test_what_a_claim_does_is_no_more_where_much_is_held(store: Store, keys: Redis) -> None:
    worker = worker_of(store)

    def cost(tenant: int, held: int) -> int:
        put(store, *(job(arguments={"tenant": tenant}) for _ in range(held + 1)))
        assert len(settled(store, worker, EACH_TENANT)) == 1
        assert running_and_held(store, "tenant", f"{tenant}") == (1, held)
        put(store, job(arguments={"tenant": -tenant}))
        keys.config_resetstat()
        assert len(admit(store, worker, EACH_TENANT, slots=1).claimed) == 1
        return sum(stat["calls"] for name, stat in keys.info("commandstats").items() if not name.startswith("cmdstat_config"))

    assert cost(1, MANY) <= cost(2, 50)


def test_a_room_frees_as_many_as_it_has_places_for_however_many_it_holds(store: Store, keys: Redis) -> None:
    worker = worker_of(store)
    put(store, *(job() for _ in range(MANY)))
    claims = settled(store, worker, mail(concurrency=3))
    assert running_and_held(store, MAIL) == (3, MANY - 3)
    store.finish(worker, [ended(each) for each in claims[:2]], now=NOW)
    found = admit(store, worker, mail(concurrency=3))
    assert (len(found.claimed), found.held) == (2, 0)  # those that were freed, in order, and no other was looked at
    assert running_and_held(store, MAIL) == (3, MANY - 5)


def test_a_held_job_whose_key_somebody_deleted_keeps_no_other_from_its_place(store: Store, keys: Redis) -> None:
    worker = worker_of(store)
    jobs = [job() for _ in range(4)]
    put(store, *jobs)
    [claimed] = settled(store, worker, ONE)
    keys.delete("{rota}:job:" + jobs[1].id.replace("-", ""))
    store.finish(worker, [ended(claimed)], now=NOW)
    taken = settled(store, worker, ONE) or settled(store, worker, ONE, now=NOW + MINUTE)
    assert ids(taken) == [jobs[2].id]
    assert running_and_held(store, MAIL) == (1, 1)


# -- rooms --------------------------------------------------------------------------------------


def test_more_rooms_than_one_step_reads_are_told_and_pruned(store: Store) -> None:
    worker = worker_of(store, lease=10_000 * MINUTE)
    limits = mail(rate=Limit("60/m", key=lambda tenant: tenant, name="pace"))
    put(store, *(job(arguments={"tenant": number}) for number in range(1_200)))
    claims = settled(store, worker, limits, slots=1_200)
    rooms = store.rooms()
    assert [each.key for each in rooms] == sorted(f"{number}" for number in range(1_200))
    assert {each.started_at for each in rooms} == {NOW}
    store.finish(worker, [ended(each) for each in claims], now=NOW)
    store.prune({}, 1, now=NOW + 600 * MINUTE)
    assert store.rooms() == []


def test_a_room_that_still_holds_jobs_is_not_pruned_and_goes_later(store: Store) -> None:
    worker = worker_of(store, lease=10_000 * MINUTE)
    jobs = [job(), job()]
    put(store, *jobs)
    limits = mail(rate="1/m")
    [claimed] = settled(store, worker, limits)
    store.finish(worker, [ended(claimed)], now=NOW)
    store.prune({}, 10, now=NOW + 600 * MINUTE)
    assert [each.held for each in store.rooms()] == [1]
    change(store, Move.DELETE, jobs[1].id)
    store.prune({}, 10, now=NOW + 1_200 * MINUTE)
    assert store.rooms() == []


def test_nothing_is_left_of_limits_once_their_jobs_are_gone(store: Store, keys: Redis) -> None:
    worker = worker_of(store, lease=10_000 * MINUTE)
    limits = Declares(
        {
            "mail": {"concurrency": [Limit(1, key=lambda tenant: tenant), 3], "rate": "100/s"},
            "post": {"concurrency": 2},
            "other": {"rate": Limit("1/s", key=lambda tenant: tenant)},
        }
    )
    store.set_limit("concurrency of post", Concurrency(1), now=NOW)
    tasks = ("mail", "post", "other")
    jobs = [job(tasks[number % 3], arguments={"tenant": number % 2}, queue=f"q{number % 2}") for number in range(60)]
    put(store, *jobs)
    claims = admit(store, worker, limits, queues=("q0", "q1")).claimed
    assert claims
    store.finish(
        worker, [ended(each, closes=(("concurrency of post", ""),), closes_for=SECOND) for each in claims[1:]], now=NOW
    )
    assert {each.state for each in store.get([each.id for each in jobs])} >= {State.HELD, State.RUNNING}
    store.leave(worker, now=NOW)
    store.change(Move.DELETE, [each.id for each in jobs], now=NOW)
    store.prune({State.SUCCEEDED: 0}, 1_000, now=NOW + 600 * MINUTE)
    assert set(keys.scan_iter()) == LASTING | {"{rota}:limits"}
    store.set_limit("concurrency of post", None, now=NOW)
    assert set(keys.scan_iter()) == LASTING
