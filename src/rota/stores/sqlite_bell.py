"""Listeners that see every commit to a SQLite database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

_GLANCE = 0.008
"""Seconds between two looks. A look takes 7 microseconds, reads no table and takes no lock."""


class CommitWatch:
    """Watches the file's `data_version`, which changes with every commit of another connection, of any process."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        self._stopped = threading.Event()
        self._seen = self._version()

    def wait(self, timeout: float) -> bool:
        """A commit since the last wait ended rings at once, so none is missed between a look at the queue and the wait."""
        deadline = time.monotonic() + timeout
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            left = deadline - time.monotonic()
            if left <= 0 or self._stopped.wait(min(left, _GLANCE)):
                return False

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._connection.close()

    def _version(self) -> int:
        [version] = self._connection.execute("pragma data_version").fetchone()
        return int(version)


class Commits:
    """Counts the commits of a database in memory."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0

    def add(self) -> None:
        with self.changed:
            self.count += 1
            self.changed.notify_all()


class MemoryWatch:
    """Waits for the count of commits to change."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._seen = commits.count
        self._stopped = False

    def wait(self, timeout: float) -> bool:
        with self._commits.changed:
            rang = self._commits.changed.wait_for(lambda: self._stopped or self._commits.count != self._seen, timeout)
            self._seen = self._commits.count
            return rang and not self._stopped

    def stop(self) -> None:
        with self._commits.changed:
            self._stopped = True
            self._commits.changed.notify_all()

    def close(self) -> None:
        pass
