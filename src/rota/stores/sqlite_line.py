"""A worker's line to a SQLite database, which is in its own process: a turn is answered as it is sent, and a watch sees every
commit of others.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from rota.bell import Bell
from rota.stores.database import Call, Row
from rota.stores.sqlite_touch import touches

_GLANCE = 0.008
"""Seconds between two looks where the system does not tell of writes. A look takes 7 microseconds and takes no lock."""
_BLIND = 0.1
"""The same where it does: a write from another system that shares the file would not be told of."""
_ALERT = 0.05
"""Seconds after a write in which to look often: the system tells of it before it is committed."""
_NEXT = 0.0005


class Watch(Protocol):
    """Sees the commits to a database."""

    def wait(self, timeout: float, bell: Bell) -> bool:
        """Sleep until the bell rings or something is committed; answer whether it was. One since the last wait ended counts."""
        ...

    def close(self) -> None: ...


class DirectLine:
    """Runs each turn as it is sent, and sleeps on a watch."""

    ahead = 1
    ample = False

    def __init__(self, send: Callable[[Sequence[Call], bool], list[list[Row]]], watch: Watch) -> None:
        self._send = send
        self._watch = watch
        self._answers: deque[list[list[Row]] | Exception] = deque()

    def send(self, calls: Sequence[Call], durable: bool) -> None:
        try:
            self._answers.append(self._send(calls, durable))
        except Exception as error:  # noqa: BLE001  # it is the answer
            self._answers.append(error)

    def answered(self) -> list[list[Row]] | None:
        if not self._answers:
            return None
        answer = self._answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self, timeout: float, bell: Bell, when_rung: Sequence[Call]) -> bool:
        if (rang := self._watch.wait(timeout, bell)) and when_rung:
            self.send(when_rung, durable=False)
        return rang

    def close(self) -> None:
        self._watch.close()


class CommitWatch:
    """Watches the file's `data_version`, which changes with every commit of another connection, of any process."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connection = connect()
        self._seen = self._version()
        self._touches = touches([path, Path(f"{path}-wal")])
        self._alert_until = 0.0

    def wait(self, timeout: float, bell: Bell) -> bool:
        deadline = time.monotonic() + timeout
        rung = False
        while True:
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            now = time.monotonic()
            if now >= deadline or rung:
                return False
            rung = self._rest(now, deadline - now, bell)

    def close(self) -> None:
        self._connection.close()
        if self._touches is not None:
            self._touches.close()

    def _rest(self, now: float, left: float, bell: Bell) -> bool:
        """Until there may be a commit to see, or the bell rings: whether it did."""
        if self._touches is None:
            return bell.wait(min(left, _GLANCE))
        if now < self._alert_until:
            return bell.wait(min(left, _NEXT))
        rung = bell.wait(min(left, _BLIND), self._touches.file)
        if self._touches.touched():
            self._alert_until = time.monotonic() + _ALERT
        return rung

    def _version(self) -> int:
        [version] = self._connection.execute("pragma data_version").fetchone()
        return int(version)


class Commits:
    """Counts the commits of a database in memory, and rings those who sleep."""

    def __init__(self) -> None:
        self.count = 0
        self.sleepers: set[Bell] = set()

    def add(self) -> None:
        self.count += 1
        for bell in tuple(self.sleepers):
            bell.ring()


class MemoryWatch:
    """Waits for the count of commits to change."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._seen = commits.count

    def wait(self, timeout: float, bell: Bell) -> bool:
        commits = self._commits
        commits.sleepers.add(bell)  # before the look, so that no commit goes by unseen
        try:
            if commits.count == self._seen:
                bell.wait(timeout)
        finally:
            commits.sleepers.discard(bell)
        seen, self._seen = self._seen, commits.count
        return seen != self._seen

    def close(self) -> None:
        pass
