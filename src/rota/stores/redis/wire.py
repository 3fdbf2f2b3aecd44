"""A connection to Redis: commands as bytes out, answers in their order back. Here alone the driver is spoken to."""

from __future__ import annotations

import redis
from redis.connection import AbstractConnection


class Wire:
    """A connection that is open. Owned by one thread at a time; its errors are the driver's."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        try:
            connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            self.close()
            raise

    def send(self, sent: bytes) -> None:
        """Send a command, and do not wait for its answer."""
        self._check()
        self._connection.send_packed_command([sent])  # type: ignore[no-untyped-call]

    def read(self) -> object:
        """The oldest answer not read yet: bytes, a whole number, `None`, or a list of these. Raises what the server says."""
        return self._connection.read_response(disable_decoding=True)

    def ask(self, sent: bytes) -> object:
        """Send a command and wait for its answer; no other may be under way."""
        self.send(sent)
        return self.read()

    @property
    def ready(self) -> bool:
        """Whether something may be read without a wait. Raises where the connection is gone."""
        self._check()
        return bool(self._connection.can_read(timeout=0))

    @property
    def quiet(self) -> bool:
        """Whether it is still there, and nothing has come that nobody asked for."""
        try:
            return not self.ready
        except redis.RedisError:
            return False

    @property
    def closed(self) -> bool:
        """Whether it was closed, by this side or because an answer was cut off."""
        return self._connection._sock is None

    @property
    def socket(self) -> int:
        """The number of its socket, to be slept on."""
        self._check()
        sock = self._connection._sock
        return -1 if sock is None else int(sock.fileno())

    def close(self) -> None:
        self._connection.disconnect()  # type: ignore[no-untyped-call]

    def _check(self) -> None:
        """The driver would connect anew, to a server that knows nothing of what was sent and who listens."""
        if self.closed:
            raise redis.ConnectionError("the connection was closed")
