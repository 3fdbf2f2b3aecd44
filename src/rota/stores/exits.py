"""What is open when the program ends, and nobody closed before: closed there, as far as nobody uses it."""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class Closable(Protocol):
    """Has something open."""

    def close_idle(self) -> None:
        """Close what nobody uses now, and wait for nobody."""
        ...


_known: WeakSet[Closable] = WeakSet()


def at_exit(thing: Closable) -> None:
    """Have this closed at the end of the program, if it is still there."""
    _known.add(thing)


@atexit.register
def _close_all() -> None:
    for thing in list(_known):
        with suppress(Exception):  # nobody is left who could do anything about it
            thing.close_idle()
