"""An app on each store, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rota import Rota


class Clock:
    """Answers the moment it was last set to."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def clocked(store_url: str, clock: Clock) -> Iterator[Rota]:
    """An app whose time stands still until the test moves it."""
    with Rota(store_url, clock=clock) as app:
        yield app


@pytest.fixture(params=["run", "eager"])
def here(request: pytest.FixtureRequest) -> Iterator[Rota]:
    """An app whose jobs end before `work` returns, with a store and without."""
    with Rota("memory://", eager=request.param == "eager") as app:
        yield app


@pytest.fixture
def memory() -> Iterator[Rota]:
    with Rota("memory://") as app:
        yield app
