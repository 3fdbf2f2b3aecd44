"""Callers that share a connection take turns on it: of several that enqueue at once, each may undo its own alone.

A block goes with its context to other tasks, and with copies of that to other threads, as by `asyncio.to_thread`.
The locks are this module's own, since a connection belongs to no app: several may enqueue on one.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from rota.forks import in_every_child

if TYPE_CHECKING:  # blocking callers do without it
    import asyncio

_guard = threading.Lock()
_blocking: WeakValueDictionary[int, threading.RLock] = WeakValueDictionary()
_awaited: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
"""By the connection's `id`, for not every one takes weak references. Whoever has or awaits a turn keeps both alive."""


def _begin_anew() -> None:
    """A forked child has none of the parent's other threads, so what one of those had would stay taken for ever."""
    global _guard
    _guard = threading.Lock()
    _blocking.clear()
    _awaited.clear()


in_every_child(_begin_anew)


def turn(connection: object) -> threading.RLock:
    """For a thread, which may take one within its own: a generator may be asked for the next job meanwhile."""
    with _guard:
        lock = _blocking.get(id(connection))
        if lock is None:
            lock = _blocking[id(connection)] = threading.RLock()
        return lock


def aturn(connection: object) -> asyncio.Lock:
    """For a coroutine."""
    import asyncio

    with _guard:
        lock = _awaited.get(id(connection))
        if lock is None:
            lock = _awaited[id(connection)] = asyncio.Lock()
        return lock
