"""A listener for the notifications that ring sleeping workers."""

from __future__ import annotations

import os
import select
import threading
import time

import psycopg

from rota.stores.postgres_driver import meaning


class NotifyWatch:
    """LISTENs on a connection of its own. When it is lost `wait` raises `StoreUnavailable`, and a new listener is needed."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], channel: str, place: str) -> None:
        self._connection = connection
        self._place = place
        self._stopping, self._stop = os.pipe()
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
        poll = select.poll()
        try:
            if not self._stopped:
                poll.register(self._connection.fileno(), select.POLLIN)
                poll.register(self._stopping, select.POLLIN)
            while not self._stopped:
                if self._rang():
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                poll.poll(left * 1000)
                self._connection.pgconn.consume_input()
        except psycopg.Error as error:
            raise meaning(error, self._place) from error
        return False

    def stop(self) -> None:
        with self._ending:
            self._stopped = True
            if not self._closed:
                os.write(self._stop, b".")

    def close(self) -> None:
        with self._ending:
            self._stopped = True
            if not self._closed:
                self._closed = True
                self._connection.close()
                os.close(self._stopping)
                os.close(self._stop)

    def _rang(self) -> bool:
        """Whether notifications have come; all of them are one ring."""
        rang = False
        while self._connection.pgconn.notifies() is not None:
            rang = True
        return rang
