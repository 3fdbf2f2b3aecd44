"""The end of a worker's process, although something that a body began runs on."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Collection

log = logging.getLogger("rota")
_PATIENCE = 5.0
"""Seconds that Python's own way to the end has."""


def see_to_the_end(status: int, known: Collection[threading.Thread]) -> None:
    """Where threads besides those `known` run on, see to it that the process ends in a few seconds, with this status.

    To be called as the last thing that a program does, so that what else it does at its end has the time to be done.
    At its end Python waits for threads such as those of `asyncio.to_thread`. What a body that was handed back left there could
    hold the process for ever, and a supervisor would have to kill it.
    """
    left = [thread for thread in threading.enumerate() if thread not in known]
    if left:
        threading.Thread(target=_watch, args=(status, left), name="end-watch", daemon=True).start()


def _watch(status: int, left: Collection[threading.Thread]) -> None:
    threading.Event().wait(_PATIENCE)
    names = ", ".join(thread.name for thread in left if thread.is_alive())
    log.warning("the process ends although threads that bodies began run on: %s", names)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
