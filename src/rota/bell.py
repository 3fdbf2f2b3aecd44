"""What one thread sleeps on: other threads may ring it, and files of the system may have something to read."""

from __future__ import annotations

import select
import socket
from collections.abc import Collection
from contextlib import suppress


class Bell:
    """Rings are not counted: one `wait` answers all that came before it. Owned by one thread, save for `ring`."""

    def __init__(self) -> None:
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._rung = False
        self._asleep = False

    def ring(self) -> None:
        """End the present `wait`, or the next one. Most rings meet a bell that was rung or nobody asleep, and cost nothing."""
        if not self._rung:
            self._rung = True
            if self._asleep and (sockets := self._sockets) is not None:
                with suppress(OSError):  # so many rings wait already, or it was closed
                    sockets[1].send(b".")

    def wait(self, timeout: float, *files: int) -> bool:
        """Sleep until rung or until one of the files can be read, at most `timeout` seconds; answer whether it was rung."""
        ear = self._ear()
        self._asleep = True  # before the look, so that whoever rings after it sees a sleeper
        try:
            if not self._rung and ear.fileno() in ready([ear.fileno(), *files], timeout=max(0.0, timeout))[0]:
                ear.recv(64)
        finally:
            self._asleep = False
        rung, self._rung = self._rung, False
        return rung

    def close(self) -> None:
        """Give back what `wait` needed. It may be rung all the same."""
        sockets, self._sockets = self._sockets, None
        for end in sockets or ():
            end.close()

    def _ear(self) -> socket.socket:
        if self._sockets is None:
            self._sockets = socket.socketpair()
            for end in self._sockets:
                end.setblocking(False)
        return self._sockets[0]


def ready(reading: Collection[int], writing: Collection[int] = (), timeout: float | None = None) -> tuple[list[int], list[int]]:
    """Those files, numbers of sockets and the like, that have something to read or room to write within so many seconds."""
    if not hasattr(select, "poll"):
        return select.select(reading, writing, [], timeout)[:2]  # Windows, where numbers of sockets have no limit
    poll = select.poll()
    for file in {*reading, *writing}:
        poll.register(file, (select.POLLIN if file in reading else 0) | (select.POLLOUT if file in writing else 0))
    found = poll.poll(None if timeout is None else timeout * 1000)
    # An error or a hang-up counts as both: whoever tries to read or write is told.
    return (
        [file for file, events in found if file in reading and events & ~select.POLLOUT],
        [file for file, events in found if file in writing and events & ~select.POLLIN],
    )
