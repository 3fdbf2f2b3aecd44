"""SIGHUP at the start of a command: held back until it is known whether it ends the process or rolls a supervisor's workers."""

from __future__ import annotations

import signal


def hold() -> None:
    """Have the signal wait. To be called before any other module of the command line is loaded, for that takes a while."""
    if hasattr(signal, "pthread_sigmask") and hasattr(signal, "SIGHUP"):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])


def release() -> None:
    """Let it come, if it came. To be called before threads are started: they and their programs would hold it back for ever."""
    if hasattr(signal, "pthread_sigmask") and hasattr(signal, "SIGHUP"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
