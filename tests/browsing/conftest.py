"""The guestbook that a module of tests serves, as its tests want it."""

from __future__ import annotations

import pytest

from browsing.guestbook import Guestbook, Letters


@pytest.fixture
def url(served: tuple[Guestbook, Letters]) -> str:
    return served[0].url


@pytest.fixture
def letters(served: tuple[Guestbook, Letters]) -> Letters:
    return served[1]
