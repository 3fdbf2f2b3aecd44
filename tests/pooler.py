"""A transaction pooler such as PgBouncer, of which there is no wheel: many clients share a few connections to a server.

Like PgBouncer with its default settings it lends a connection for a transaction, wipes nothing in between, knows nothing of
prepared statements, and refuses parameters of a connection that it does not know.
"""

from __future__ import annotations

import selectors
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlencode

PORT = 6432
KNOWN = {"user", "database", "application_name", "client_encoding", "datestyle", "timezone", "standard_conforming_strings"}
CANCEL, VERSION = 80_877_102, 196_608
IDLE = b"I"


class Pooler:
    """Listens on a socket in a directory of its own; `url` leads there."""

    def __init__(self, server: Path, size: int) -> None:
        self._server = server / ".s.PGSQL.5432"
        self._pool: SimpleQueue[Peer | None] = SimpleQueue()
        self._size = size
        self._folder = tempfile.TemporaryDirectory(prefix="rota-pooler-")
        self._door = socket.socket(socket.AF_UNIX)
        self._peers: set[Peer] = set()
        self._threads: list[threading.Thread] = []
        self._settings: list[bytes] = []
        self._closing = False
        self.transactions = 0
        """How many transactions went through."""

    def url(self, **query: str) -> str:
        return f"postgresql://postgres@/postgres?{urlencode({'host': self._folder.name, 'port': str(PORT)} | query)}"

    def start(self) -> None:
        for _ in range(self._size):
            self._pool.put(self._connected())
        self._door.bind(f"{self._folder.name}/.s.PGSQL.{PORT}")
        self._door.listen(100)
        self._begin(self._welcome, "pooler-door")

    def close(self) -> None:
        """Cut everyone off."""
        self._closing = True
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for _ in self._threads:
            self._pool.put(None)  # for those who wait for a connection
        for peer in list(self._peers):
            peer.cut()
        for thread in self._threads:
            thread.join(10)
        for peer in list(self._peers):
            peer.close()
        self._folder.cleanup()

    def _begin(self, target: object, name: str, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _welcome(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                self._begin(self._serve, "pooler-client", self._peer(client))

    def _peer(self, connection: socket.socket) -> Peer:
        peer = Peer(connection)
        self._peers.add(peer)
        return peer

    def _connected(self) -> Peer:
        """A new connection to the server, which has said its settings and all else that it says at the start."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self._server))
        body = struct.pack("!i", VERSION) + b"user\0postgres\0database\0postgres\0\0"
        connection.sendall(struct.pack("!i", len(body) + 4) + body)
        peer = self._peer(connection)
        said: list[tuple[bytes, bytes]] = []
        while not any(kind == b"Z" for kind, _ in said):
            said += peer.read()
        self._settings = [body for kind, body in said if kind == b"S"]
        return peer

    def _serve(self, client: Peer) -> None:
        server: Peer | None = None
        try:
            if not self._greeted(client):
                return
            while True:
                first = client.read()
                server = self._pool.get()
                if server is None:
                    return
                self._transaction(client, server, first)
                self._pool.put(server)
                server = None
        except (OSError, EOFError):
            pass
        finally:
            if server is not None:  # the client left in the middle: what it began is rolled back by the end of the connection
                server.close()
                self._peers.discard(server)
                if not self._closing:
                    self._pool.put(self._connected())
            client.close()
            self._peers.discard(client)

    def _greeted(self, client: Peer) -> bool:
        """Answer a client's first words, and whether it may go on."""
        version, words = client.first_words()
        if version == CANCEL:
            return False
        for name in words.split(b"\0")[:-2:2]:
            if name.decode() not in KNOWN:
                client.tell(b"E", b"SFATAL\0C08P01\0Munsupported startup parameter: " + name + b"\0\0")
                return False
        client.tell(b"R", struct.pack("!i", 0))
        for setting in self._settings:
            client.tell(b"S", setting)
        client.tell(b"K", struct.pack("!ii", 1, 1))
        client.tell(b"Z", IDLE)
        return True

    def _transaction(self, client: Peer, server: Peer, first: list[tuple[bytes, bytes]]) -> None:
        """Pass on what both say until the client has said all, and the server has answered all and is in no transaction."""
        owed = client.pass_on(first, server)
        status = IDLE
        with selectors.DefaultSelector() as ears:
            for peer in (client, server):
                ears.register(peer.connection, selectors.EVENT_READ, peer)
            while client.in_the_middle or owed or status != IDLE:
                for key, _ in ears.select():
                    if key.data is client:
                        owed += client.pass_on(client.read(), server)
                        continue
                    said = server.read()
                    server.pass_on(said, client)
                    for kind, body in said:
                        if kind == b"Z":
                            owed, status = owed - 1, body
        self.transactions += 1


class Peer:
    """One end of a connection, and what it says, message by message."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.in_the_middle = False
        """Whether it has begun to say something that a Sync will end."""
        self._heard = b""

    def first_words(self) -> tuple[int, bytes]:
        while len(self._heard) < 4 or len(self._heard) < struct.unpack("!i", self._heard[:4])[0]:
            self._hear()
        size = struct.unpack("!i", self._heard[:4])[0]
        words, self._heard = self._heard[4:size], self._heard[size:]
        return struct.unpack("!i", words[:4])[0], words[4:]

    def read(self) -> list[tuple[bytes, bytes]]:
        """What it says next: at least one message, each with its kind. Raises `EOFError` at the end and at a farewell."""
        said: list[tuple[bytes, bytes]] = []
        while not said:
            while len(self._heard) >= 5 and len(self._heard) > (size := struct.unpack("!i", self._heard[1:5])[0]):
                said.append((self._heard[:1], self._heard[5 : size + 1]))
                self._heard = self._heard[size + 1 :]
            if not said:
                self._hear()
        if any(kind == b"X" for kind, _ in said):
            raise EOFError
        return said

    def pass_on(self, said: list[tuple[bytes, bytes]], to: Peer) -> int:
        """Repeat it to the other end, and say how many times a server will answer that it is ready for more."""
        for kind, body in said:
            to.tell(kind, body)
            self.in_the_middle = kind in b"PBDEC" or (self.in_the_middle and kind != b"S")
        return sum(1 for kind, _ in said if kind in b"QS")

    def tell(self, kind: bytes, body: bytes) -> None:
        self.connection.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def cut(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.connection.close()

    def _hear(self) -> None:
        more = self.connection.recv(1 << 16)
        if not more:
            raise EOFError
        self._heard += more


@contextmanager
def pooling(server: Path, size: int) -> Iterator[Pooler]:
    pooler = Pooler(server, size)
    pooler.start()
    try:
        yield pooler
    finally:
        pooler.close()
