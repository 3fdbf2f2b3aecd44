"""Apps on a real store, and programs with a worker beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beside.program import Programs
from conftest import fresh_url
from rota import Rota


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    with Rota(store_url) as app:
        yield app


@pytest.fixture(params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty store that several processes can share, of each kind."""
    with fresh_url(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def programs(shared_url: str, tmp_path: Path) -> Iterator[Programs]:
    started = Programs(shared_url, tmp_path)
    yield started
    started.close()
