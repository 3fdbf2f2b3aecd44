"""Redis refuses: no memory or no disk is left, or a user lacks a right. What can go on goes on, and the rest waits."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from kit import PATIENCE, Fleet

from accounts import account, starts
from redis_servers import RedisServer, serving
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import State
from working import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

RULES = "on >secret ~{rota}* &{rota}* +@read +@write +@scripting +@pubsub +@connection +@transaction +time +info"
"""What a user needs; the words of the refusal name the same."""


@pytest.fixture
def frail() -> Iterator[RedisServer]:
    """A server that the test may have refuse things."""
    with serving(appendfsync="everysec", users={"worker": RULES}) as server:
        yield server


@pytest.fixture
def url(frail: RedisServer) -> str:
    return frail.url()


def all_final(app: Rota, ids: list[str]) -> bool:
    return all(row.state.final for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500]))


# -- no memory ----------------------------------------------------------------------------------


def test_without_memory_workers_keep_their_jobs_and_end_them_and_new_ones_are_refused(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    long = [app.named(task).using(max_attempts=1).enqueue(str(go)) for task in ("until", "auntil", "grumble")]
    waiting = app.named("quick").using(max_attempts=1).enqueue_many([()] * 200)
    soon = app.named("quick").using(delay=1.0).enqueue()
    first = fleet.worker(concurrency=3, lease=1.5)
    eventually(lambda: starts(ledger) == 3)
    frail.set(maxmemory="1mb", maxmemory_policy="noeviction")
    with pytest.raises(StoreUnavailable, match=r"no memory left .*: raise its maxmemory, or delete old jobs"):
        app.named("quick").enqueue()
    second = fleet.worker(concurrency=3, lease=1.5)  # one that starts now works as well
    eventually(lambda: all_final(app, [soon.id, *(job.id for job in waiting)]), within=PATIENCE)
    began = {worker.id: worker.lease_until for worker in app.workers()}
    eventually(lambda: all(worker.lease_until > began[worker.id] + 3_000_000 for worker in app.workers()))
    go.touch()
    eventually(lambda: all_final(app, [job.id for job in long]), within=PATIENCE)
    ids = [job.id for job in (*long, *waiting, soon)]
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids) - 1, State.FAILED: 1}, {})
    [failed] = app.store.attempts(long[2].id)
    assert failed.failure is not None
    assert failed.failure.message == "the late one"
    frail.set(maxmemory=0)
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    for worker in (first, second):
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
        assert "Traceback" not in worker.log


# -- no disk ------------------------------------------------------------------------------------


@contextmanager
def no_snapshots(server: RedisServer) -> Iterator[None]:
    """A folder is where the snapshot is to go, so none can be written."""
    (server.directory / "dump.rdb").mkdir()
    with server.client() as admin:
        server.set(appendonly="no", save="3600 1")
        admin.bgsave()
        eventually(lambda: server.info("persistence")["rdb_last_bgsave_status"] != "ok")
        yield
        (server.directory / "dump.rdb").rmdir()
        eventually(lambda: admin.bgsave() and server.info("persistence")["rdb_last_bgsave_status"] == "ok")


@contextmanager
def full_disk(server: RedisServer) -> Iterator[None]:
    """The append-only file is on a device that is always full."""
    server.set(appendonly="no")
    (server.directory / "appendonlydir" / "temp-appendonly.aof.incr").symlink_to("/dev/full")
    with server.client() as admin:
        server.set(appendonly="yes")
        eventually(lambda: refuses(admin))
        yield
        server.set(appendonly="no")


def refuses(admin: redis.Redis) -> bool:
    try:
        admin.set("{other}", "word")
    except redis.ResponseError as error:
        return "No space left" in str(error)
    return False


@pytest.mark.parametrize("failing", [no_snapshots, full_disk])
def test_a_server_that_cannot_write_to_its_disk_is_waited_for(
    app: Rota, fleet: Fleet, frail: RedisServer, ledger: Path, failing: Callable[[RedisServer], object]
) -> None:
    ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 300)]
    worker = fleet.worker(lease=30)
    eventually(lambda: starts(ledger) > 100)
    with failing(frail):
        with pytest.raises(StoreUnavailable, match=r"cannot write to its disk .*: free disk, or look at its log"):
            app.named("quick").enqueue()
        eventually(lambda: "cannot write to its disk" in worker.log)
        assert not all_final(app, ids)  # it is read all the same
    eventually(lambda: all_final(app, ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: 300}, {})
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert "Traceback" not in worker.log


# -- no right -----------------------------------------------------------------------------------


def test_a_worker_whose_password_comes_to_be_right_works_from_then_on(fleet: Fleet, frail: RedisServer) -> None:
    url = frail.url(user="worker", password="secret")
    with frail.client() as admin:
        admin.execute_command("ACL SETUSER", "worker", "resetpass", ">other")
        worker = fleet.program("fault_worker", json.dumps({"poll": 0.5}), url=url)
        eventually(lambda: "refuses this user" in worker.log)
        assert "check user and password in the URL" in worker.log
        assert "secret" not in worker.log
        admin.execute_command("ACL SETUSER", "worker", ">secret")
    with Rota(url) as app:
        assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_right_that_is_taken_away_for_a_while_costs_no_job(fleet: Fleet, frail: RedisServer, ledger: Path) -> None:
    url = frail.url(user="worker", password="secret")
    with Rota(url) as app, frail.client() as admin:
        ids = [job.id for job in app.named("nap").enqueue_many([(0.01,)] * 300)]
        worker = fleet.program("fault_worker", json.dumps({"poll": 0.5, "lease": 30, "concurrency": 4}), url=url)
        eventually(lambda: starts(ledger) > 100, within=PATIENCE)
        admin.execute_command("ACL SETUSER", "worker", "-evalsha")
        eventually(lambda: "lacks a right" in worker.log)
        admin.execute_command("ACL SETUSER", "worker", "+evalsha")
        eventually(lambda: all_final(app, ids), within=PATIENCE)
        done = account(app, ids, ledger)
        assert (done.states, done.repeated) == ({State.SUCCEEDED: 300}, {})
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_worker_that_may_not_work_says_what_it_needs_and_ends(fleet: Fleet, frail: RedisServer) -> None:
    with frail.client() as admin:
        admin.execute_command("ACL SETUSER", "worker", "-@scripting")
    worker = fleet.program("fault_worker", "{}", url=frail.url(user="worker", password="secret"))
    assert worker.wait() != 0
    assert "this user lacks a right" in worker.log
    assert "on the keys and channels that begin with the prefix" in worker.log


def test_a_server_that_is_too_old_is_refused(fleet: Fleet) -> None:
    """It is known by what it does not know."""
    with serving(rename_command='HRANDFIELD ""') as server:
        worker = fleet.program("fault_worker", "{}", url=server.url())
        assert worker.wait() != 0
        assert "is older than Redis 6.2" in worker.log


# -- what is odd --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"maxmemory": "64mb", "maxmemory_policy": "allkeys-lru"}, "maxmemory-policy is allkeys-lru: when memory runs out"),
        ({"maxmemory": "64mb", "maxmemory_policy": "volatile-ttl"}, "maxmemory-policy is volatile-ttl: when memory runs out"),
        ({"appendonly": "no"}, "the server keeps nothing on disk: a restart loses every job; set appendonly yes"),
        ({"appendonly": "no", "save": "60 1"}, "a crash of the server loses the jobs since its last snapshot"),
    ],
)
def test_a_server_that_may_lose_jobs_is_told_loudly_as_a_worker_starts(
    fleet: Fleet, frail: RedisServer, settings: dict[str, str], told: str
) -> None:
    frail.set(**settings)
    worker = fleet.worker()
    eventually(lambda: told in worker.log)
    assert f"WARNING {told}" in worker.log or f"WARNING there is no append-only file: {told}" in worker.log


def test_a_server_that_keeps_all_is_told_nothing_of(fleet: Fleet, app: Rota) -> None:
    worker = fleet.worker()
    assert app.named("quick").enqueue().wait(PATIENCE).status is State.SUCCEEDED
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert "WARNING" not in worker.log
