"""What an object or a module must do in a forked child, before anything else there can use it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn
from weakref import WeakMethod

log = logging.getLogger("rota")


def in_child(method: Callable[[], object]) -> None:
    """Call a bound method in every child that is forked while its object lives.

    A child has the parent's objects but none of its threads, so a lock that one of those held would stay taken for ever.
    """
    known = WeakMethod(method)

    def call() -> None:
        if (found := known()) is not None:
            found()

    in_every_child(call)


def in_every_child(call: Callable[[], object]) -> None:
    """Call a function in every child that is forked from now on: for what a module keeps for the whole process."""
    if hasattr(os, "register_at_fork"):  # else there is no fork
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


def end_fork(task: str, job: str, well: bool) -> NoReturn:
    """End a process that a body forked and that came back from the body: whoever runs bodies is its parent.

    Going on it would take for itself what is meant for that, from pipes and event loops that both have.
    """
    with suppress(Exception):
        log.warning(
            "%s (job %s) forked, and came back in the child as well, which ends: call os._exit there, or use subprocess",
            task,
            job,
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0 if well else 1)
