"""Signals that come while a command starts: held back until it is known what they mean to it.

SIGHUP ends a process or rolls a supervisor's workers; SIGINT, as Ctrl+C sends it to all processes on a terminal, ends a command
without a traceback, and a supervisor's worker leaves it to the supervisor.
"""

from __future__ import annotations

import signal

_HELD = [getattr(signal, name) for name in ("SIGHUP", "SIGINT") if hasattr(signal, name)]


def hold() -> None:
    """Have the signals wait. To be called before any other module of the command line is loaded, for that takes a while."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def release() -> None:
    """Let them come, if they came. To be called before threads are started: these and their programs would hold them on."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
