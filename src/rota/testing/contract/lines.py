"""Lines to a store, for the tests that use them as a worker does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from time import monotonic

import pytest

from rota.bell import Bell
from rota.model import Turn
from rota.stores.base import Line, Store

SOON = 10.0
"""Seconds within which what must come has come."""


@contextmanager
def line_of(store: Store) -> Iterator[Line]:
    line = store.line()
    try:
        yield line
    finally:
        line.close()


def rung(line: Line, within: float) -> bool:
    """Wait on a line, without a bell that anyone rings."""
    with closing(Bell()) as bell:
        return line.wait(within, bell)


def quieted(line: Line) -> None:
    """Take the rings that came before what the test does."""
    end = monotonic() + SOON
    while rung(line, 0.02):
        if monotonic() > end:
            pytest.fail("the line rings without end although nothing happens")


def answered(line: Line) -> Turn:
    """The answer to the oldest turn under way."""
    end = monotonic() + SOON
    while (turn := line.answered()) is None:
        assert monotonic() < end, "no answer comes"
        rung(line, 0.1)
    return turn
