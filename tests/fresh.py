"""Empty stores for tests, of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redis_servers import RedisServer
    from servers import PostgresServer

_numbers = count(1)


@contextmanager
def fresh_url(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of an empty store of this kind, which is gone afterwards."""
    match kind:
        case "sqlite":
            yield f"sqlite:///{folder / 'jobs.db'}"
        case "memory":
            yield "memory://"
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            with server.schema() as url:
                yield url
        case "redis":
            redis: RedisServer = request.getfixturevalue("redis_server")
            prefix = f"test{next(_numbers)}"
            yield redis.url(prefix=prefix)
            with redis.client() as client:
                for key in client.scan_iter(count=1_000):
                    assert key.startswith("{"), f"the store wrote {key!r}, which does not begin with a prefix"
                    if key.startswith(f"{{{prefix}}}:"):
                        client.delete(key)
        case _:
            raise ValueError(f"no store is called {kind!r}")


@contextmanager
def ready_url(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The same, for tests that need no more than a store whose tables are there: it may have been used and emptied."""
    if kind != "postgres":
        with fresh_url(kind, request, folder) as url:
            yield url
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.tables() as url:
        yield url


@contextmanager
def fresh_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of an empty database of this kind, for programs that keep tables of their own beside the store's."""
    if kind != "postgres":
        with fresh_url(kind, request, folder) as url:
            yield url
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        yield url
