"""Calls of scripts: values in, what the script answered out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import redis
from msgspec import msgpack

from rota.clock import Micros
from rota.stores.redis.connections import Connections
from rota.stores.redis.scripts import calling, command, loading, script

T = TypeVar("T")

MANY = 1_000
"""Jobs that one script looks at, at most: the server does nothing else meanwhile."""

_encode = msgpack.Encoder().encode


class Client:
    """Runs scripts on the keys of one prefix. Its errors are `StoreError`s; any thread may call it."""

    def __init__(self, connections: Connections, prefix: str) -> None:
        self.connections = connections
        self.prefix = prefix
        self.base = b"{%b}" % prefix.encode()
        """What all keys begin with: the braces keep them on one node of a cluster."""

    def twin(self) -> Client:
        return Client(self.connections.twin(), self.prefix)

    def run(self, name: str, *values: object, now: Micros | None = None, packed: bytes = b"") -> bytes:
        """Run the script of this name, and answer what it packed.

        Its first value is the moment, and the others follow; `packed` comes beside them, as it is.
        """
        called = self.called(name, *values, now=now, packed=packed)
        with self.connections.lend() as wire:
            try:
                answer = wire.ask(called)
            except redis.exceptions.NoScriptError:  # the server is new, or somebody had it forget
                wire.ask(loading(script(name)))
                answer = wire.ask(called)
        assert isinstance(answer, bytes)
        return answer

    def send(self, *words: bytes) -> object:
        """Run a plain command, and answer what the server did."""
        with self.connections.lend() as wire:
            return wire.ask(command(*words))

    def called(self, name: str, *values: object, now: Micros | None = None, packed: bytes = b"") -> bytes:
        """The call of a script as it goes over the wire."""
        return calling(script(name), self.base, _encode((now, *values)), packed)

    def key(self, name: str) -> bytes:
        return b"%b:%b" % (self.base, name.encode())


def pieces(many: Iterable[T], most: int = MANY) -> Iterator[list[T]]:
    """Lists of at most so many, for one script each."""
    rest = iter(many)
    while piece := list(islice(rest, most)):
        yield piece
