"""What a supervisor is asked to do, and the waits and chances that it goes by."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

START = 300.0
"""Seconds within which a new process must have loaded the app."""
STEADY = 30.0
"""Seconds of work after which the deaths before it no longer count."""
STAGGER = 0.1
"""Seconds between the first starts, so that not all processes come to the store at once."""
FIRST = 2.0
"""Seconds for which the others wait until the first process has loaded the app: what is wrong with it is told once."""
_LONGEST = 30.0
"""Seconds that are waited at the most before another process is started."""


class Plan(Struct, frozen=True):
    """How many processes, of which command, and when to replace them. Spans are seconds."""

    command: Sequence[str]
    processes: int = 1
    name: str | None = None
    """The processes are called by this and their number."""
    shutdown_timeout: float = 30.0
    grace: float = 10.0
    """What a process may take to end beyond what its jobs were given; then it is killed."""
    silence: float = 120.0
    """For how long a process may give no sign of life."""
    max_jobs: int | None = None
    max_memory: int | None = None
    """In bytes."""
    reload: Sequence[Path] = ()
    """Directories whose Python files are watched; when one changes, all processes are replaced."""

    def names(self) -> list[str | None]:
        """What each process is to be called; `None` leaves it to the worker.

        >>> Plan(["rota"], processes=2, name="mail").names()
        ['mail-1', 'mail-2']
        """
        return [None if self.name is None else f"{self.name}-{number}" for number in range(1, self.processes + 1)]


def wait_after(deaths: int) -> float:
    """Seconds until another process is started after so many died in a row soon after their start.

    >>> [wait_after(deaths) for deaths in range(9)]
    [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    """
    return 0.0 if deaths < 2 else float(min(2 ** min(deaths - 2, 10), _LONGEST))


def about(limit: int) -> int:
    """A chance value between nine tenths of the limit and all of it, so that processes do not reach theirs together.

    >>> 900 <= about(1000) <= 1000, about(1)
    (True, 1)
    """
    return max(1, limit - int(random.random() * (limit * 0.1 + 1)))  # noqa: S311
