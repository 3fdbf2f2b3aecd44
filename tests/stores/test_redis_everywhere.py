"""What users do with jobs works on every version of the server, and in every way to reach one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager

import pytest

from redis_servers import RedisServer, Sentinel, serving
from redis_versions import VERSIONS
from rota import Limit, Retry, Rota, current_job
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, Move, NewJob, State, WorkerRow
from rota.stores import open_store
from rota.stores.base import Store
from working import eventually, working

RULES = "on >secret ~{rota}* &{rota}* +@read +@write +@scripting +@pubsub +@connection +@transaction +time +info"
"""A user who may touch nothing outside the prefix."""
LASTING = {"{rota}:version", "{rota}:tasks"}
"""Keys that stay when every job and every worker is gone."""
DAY = 24 * 3_600 * SECOND

Way = Callable[[], AbstractContextManager[tuple[str, RedisServer]]]
"""Starts a server, and tells the URL by which a store is reached there."""


# -- every server -------------------------------------------------------------------------------


@contextmanager
def version(name: str) -> Iterator[tuple[str, RedisServer]]:
    with serving(name) as server:
        yield server.url(), server


@contextmanager
def of_a_cluster() -> Iterator[tuple[str, RedisServer]]:
    """A node refuses a script that looks at keys of two slots."""
    with serving(listen="tcp", cluster_enabled="yes") as server:
        yield server.url(), server


@contextmanager
def with_few_rights() -> Iterator[tuple[str, RedisServer]]:
    with serving(users={"worker": RULES}) as server:
        yield server.url(user="worker", password="secret"), server


@contextmanager
def with_tls_and_a_password() -> Iterator[tuple[str, RedisServer]]:
    with serving(listen="tls", password="p@ss/word") as server:
        yield server.url(), server


@contextmanager
def by_sentinel() -> Iterator[tuple[str, RedisServer]]:
    with serving(listen="tcp") as server:
        sentinel = Sentinel(server)
        try:
            sentinel.start()
            host, port = sentinel.address
            yield f"redis+sentinel://{host}:{port}/{sentinel.name}", server
        finally:
            sentinel.close()


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_does_all_of_it(name: str) -> None:
    with version(name) as (url, server):
        do_all_of_it(url, server)


@pytest.mark.parametrize("way", [of_a_cluster, with_few_rights, with_tls_and_a_password, by_sentinel])
def test_every_way_to_a_server_leads_to_all_of_it(way: Way) -> None:
    with way() as (url, server):
        do_all_of_it(url, server)


def do_all_of_it(url: str, server: RedisServer) -> None:
    """Enqueue, run, retry, hold, pause, edit, cancel, look, explain and purge; nothing is left over in the end."""
    with Rota(url) as app:
        done = Bodies(app)
        app.pause("quiet")
        with working(app, concurrency=8):
            run_and_retry(app, done)
            hold(app, done)
            look_and_change(app, done)
        assert app.workers() == []
        app.purge(succeeded=0, failed=0, cancelled=0)
        assert app.stats().counts == []
        app.store.prune({}, 1_000, now_of(app) + DAY)  # when no rate remembers any start
    assert keys(server) <= LASTING


class Bodies:
    """Tasks, and what their bodies did."""

    def __init__(self, app: Rota) -> None:
        self.ran = Counter[str]()
        self.go = threading.Event()
        self.most = Counter[str]()
        self._inside = Counter[str]()
        self._lock = threading.Lock()
        self.count = app.task(name="count", keep_result=True)(self._count)
        self.stumble = app.task(name="stumble", max_attempts=3, retry=0)(self._stumble)
        self.fail = app.task(name="fail", max_attempts=1)(self._fail)
        self.narrow = app.task(name="narrow", concurrency=[Limit(1, key=lambda tenant: tenant), 2], rate="1000/s")(self._narrow)
        self.wait = app.task(name="wait", queue="waiting")(self._wait)

    def _count(self, name: str) -> str:
        with self._lock:
            self.ran[name] += 1
        return name * 500

    def _stumble(self) -> None:
        if current_job().attempt < 2:
            raise Retry(after=0.01)

    def _fail(self) -> None:
        raise ValueError("as it must")

    def _narrow(self, tenant: str) -> None:
        with self._lock:
            for name in (tenant, "all"):
                self._inside[name] += 1
                self.most[name] = max(self.most[name], self._inside[name])
        self.go.wait(0.005)
        with self._lock:
            self._inside -= Counter([tenant, "all"])

    def _wait(self) -> None:
        while not (self.go.wait(0.01) or current_job().should_stop):
            pass


def run_and_retry(app: Rota, done: Bodies) -> None:
    many = done.count.enqueue_many([(f"{number}",) for number in range(1_200)])
    keyed = [done.count.using(key="k", delay=0.2, priority=9).enqueue("keyed") for _ in range(3)]
    stumbled, failed = done.stumble.enqueue(), done.fail.enqueue()
    eventually(lambda: app.stats().states[State.SUCCEEDED] == 1_202 and failed.refresh().status is State.FAILED)
    assert len({job.id for job in keyed}) == 1
    assert set(done.ran.values()) == {1}
    assert many[7].result() == "7" * 500
    assert stumbled.refresh().attempt == 2
    assert [job.id for job in app.jobs(status="failed")] == [failed.id]
    failed.retry()
    eventually(lambda: failed.refresh().status is State.FAILED and failed.attempt == 1)


def hold(app: Rota, done: Bodies) -> None:
    jobs = done.narrow.enqueue_many([(tenant,) for tenant in "abcd" for _ in range(5)])
    eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
    assert {name: most for name, most in done.most.items() if most > 1} in ({"all": 2}, {})
    assert {(room.running, room.held) for room in app.limits()} <= {(0, 0)}


def look_and_change(app: Rota, done: Bodies) -> None:
    running = done.wait.enqueue()
    eventually(lambda: running.refresh().status is State.RUNNING)
    paused, late = done.wait.using(queue="quiet").enqueue(), done.count.using(delay=3_600).enqueue("late")
    assert "paused" in str(app.explain(paused.id))
    assert [job.id for job in app.jobs(task="wait")] == [paused.id, running.id]
    running.cancel()
    eventually(lambda: running.refresh().status.final)
    app.edit(late.id, priority=3)
    assert late.refresh().row.priority == 3
    late.cancel()
    assert app.resume("quiet")
    eventually(lambda: paused.refresh().status is State.RUNNING)
    done.go.set()
    eventually(lambda: paused.refresh().status is State.SUCCEEDED)
    assert late.refresh().status is State.CANCELLED


def now_of(app: Rota) -> int:
    return app.store.vitals().now


def keys(server: RedisServer) -> set[str]:
    with server.client() as client:
        return set(client.scan_iter("*", count=1_000))


# -- many at once -------------------------------------------------------------------------------


def test_fifty_threads_share_a_few_connections(redis_server: RedisServer) -> None:
    threads, most = 50, 4
    before = redis_server.info("stats")["total_connections_received"]
    with closing(open_store(redis_server.url(prefix="threads"), max_size=most)) as store:
        store.open()
        together = threading.Barrier(threads)

        def insert(_: int) -> None:
            together.wait()
            for _ in range(10):
                store.insert([new()])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(insert, range(threads)))
        assert redis_server.info("stats")["total_connections_received"] - before <= most
        assert store.vitals().facts["jobs"] == threads * 10
        workers = [joined(store)]
        store.change(Move.DELETE, [job.id for job in store.claim(Ask(workers[0], ("default",), 1_000))])
        store.leave(workers[0])


@pytest.mark.parametrize(("workers", "each"), [(1, 10_000), (500, 20)])
def test_thousands_of_lost_jobs_come_back_in_small_steps(workers: int, each: int) -> None:
    """How long the server is kept by one step goes by the commands of its script, and by the jobs that these look at."""
    step = 500
    with serving(appendonly="no") as server, closing(open_store(server.url())) as store:
        store.open()
        store.insert(new() for _ in range(workers * each))
        for _ in range(workers):
            worker = joined(store)
            for _ in range(0, each, 1_000):
                store.claim(Ask(worker, ("default",), min(each, 1_000)))
            store.expire(worker)
        lost: set[str] = set()
        while len(lost) < workers * each:
            before = work_of(server)
            reaped = store.lost(step).lost
            commands, looks = (after - was for was, after in zip(before, work_of(server), strict=True))
            assert 0 < len(reaped) <= step
            assert commands < 10 * step
            assert looks < 10 * step
            lost.update(job.id for job in reaped)
        assert store.lost(step).lost == []
        assert store.workers() == []
        assert [(count.state, count.jobs) for count in store.counts()] == [(State.QUEUED, workers * each)]


def work_of(server: RedisServer) -> tuple[int, int]:
    """How many commands the server ran up to now, those in scripts included, and how many keys and fields these found."""
    with server.client() as client:
        commands = client.info("commandstats")
        return sum(each["calls"] for each in commands.values()), client.info("stats")["keyspace_hits"]


def new() -> NewJob:
    return NewJob(new_id(), "task", "default", "[[],{}]")


def joined(store: Store) -> str:
    row = WorkerRow(new_id(), "w", "here", 1, None, ["task"], 8, 60 * SECOND, "1")
    store.join(row)
    return row.id
