"""What a Redis server is set up with that would lose jobs is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from redis_servers import RedisServer, serving
from rota.stores import open_store
from rota.stores.base import Store


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with serving(users={"hosted": "on nopass ~* &* +@all -config"}) as server:
        yield server


@pytest.fixture
def store(server: RedisServer) -> Iterator[Store]:
    with closing(open_store(server.url())) as store:
        yield store


def test_a_server_that_keeps_jobs_is_not_warned_of(store: Store) -> None:
    assert store.vitals().warnings == []


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, {"maxmemory_policy": "noeviction"}, "throws jobs away without a word"),
        ({"maxmemory_policy": "volatile-ttl"}, {"maxmemory_policy": "noeviction"}, "maxmemory-policy is volatile-ttl"),
        ({"appendonly": "no"}, {"appendonly": "yes"}, "the server keeps nothing on disk: a restart loses every job"),
        ({"appendonly": "no", "save": "3600 1"}, {"appendonly": "yes", "save": ""}, "loses the jobs since its last snapshot"),
        ({"maxmemory": "1mb"}, {"maxmemory": "0"}, "90% of the 1048576 bytes of memory"),
    ],
)
def test_settings_that_lose_or_refuse_jobs_are_told(
    server: RedisServer, store: Store, wrong: dict[str, str], right: dict[str, str], told: str
) -> None:
    server.set(**wrong)
    try:
        [warning] = store.vitals().warnings
    finally:
        server.set(**right)
    assert told in warning


def test_a_server_that_keeps_its_settings_to_itself_is_not_suspected(server: RedisServer) -> None:
    server.set(appendonly="no")
    try:
        with closing(open_store(server.url(user="hosted", password="any"))) as store:
            [warning] = store.vitals().warnings
    finally:
        server.set(appendonly="yes")
    assert "last snapshot" in warning


def test_facts_tell_which_server_it_is_and_how_full(store: Store) -> None:
    facts = store.vitals().facts
    assert str(facts["server"]).startswith("Valkey 9")
    assert (facts["store"], facts["prefix"], facts["jobs"]) == ("redis", "rota", 0)
    assert int(facts["memory_bytes"]) > 0
