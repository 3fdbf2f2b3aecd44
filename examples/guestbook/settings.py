"""What the guestbook is set up with: the environment, and the options of the command line before it."""

from __future__ import annotations

import os
import secrets
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

OUTBOX = "file:guestbook-outbox"
SECRET_FILE = "guestbook.secret"  # noqa: S105  # the name of a file
SHORTEST_SECRET = 16


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that differs from one guestbook to another."""

    database: str = "sqlite:///guestbook.db"
    """A SQLite file, or `postgresql://user:password@host/name`."""
    mail: str = OUTBOX
    """`smtp://user:password@host:587`, or a folder for development."""
    sender: str = "The guestbook <guestbook@example.org>"
    secret: str
    """Signs cookies and links: who knows it can sign in as anybody."""
    url: str = "http://127.0.0.1:3000"
    """Where people find the guestbook. Letters link there, and never to what a request says its host is."""
    form_limit: int = 60
    """How often each form may be sent from one network address in ten minutes."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""

    @property
    def https(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def outbox(self) -> Path | None:
        """The folder in which letters end, where no mail server is set."""
        return Path(unquote(urlsplit(self.mail).path)) if self.mail.startswith("file:") else None

    @property
    def shows_outbox(self) -> bool:
        """Whether a page shows those letters to everybody, with the links in them that set passwords.

        It does where people find the guestbook on their own computer, which is where it is developed.
        """
        return self.outbox is not None and _is_own_computer(urlsplit(self.url).hostname or "")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line and the environment ask for."""

    host: str
    port: int
    proxy: str | None
    url: str | None
    database: str
    mail: str
    sender: str
    secret: str | None
    form_limit: int

    def settings(self, bound_to: int) -> Settings:
        return Settings(
            database=self.database,
            mail=self.mail,
            sender=self.sender,
            secret=self.secret or kept_secret(Path(SECRET_FILE)),
            url=(self.url or f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{bound_to}").rstrip("/"),
            form_limit=self.form_limit,
        )


def asked(words: Sequence[str] | None = None) -> Asked:
    """What is asked for. Ends the program at `--help`, and with status 2 at an option that cannot be right."""
    parser = ArgumentParser(prog="guestbook", description="Serve a guestbook, with a worker beside the server for its mail.")
    told = os.environ.get
    parser.add_argument("--host", default="127.0.0.1", help="the network address to listen on (%(default)s)")
    parser.add_argument("--port", type=_port, default=3000, help="the port; 0 for any that is free (%(default)s)")
    parser.add_argument("--proxy", help="the network address of the proxy in front, whose X-Forwarded-For is believed")
    parser.add_argument(
        "--url",
        type=_address,
        default=told("GUESTBOOK_URL"),
        help="where people find it, for links in letters, such as https://guestbook.example.com; or GUESTBOOK_URL",
    )
    parser.add_argument(
        "--database",
        default=told("GUESTBOOK_DATABASE", Settings.database),
        help="sqlite:///file or postgresql://user:password@host/name; or GUESTBOOK_DATABASE (%(default)s)",
    )
    parser.add_argument(
        "--smtp",
        default=told("GUESTBOOK_SMTP", OUTBOX),
        metavar="URL",
        help="smtp://user:password@host:587, or file:folder, for development; or GUESTBOOK_SMTP (%(default)s)",
    )
    parser.add_argument(
        "--sender",
        default=told("GUESTBOOK_SENDER", Settings.sender),
        help="who the letters are from; or GUESTBOOK_SENDER (%(default)s)",
    )
    parser.add_argument(
        "--form-limit",
        type=_number,
        default=Settings.form_limit,
        metavar="NUMBER",
        help="how often each form may be sent from one network address in ten minutes (%(default)s)",
    )
    parser.epilog = f"GUESTBOOK_SECRET signs cookies and links; without it, one is made and kept in {SECRET_FILE}."
    given = parser.parse_args(words)
    secret = told("GUESTBOOK_SECRET")
    if secret and len(secret) < SHORTEST_SECRET:
        parser.error(f"GUESTBOOK_SECRET can be guessed: give it {SHORTEST_SECRET} characters or more, at random")
    return Asked(
        host=given.host,
        port=given.port,
        proxy=given.proxy,
        url=given.url,
        database=given.database,
        mail=given.smtp,
        sender=given.sender,
        secret=secret,
        form_limit=given.form_limit,
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError(f"{text!r} is no port: it is a number from 0 to 65535")
    return int(text)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _address(text: str) -> str:
    """Links in letters begin with it, so one that leads nowhere would be found out by those who get them."""
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.path in ("", "/")
    except ValueError:
        whole = False
    if not whole or parts.query or parts.fragment:
        raise ArgumentTypeError(f"{text!r} is not where a guestbook is found: write https://guestbook.example.com")
    return text


def _is_own_computer(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def kept_secret(path: Path) -> str:
    """The secret in this file, which is made where it is missing: links in letters outlive the process."""
    if not path.exists():
        made = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        with suppress(FileExistsError):  # another process was quicker, and its secret counts
            os.link(made, path)
        made.unlink()
    return path.read_text("utf-8")
