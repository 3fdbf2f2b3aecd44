"""What every test may ask for: a real server, a fresh store of each kind, and nothing left over afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from fresh import fresh_url
from rota.stores import open_store
from rota.stores.base import Store

if TYPE_CHECKING:
    from redis_servers import RedisServer
    from servers import PostgresServer

pytest_plugins = ["browsing.fixtures"]

STORES = ("sqlite", "memory", "postgres", "redis")
PATIENCE = 10.0
"""How many seconds something that was closed may take to be gone."""

_servers: list[PostgresServer | RedisServer] = []
"""The servers of this process, once a test has asked for them."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests go first, in each process, so that none of them is what everything waits for at the end.

    pytest-xdist gives each process a stretch of this list to begin with, all of the same length.
    """
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items if item.get_closest_marker("slow") or item.get_closest_marker("timeout")]
    chosen, total = set(long), len(items)
    others = [item for item in items if item not in chosen]
    items.clear()
    for process in range(processes):
        first = long[process::processes]
        more = max(0, (total - len(items)) // (processes - process) - len(first))
        items += first + others[:more]
        del others[:more]
    items += others


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server a process, so that workers of pytest-xdist do not disturb each other; it starts in half a second."""
    from servers import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        _servers.append(server)
        yield server
    finally:
        if server in _servers:
            _servers.remove(server)
        server.close()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Valkey a process, likewise; it starts in a few milliseconds."""
    from redis_servers import serving

    with serving() as server:
        _servers.append(server)
        yield server
        _servers.remove(server)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of each kind."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of each kind that others can reach by SQL: other processes, and connections of their own."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    store.open()
    yield store
    store.close()


# -- nothing is left over -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a thread of Rota's, an open database file or a connection behind.

    It comes first and so ends last, when the test's own fixtures have closed what they opened.
    """
    threads, files, clients = _threads(), _files(), _clients()
    yield
    left = [
        *(f"the thread {thread.name!r}" for thread in _gone_soon(threads)),
        *(f"the open file {path}" for path in sorted(_files().values()) if path not in files.values()),
        *(f"the connection {said!r}" for said in _disconnected_soon(clients)),
    ]
    if left:
        pytest.fail("this test left behind " + ", ".join(left), pytrace=False)


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("rota")}


def _gone_soon(before: set[threading.Thread]) -> list[threading.Thread]:
    """The new threads that do not end although the test did."""
    end = monotonic() + PATIENCE
    new = _threads() - before
    for thread in new:
        thread.join(max(0.0, end - monotonic()))
    return [thread for thread in new if thread.is_alive()]


def _files() -> dict[str, str]:
    """The SQLite files that this process holds open, by descriptor, where the system tells."""
    held = {}
    folder = Path("/proc/self/fd")
    for descriptor in folder.iterdir() if folder.exists() else ():
        try:
            path = str(descriptor.readlink())
        except FileNotFoundError:  # the descriptor that listed this folder
            continue
        if ".db" in Path(path).suffix or path.endswith(("-wal", "-shm", "-journal")):
            held[descriptor.name] = path
    return held


def _clients() -> dict[tuple[int, int], str]:
    """Who is connected to which server, by numbers."""
    running = [(id(server), server) for server in _servers if server.running]
    return {(which, client): said for which, server in running for client, said in server.clients().items()}


def _disconnected_soon(before: dict[tuple[int, int], str]) -> list[str]:
    """What clients that are still connected did last. The server notices a closed connection a moment later."""
    end = monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        left = [said for client, said in _clients().items() if client not in before]
        if not left or monotonic() > end:
            return left
        pause.wait(0.001)
