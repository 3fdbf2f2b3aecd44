"""What an object must do in a forked child, before anything else there can use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod


def in_child(method: Callable[[], object]) -> None:
    """Call a bound method in every child that is forked while its object lives.

    A child has the parent's objects but none of its threads, so a lock that one of those held would stay taken for ever.
    """
    if not hasattr(os, "register_at_fork"):
        return  # where there is no fork
    known = WeakMethod(method)

    def call() -> None:
        if (found := known()) is not None:
            found()

    os.register_at_fork(after_in_child=call)
