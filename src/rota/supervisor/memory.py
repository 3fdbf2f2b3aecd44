"""How much memory another process has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MEASURABLE = sys.platform != "win32"
"""Whether this system tells it here."""


def resident(pid: int) -> int | None:
    """How many bytes of the process are in memory; `None` where it is gone or the system does not tell.

    On Linux from `/proc`, elsewhere from `ps`, which every Unix has.

    >>> (resident(os.getpid()) or 0) > 1_000_000
    True
    """
    if sys.platform == "win32":
        return None
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None if sys.platform == "linux" else _told_by_ps(pid)


def _told_by_ps(pid: int) -> int | None:
    try:
        told = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=5)
        return int(told.stdout) * 1024
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
