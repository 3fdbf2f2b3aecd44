"""A listener for the notifications that ring sleeping workers."""

from __future__ import annotations

import select
import selectors
import socket
import threading
import time

import psycopg

from rota.stores.postgres_driver import meaning


class NotifyWatch:
    """LISTENs on a connection of its own. When it is lost `wait` raises `StoreUnavailable`, and a new listener is needed."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], channel: str, place: str) -> None:
        self._connection = connection
        self._place = place
        self._stopping, self._stop = socket.socketpair()
        self._stopped = False
        self._closed = False
        self._ending = threading.Lock()
        try:
            connection.execute(f"listen {channel}")
        except psycopg.Error as error:
            self.close()
            raise meaning(error, place) from error

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        try:
            while not self._stopped:
                if self._rang():
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._sleep(left)
        except psycopg.Error as error:
            raise meaning(error, self._place) from error
        return False

    def stop(self) -> None:
        with self._ending:
            self._stopped = True
            if not self._closed:
                self._stop.send(b".")

    def close(self) -> None:
        with self._ending:
            self._stopped = True
            if not self._closed:
                self._closed = True
                self._connection.close()
                self._stopping.close()
                self._stop.close()

    def _sleep(self, seconds: float) -> None:
        """Wait until the server says something or someone stops this, and take in what was said."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.fileno(), selectors.EVENT_READ)
            selector.register(self._stopping, selectors.EVENT_READ)
            selector.select(seconds)
        self._connection.pgconn.consume_input()

    def _rang(self) -> bool:
        """Whether notifications have come; all of them are one ring."""
        rang = False
        while self._connection.pgconn.notifies() is not None:
            rang = True
        return rang


def readable(descriptor: int) -> bool:
    """Whether there is something to read on a socket now."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])  # Windows, where numbers of sockets have no limit
