"""Apps on a real store, and programs with a worker beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beside.program import Programs
from fresh import fresh_url
from rota import Rota


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rota]:
    with fresh_url(request.param, request, tmp_path) as url, Rota(url) as app:
        yield app


@pytest.fixture(params=["sqlite", "postgres"])
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Programs]:
    with fresh_url(request.param, request, tmp_path) as url:
        started = Programs(url, tmp_path)
        yield started
        started.close()
