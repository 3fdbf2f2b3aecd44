"""Listeners that see every commit to a SQLite database."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rota.stores.sqlite_touch import touches

_GLANCE = 0.008
"""Seconds between two looks where the system does not tell of writes. A look takes 7 microseconds and takes no lock."""
_BLIND = 0.1
"""The same where it does: a write from another system that shares the file would not be told of."""
_ALERT = 0.05
"""Seconds after a write in which to look often: the system tells of it before it is committed."""
_NEXT = 0.0005


class CommitWatch:
    """Watches the file's `data_version`, which changes with every commit of another connection, of any process."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connection = connect()
        self._stopped = False
        self._seen = self._version()
        self._touches = touches([path, Path(f"{path}-wal")])
        self._alert_until = 0.0

    def wait(self, timeout: float) -> bool:
        """A commit since the last wait ended rings at once, so none is missed between a look at the queue and the wait."""
        deadline = time.monotonic() + timeout
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            now = time.monotonic()
            if now >= deadline or self._stopped:
                return False
            self._rest(now, deadline - now)

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self._connection.close()
        if self._touches is not None:
            self._touches.close()

    def _rest(self, now: float, left: float) -> None:
        """Until there may be a commit to see."""
        if self._touches is None:
            time.sleep(min(left, _GLANCE))
        elif now < self._alert_until:
            time.sleep(_NEXT)
        elif self._touches.wait(min(left, _BLIND)):
            self._alert_until = time.monotonic() + _ALERT

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
