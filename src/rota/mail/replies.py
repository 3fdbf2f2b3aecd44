"""What a mail server answers, fit to be shown and kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.codec import clean

if TYPE_CHECKING:
    from rota.mail.smtp import Session

BUSY = 421
"""What a server answers that has no time or closes down."""
LONGEST_WORDS = 500
"""So many characters of a server's words are told."""
_LONGEST_REPLY = 65_536
"""Bytes of one reply beyond which a server is not listened to."""


class Reply:
    """What a server answered: `str` has it as `550 5.1.1 no such user`."""

    def __init__(self, code: int, text: bytes) -> None:
        self.code = code
        self.kind = code // 100
        self._text = text

    def __str__(self) -> str:
        words = " ".join(self._text.decode("utf-8", "replace").split())
        return clean(f"{self.code} {words}" if self.code > 0 else f"no SMTP reply: {words!r}", LONGEST_WORDS)


class Replies:
    """The lines that a server sends, read until a deadline: what smtplib reads from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.pending = b""
        self._until = 0.0
        self._left = _LONGEST_REPLY

    def begin(self, until: float) -> None:
        """A reply is waited for, until then."""
        self._until = until
        self._left = _LONGEST_REPLY

    def readline(self, limit: int) -> bytes:
        while b"\n" not in self.pending and len(self.pending) < limit:
            self._session.allow(self._until)
            assert self._session.sock is not None
            more = self._session.sock.recv(4096)
            self._left -= len(more)
            if self._left < 0:
                raise OSError("it answered at endless length")
            if not more:
                break
            self.pending += more
        end = self.pending.find(b"\n") + 1 or len(self.pending)
        line, self.pending = self.pending[: min(end, limit)], self.pending[min(end, limit) :]
        return line

    def close(self) -> None:
        self.pending = b""


def without(secrets: Iterable[str], text: bytes) -> bytes:
    """The text with stars for secrets: some servers repeat the command that they refuse, and jobs keep what they say.

    >>> without(["c2VjcmV0"], b"unknown command AUTH PLAIN C2VJCMV0")
    b'unknown command AUTH PLAIN ***'
    """
    for secret in filter(None, secrets):
        text = re.sub(re.escape(secret.encode()), b"***", text, flags=re.IGNORECASE)
    return text
