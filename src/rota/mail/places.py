"""Where mail goes, as a URL says it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from rota.errors import ConfigError

TLS = Literal["starttls", "tls", "none"]
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OPTIONS = frozenset({"tls", "cafile", "hello"})
_HELLO = re.compile(r"[A-Za-z0-9.:\[\]_-]{1,255}")
_EXAMPLE = "smtp://user:password@smtp.example.com:587"


class Server(Struct, frozen=True):
    """A mail server, and how it is spoken to."""

    host: str
    port: int
    tls: TLS
    user: str | None = None
    password: str | None = None
    cafile: str | None = None
    hello: str | None = None
    """The name to greet it with."""

    def __repr__(self) -> str:
        """Without the password, for it may stand in a traceback that shows variables."""
        return f"<Server {self.name} tls={self.tls}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("tls", self.tls)]

    @property
    def name(self) -> str:
        """What it is called in messages: without the password."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Folder(Struct, frozen=True):
    """A folder, in which each letter is a file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)


class Console(Struct, frozen=True):
    """The standard output."""

    @property
    def name(self) -> str:
        return "console"


Place = Server | Folder | Console


def place_of(url: str) -> Place:
    """Where the URL leads. Raises `ConfigError`, in which no password is shown.

    >>> place_of("smtp://smtp.example.com")
    <Server smtp.example.com:587 tls=starttls>
    """
    scheme = url.partition(":")[0].lower() if isinstance(url, str) else ""
    match scheme:
        case "smtp" | "smtps":
            return _server(url, scheme)
        case "file":
            parts = urlsplit(url)
            if parts.netloc not in ("", "localhost") or parts.path in ("", "/"):
                raise ConfigError(
                    "the URL of a folder is written with three slashes, file:///var/mail, or as file:mail from here"
                )
            return Folder(Path(unquote(parts.path)))
        case "console":
            return Console()
    raise ConfigError(f"the mail URL leads nowhere that is known: write {_EXAMPLE}, file:///var/mail or console:")


def _server(url: str, scheme: str) -> Server:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # whose words have a part of the URL in them, perhaps of its password
        raise ConfigError(f"the mail URL cannot be read: write {_EXAMPLE}, with % escapes in user and password") from None
    if not host or parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(f"the mail URL names no server alone: write {_EXAMPLE}, with % escapes in user and password")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(given.keys() - _OPTIONS):
        # What is no name may be the end of a password with a question mark in it.
        named = f"the option {unknown[0]}" if unknown[0].isalnum() else "an option that is none"
        raise ConfigError(f"the mail URL has {named}, and there are {', '.join(sorted(_OPTIONS))}")
    if not _HELLO.fullmatch(given.get("hello", "shop")):
        raise ConfigError("the mail URL says hello=, and it is a host's name, such as shop.example.org")
    if (parts.username is None) != (parts.password is None):
        raise ConfigError(f"the mail URL has a user or a password without the other: write {_EXAMPLE}")
    tls = _tls(given.get("tls"), scheme, host)
    cafile = given.get("cafile")
    if cafile is not None and not Path(cafile).is_file():
        raise ConfigError(f"the mail URL names the cafile {cafile}, and there is no such file")
    return Server(
        host,
        port or {"tls": 465, "starttls": 587, "none": 25}[tls],
        tls,
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
        cafile,
        given.get("hello"),
    )


def _tls(asked: str | None, scheme: str, host: str) -> TLS:
    if scheme == "smtps":
        if asked not in (None, "tls"):
            raise ConfigError(f"the mail URL says smtps and tls={asked}: smtps is tls=tls")
        return "tls"
    if asked is None:
        return "none" if host in _LOOPBACK else "starttls"
    if asked not in ("starttls", "tls", "none"):
        raise ConfigError(f"the mail URL says tls={asked}, and it is starttls, tls or none")
    return cast("TLS", asked)
