"""An app on a real store for each test of the worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import isolated_bodies
import pytest

import never_imported
from rota import Rota


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def isolated(store_url: str) -> Iterator[Rota]:
    """The app of `isolated_bodies`, whose tasks stand at the top of a module, where their own processes find them."""
    isolated_bodies.app.url = store_url
    with isolated_bodies.app as app:
        yield app


@pytest.fixture
def endless_import(store_url: str) -> Iterator[Rota]:
    """The app of `never_imported`, whose isolated tasks' processes never get to a body."""
    never_imported.app.url = store_url
    with never_imported.app as app:
        yield app


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"
