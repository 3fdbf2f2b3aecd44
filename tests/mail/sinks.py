"""Mail servers for tests: a real one that keeps what it is given, and one that misbehaves where it is told to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from working import eventually

HANG = "hang"
DROP = "drop"
DRIP = "drip"


class Sink:
    """A real mail server on a port of this machine. `letters` has what came in."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, from_the_start: bool = False, **options: Any) -> None:
        self.letters: list[Envelope] = []
        self.users: list[object] = []
        if "authenticator" in options:
            options.setdefault("auth_require_tls", False)
        context = {"ssl_context": tls} if from_the_start else {"tls_context": tls}
        told = {"port": free_port(), "ready_timeout": 10.0} | context | options
        self._controller = _Controller(self, hostname="127.0.0.1", **told)
        self._controller.start()
        self.port: int = self._controller.port

    def url(self, options: str = "", *, scheme: str = "smtp", user: str = "", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{user}{host}:{self.port}{options}"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.letters.append(envelope)
        self.users.append(session.auth_data)
        return "250 taken"

    def close(self) -> None:
        self._controller.loop.call_soon_threadsafe(self._controller.hang_up)
        self._controller.stop()


class _Controller(Controller):
    """Ends the connections that clients keep open: by itself it leaves them to the collector of garbage."""

    def factory(self) -> SMTP:
        self._spoken_to = [*getattr(self, "_spoken_to", []), super().factory()]
        return self._spoken_to[-1]

    def hang_up(self) -> None:
        for each in self._spoken_to:
            if each.transport is not None:
                each.transport.abort()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def passwords(user: str, password: str) -> Callable[..., AuthResult]:
    """An authenticator for a `Sink`."""

    def check(_server: object, _session: object, _envelope: object, _mechanism: str, given: object) -> AuthResult:
        assert isinstance(given, LoginPassword)
        right = (given.login, given.password) == (user.encode(), password.encode())
        return AuthResult(success=right, handled=False, auth_data=given.login if right else None)

    return check


@dataclass(frozen=True)
class Taken:
    sender: str
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message_id(self) -> bytes:
        return next(line for line in self.content.split(b"\r\n") if line.startswith(b"Message-ID:"))


@dataclass
class Odd:
    """A mail server that does at each step as `script` says: an answer, `HANG`, `DROP` or `DRIP`, or else what is right.

    The steps are `greeting`, the commands' first words, and `content`. A list has one entry for each time that the step comes,
    and `None` in it stands for what is right. Recipients may have answers of their own, by address.
    """

    script: dict[str, Any] = field(default_factory=dict)
    recipients: dict[str, Any] = field(default_factory=dict)
    most: int = 1_000
    """How many connections it takes at once; others hear 421."""
    extensions: tuple[str, ...] = ("8BITMIME", "SMTPUTF8")
    reads_letters: bool = True
    hangs_up_after_data: bool = False
    hold: threading.Event | None = None
    """Where set, the answer to a letter waits for it."""

    def __post_init__(self) -> None:
        self.letters: list[Taken] = []
        self.commands: list[str] = []
        self.connections = 0
        self.open = 0
        self.highest = 0
        self.turned_away = 0
        self.holding = threading.Semaphore(0)
        """Released each time that a letter has arrived and its answer is held."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._clients: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name="odd", daemon=True).start()

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._ended.set()
        if self.hold is not None:
            self.hold.set()
        # A close alone does not wake who waits in accept.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in list(self._clients):
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        eventually(lambda: not self._clients)

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._clients.add(client)
            threading.Thread(target=self._serve, args=(client,), name="odd-client", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self.open += 1
            welcome = self.open <= self.most
            self.highest = max(self.highest, self.open) if welcome else self.highest
            self.turned_away += not welcome
        try:
            if welcome:
                self._talk(client)
            else:
                client.sendall(b"421 too many connections\r\n")
        except (OSError, EOFError):
            pass
        finally:
            # Told after the close, a client could have begun another connection that was counted beside this one.
            with self._lock:
                self.open -= 1
            client.close()
            self._clients.discard(client)

    def _talk(self, client: socket.socket) -> None:
        lines = client.makefile("rb")
        self._answer(client, "greeting", "220 odd")
        sender, recipients = "", list[str]()
        while line := lines.readline():
            command = line.decode("utf-8", "replace").strip()
            self.commands.append(command if " " in command else command.upper())
            word = command.split()[0].upper()
            match word:
                case "EHLO":
                    self._answer(
                        client, word, "\r\n".join([*(f"250-{each}" for each in self.extensions), "250 HELP"]), "250-odd"
                    )
                case "MAIL":
                    sender, recipients = _address(command), []
                    self._answer(client, word, "250 ok")
                case "RCPT":
                    if self._answer(client, word, "250 ok", also=self.recipients.get(_address(command))):
                        recipients.append(_address(command))
                case "DATA":
                    right = self._answer(client, word, "354 go on")
                    if self.hangs_up_after_data:
                        return
                    if right:
                        if not self.reads_letters:
                            self._ended.wait()
                        content = _content(lines)
                        if self.hold is not None:
                            self.holding.release()
                            self.hold.wait()
                        taken = Taken(sender, tuple(recipients), content)
                        self._answer(client, "content", "250 taken", first_do=lambda taken=taken: self.letters.append(taken))
                case "QUIT":
                    client.sendall(b"221 bye\r\n")
                    return
                case _:
                    self._answer(client, word, "250 ok")

    def _answer(
        self,
        client: socket.socket,
        step: str,
        right: str,
        first: str = "",
        also: Any = None,
        first_do: Callable[[], None] = lambda: None,
    ) -> bool:
        """Do what the script says, and answer whether that was what is right; `first_do` is done before that is said."""
        told = also if also is not None else self.script.get(step)
        if isinstance(told, list):
            with self._lock:
                told = told.pop(0) if told else None
        match told:
            case None:
                first_do()
                client.sendall("".join(f"{each}\r\n" for each in (first, right) if each).encode())
                return True
            case "hang":
                self._ended.wait()
                raise EOFError
            case "drop":
                raise EOFError
            case "drip":
                while not self._ended.wait(0.05):
                    client.sendall(b"2")
                raise EOFError
            case _:
                client.sendall(f"{told}\r\n".encode())
                if str(told).startswith("421"):
                    raise EOFError
                return False


def _address(command: str) -> str:
    return command.partition("<")[2].partition(">")[0]


def _content(lines: Any) -> bytes:
    content = b""
    while (line := lines.readline()) != b".\r\n":
        if not line:
            raise EOFError
        content += line.removeprefix(b".")
    return content


@contextmanager
def odd(script: dict[str, Any] | None = None, **options: Any) -> Iterator[Odd]:
    server = Odd(script or {}, **options)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def sink(tls: ssl.SSLContext | None = None, **options: Any) -> Iterator[Sink]:
    server = Sink(tls, **options)
    try:
        yield server
    finally:
        server.close()
