"""What Redis refuses is told with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest
import redis

from redis_servers import RedisServer, Sentinel, free_port, serving
from rota import Rota
from rota.clock import SECOND
from rota.errors import NotSupported, StoreError, StoreUnavailable
from rota.ids import new_id
from rota.model import Again, Ask, Ended, Failure, NewJob, Report, Succeeded, WorkerRow
from rota.stores import open_store
from rota.stores.base import Store
from rota.stores.redis.errors import meaning
from working import eventually

USERS = {
    "reader": "on >secret ~* &* +@read +@connection +evalsha +script +time",
    "elsewhere": "on >secret ~other* &* +@all",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with serving(listen="tcp", password="secret", users=USERS) as server:
        yield server


def refused(url: str, kind: type[StoreError], told: str, **options: object) -> None:
    with closing(open_store(url, **options)) as store, pytest.raises(kind, match=told) as error:
        store.open()
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("user", "password", "told"),
    [
        ("", "wrong", "refuses this user .*: check user and password in the URL"),
        ("nobody", "secret", "refuses this user .*: check user and password in the URL"),
        ("elsewhere", "secret", "lacks a right .*: let it run all commands of"),
    ],
)
def test_who_may_not_work_is_told_what_to_look_at(server: RedisServer, user: str, password: str, told: str) -> None:
    refused(server.url(user=user, password=password), StoreError, told)


def test_without_a_password_where_one_is_needed_the_user_is_refused(server: RedisServer) -> None:
    refused(f"redis://127.0.0.1:{server.port}", StoreUnavailable, "refuses this user")


def test_a_database_that_is_not_there_is_told(server: RedisServer) -> None:
    refused(server.url(database=99), StoreError, "has no such database .*: correct its number in the URL")


def test_where_nobody_listens_the_store_is_away() -> None:
    refused(f"redis://127.0.0.1:{free_port()}", StoreUnavailable, "cannot be reached .*see that it runs")
    refused("unix:///nowhere/redis.sock", StoreUnavailable, "cannot be reached .*see that it runs")


def test_a_host_that_is_not_known_is_told() -> None:
    refused("redis://no-such-host.invalid", StoreUnavailable, "is not known here .*: correct its name")


def test_what_speaks_no_tls_is_told_to_those_who_want_it(server: RedisServer) -> None:
    url = server.url().replace("redis://", "rediss://")
    refused(url, StoreUnavailable, "that it has TLS where the URL asks for that", timeout=0.5)


def test_a_certificate_of_a_stranger_is_refused() -> None:
    with serving(listen="tls") as server:
        refused(f"rediss://127.0.0.1:{server.port}", StoreUnavailable, "cannot be made as secure as it must be .*ssl_ca_certs")
        with closing(open_store(server.url())) as store:
            store.open()


def test_a_server_that_stands_still_is_away() -> None:
    with serving() as server, closing(open_store(server.url(), timeout=0.2)) as store:
        store.open()
        server.pause()
        try:
            with pytest.raises(StoreUnavailable, match=r"does not answer .*: see that it runs"):
                store.queues()
        finally:
            server.resume()
        eventually(lambda: store.queues() == [])


def test_a_server_without_memory_refuses_jobs_and_lets_workers_end_theirs() -> None:
    with serving() as server, closing(open_store(server.url())) as store:
        store.open()
        me, dead, gone = worker(store), worker(store), worker(store)
        store.insert([job() for _ in range(8)])
        ask = Ask(me, ("default",), 2)
        mine = store.claim(ask)
        store.claim(Ask(dead, ("default",), 2))
        store.claim(Ask(gone, ("default",), 2))
        server.set(maxmemory="1mb", maxmemory_policy="noeviction")
        with pytest.raises(StoreUnavailable, match=r"no memory left .*: raise its maxmemory, or delete old jobs"):
            store.insert([job()])
        with pytest.raises(StoreUnavailable, match="no memory left"):
            store.insert([job() for _ in range(5_000)])
        assert store.beat(me, [Report(each.id, each.claim, "1") for each in mine]).alive
        ends = [Ended(mine[0].id, 1, Succeeded()), Ended(mine[1].id, 1, Again(Failure("E", "it broke"), 1))]
        turn = store.finish(me, ends, ask)
        assert (len(turn.counted), len(turn.claimed)) == (2, 2)
        store.leave(gone)
        store.expire(dead)
        assert len(store.lost(10).lost) == 2
        store.promote(10)
        store.rest(me, True)
        server.set(maxmemory=0)
        assert len(store.insert([job()])) == 1


def test_many_jobs_come_in_together_or_not_at_all_where_memory_runs_out_meanwhile(server: RedisServer) -> None:
    with closing(open_store(server.url(prefix="many"))) as store:
        store.open()
        for room in (300_000, 1_500_000, 3_000_000):
            server.set(maxmemory=server.info("memory")["used_memory"] + room, maxmemory_policy="noeviction")
            try:
                with suppress(StoreUnavailable):
                    store.insert([job(f"{room}") for _ in range(5_000)])
            finally:
                server.set(maxmemory=0)
            assert len(store.claim(Ask(worker(store), (f"{room}",), 10_000))) in (0, 5_000)


def test_a_replica_takes_no_writes(server: RedisServer) -> None:
    with serving(primary=server) as replica, closing(open_store(server.url())) as store:
        store.open()
        with replica.client() as keys:
            eventually(lambda: keys.exists("{rota}:version"))
        with closing(open_store(replica.url(password="secret"))) as other:
            with pytest.raises(StoreUnavailable, match=r"is a replica and takes no writes .*: point the URL at the primary"):
                other.insert([job()])
            assert any("is a replica" in warning for warning in other.vitals().warnings)


def test_sentinels_that_do_not_know_the_service_are_told_apart_from_a_server_that_is_away() -> None:
    with serving(listen="tcp") as server:
        sentinel = Sentinel(server)
        try:
            sentinel.start()
            host, port = sentinel.address
            refused(f"redis+sentinel://{host}:{port}/other", StoreUnavailable, "names a server that takes writes")
            with closing(open_store(f"redis+sentinel://{host}:{port}/rota")) as store:
                assert store.insert([job()])
                assert store.queues() == ["default"]
        finally:
            sentinel.close()
    refused(f"redis+sentinel://{host}:{port}/rota", StoreUnavailable, "none of the Sentinels at")


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (redis.ResponseError("MISCONF Errors writing to the AOF file: No space left"), StoreUnavailable, "free disk"),
        (
            redis.exceptions.BusyLoadingError("Redis is loading the dataset"),
            StoreUnavailable,
            "still reading its data",
        ),
        (redis.exceptions.MasterDownError("Link with MASTER is down"), StoreUnavailable, "lost its primary"),
        (redis.ResponseError("NOREPLICAS Not enough good replicas to write."), StoreUnavailable, "min-replicas-to-write"),
        (redis.exceptions.MovedError("866 10.0.0.2:6379"), StoreError, "point the URL at the one that it names"),
        (redis.exceptions.ClusterDownError("The cluster is down"), StoreUnavailable, "cannot serve the jobs now"),
        (
            redis.exceptions.TryAgainError("Multiple keys while rehashing"),
            StoreUnavailable,
            "cannot serve the jobs now",
        ),
        (redis.ResponseError("BUSY Redis is busy running a script."), StoreUnavailable, "SCRIPT KILL"),
        (redis.ConnectionError("max number of clients reached"), StoreUnavailable, "raise maxclients"),
        (redis.ResponseError("WRONGTYPE Operation against a key"), StoreError, "see who else writes keys under this prefix"),
        (redis.exceptions.NoScriptError("No matching script."), StoreUnavailable, "it changed nothing, try again"),
        (redis.TimeoutError("Timeout reading from socket"), StoreUnavailable, "does not answer"),
        (redis.ResponseError("ERR something else"), StoreError, "refused a command: "),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else None,
)
def test_an_error_is_told_by_what_the_server_says(error: Exception, kind: type[StoreError], told: str) -> None:
    found = meaning(error, "here")
    assert type(found) is kind
    assert told in str(found)
    assert "here" in str(found)


def test_a_connection_of_the_callers_own_is_refused_with_what_to_do_instead(server: RedisServer) -> None:
    with closing(open_store(server.url())) as store, pytest.raises(NotSupported, match=r"\(an outbox\)"):
        store.dialect()


@pytest.mark.parametrize("cut", [RedisServer.kill_clients, RedisServer.restart], ids=["cut off", "restarted"])
def test_a_store_whose_connections_were_lost_goes_on(cut: Callable[[RedisServer], object]) -> None:
    with serving() as server, Rota(server.url()) as app:
        first = app.send("task", 1)
        cut(server)
        second = app.send("task", 2)
        assert {row.id for row in app.store.get([first.id, second.id])} == {first.id, second.id}


def job(queue: str = "default") -> NewJob:
    return NewJob(new_id(), "task", queue, "[[],{}]")


def worker(store: Store) -> str:
    row = WorkerRow(new_id(), "w", "here", 1, None, ["task"], 8, 60 * SECOND, "1")
    store.join(row)
    return row.id
