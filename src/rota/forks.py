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


def between(before: Callable[[], object], after: Callable[[], object]) -> None:
    """Have each fork happen between these bound methods, while their object lives; `after` is called in parent and child.

    So no other thread is in the middle of something that the child could not mend.
    """
    if not hasattr(os, "register_at_fork"):
        return
    known_before, known_after = WeakMethod(before), WeakMethod(after)

    def begin() -> None:
        if (found := known_before()) is not None:
            found()

    def end() -> None:
        if (found := known_after()) is not None:
            found()

    os.register_at_fork(before=begin, after_in_parent=end, after_in_child=end)
