"""Every store keeps the contract. The fixture `store` brings them one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fresh import ready_url
from rota.testing.contract import StoreContract


@pytest.fixture(params=["sqlite", "memory", "postgres", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ready_url(request.param, request, tmp_path) as url:
        yield url


class TestStores(StoreContract):
    pass
