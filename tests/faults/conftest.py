"""A store, a ledger and a fleet of processes for each fault; Postgres servers of their own for what ends a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import Fleet

from fresh import fresh_url
from rota import Rota
from servers import PostgresServer


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of each kind that others can reach."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def url(shared_url: str) -> str:
    """Of a store that several processes can share."""
    return shared_url


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def app(url: str) -> Iterator[Rota]:
    """The app as a process without the tasks' code has it."""
    with Rota(url) as app:
        yield app


@pytest.fixture
def fleet(tmp_path: Path, url: str, ledger: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url, ledger)
    try:
        yield fleet
    finally:
        fleet.close()


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that the test may stop and kill."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()
