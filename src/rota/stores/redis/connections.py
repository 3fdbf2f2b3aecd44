"""A process's connections to Redis: few, opened when needed, and looked at before they are used again."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from msgspec import Struct
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection
from redis.retry import Retry
from redis.sentinel import Sentinel

from rota.errors import StoreError, StoreUnavailable
from rota.stores.exits import at_exit
from rota.stores.redis.errors import meaning
from rota.stores.redis.url import Address
from rota.stores.redis.wire import Wire

_PATIENCE = 30.0
"""For how many seconds a thread waits until another gives a connection back."""

_SILENCE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}
"""What a network does that swallows packets without a word is noticed in half a minute to a minute, not after hours."""


class Waits(Struct, frozen=True):
    """For how many seconds a connection is waited for, and an answer."""

    connect: float
    answer: float


class Connections:
    """Lends connections, the one used last first. The driver's errors leave as Rota's."""

    def __init__(self, address: Address, waits: Waits, max_size: int) -> None:
        self._address = address
        self._waits = waits
        self._max_size = max_size
        self.place = address.place
        self._start()
        at_exit(self)

    def _start(self) -> None:
        self._given_back = threading.Condition()
        self._idle: list[Wire] = []
        self._open = 0
        self._round = 0
        self._pid = os.getpid()  # last: it tells other threads that all is ready

    def twin(self) -> Connections:
        return Connections(self._address, self._waits, self._max_size)

    @contextmanager
    def lend(self) -> Iterator[Wire]:
        """A connection for one exchange. One in which something is left to be read does not come back."""
        wire, lent_in = self._take()
        try:
            with self.errors():
                yield wire
        except BaseException as error:
            if not isinstance(error.__cause__, redis.ResponseError):
                wire.close()  # an answer may come that nobody waits for any more
            raise
        finally:
            self._give_back(wire, lent_in)

    def connect(self) -> Wire:
        """A new connection that is the caller's own."""
        with self.errors():
            return Wire(self._made())

    def close(self) -> None:
        """Close what is idle now, and the rest when it comes back."""
        self._after_fork()
        with self._given_back:
            idle, self._idle = self._idle, []
            self._open -= len(idle)
            self._round += 1
            self._given_back.notify_all()
        for wire in idle:
            wire.close()

    close_idle = close

    @contextmanager
    def errors(self) -> Iterator[None]:
        """The driver's errors leave as Rota's."""
        try:
            yield
        except redis.RedisError as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> StoreError:
        if isinstance(error, redis.exceptions.ReadOnlyError):
            self.close()  # another server takes the writes now, and only a new connection can lead there
        return meaning(error, self.place)

    def _take(self) -> tuple[Wire, int]:
        self._after_fork()
        while True:
            with self._given_back:
                if not self._given_back.wait_for(lambda: self._idle or self._open < self._max_size, _PATIENCE):
                    raise StoreUnavailable(
                        f"all {self._max_size} connections to Redis at {self.place} have been busy for {_PATIENCE:g} s: "
                        "end what holds them, or raise max_size"
                    )
                lent_in = self._round
                known = self._idle.pop() if self._idle else None
                self._open += known is None
            try:
                if known is None:
                    return self.connect(), lent_in
                if known.quiet:  # else the server went away
                    return known, lent_in
            except BaseException:
                self._forget()
                raise
            known.close()
            self._forget()

    def _give_back(self, wire: Wire, lent_in: int) -> None:
        if not wire.closed:
            with self._given_back:
                if lent_in == self._round:
                    self._idle.append(wire)
                    self._given_back.notify()
                    return
        wire.close()
        self._forget()

    def _forget(self) -> None:
        with self._given_back:
            self._open -= 1
            self._given_back.notify()

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._start()  # the connections are the parent's, and the driver leaves them open for it

    def _made(self) -> AbstractConnection:
        address, waits = self._address, self._waits
        settings: dict[str, Any] = {
            "db": address.db,
            "username": address.username,
            "password": address.password,
            "socket_timeout": waits.answer,
            "socket_connect_timeout": waits.connect,
            "retry": Retry(NoBackoff(), 0),  # whoever sent a claim must hear that its answer is lost
            "protocol": 2,
            "client_name": "rota",
        }
        if address.path:
            settings.pop("socket_connect_timeout")
            return redis.UnixDomainSocketConnection(path=address.path, **settings)  # type: ignore[no-untyped-call, abstract]
        settings |= {"socket_keepalive": True, "socket_keepalive_options": _keepalive()}
        kind: type[AbstractConnection] = redis.Connection
        if address.tls is not None:
            kind = redis.SSLConnection
            settings |= address.tls
        host, port = self._primary() if address.sentinel else address.hosts[0]
        return kind(host=host, port=port, **settings)  # type: ignore[call-arg]  # both have a host and a port

    def _primary(self) -> tuple[str, int]:
        """The server that takes writes now, as one of the Sentinels tells."""
        address, waits = self._address, self._waits
        assert address.sentinel is not None
        asked = {
            "username": address.sentinel.username,
            "password": address.sentinel.password,
            "socket_timeout": waits.connect,
            "socket_connect_timeout": waits.connect,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
        }
        if address.tls is not None:
            asked |= {"ssl": True, **address.tls}
        sentinels = Sentinel(address.hosts, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
        try:
            host, port = sentinels.discover_master(address.sentinel.service)  # type: ignore[no-untyped-call]
            return str(host), int(port)
        finally:
            for client in sentinels.sentinels:
                client.close()


def _keepalive() -> dict[int, int]:
    """The options that this system knows, by their numbers."""
    return {getattr(socket, name): value for name, value in _SILENCE.items() if hasattr(socket, name)}
