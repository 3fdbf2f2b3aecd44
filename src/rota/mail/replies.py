"""What a mail server answers, fit to be shown and kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rota.codec import clean

BUSY = 421
LONGEST_WORDS = 500


class Reply:
    """What a server answered: `str` has it as `550 5.1.1 no such user`."""

    def __init__(self, code: int, text: bytes) -> None:
        self.code = code
        self.kind = code // 100
        self._text = text

    def __str__(self) -> str:
        words = " ".join(self._text.decode("utf-8", "replace").split())
        return clean(f"{self.code} {words}" if self.code > 0 else f"no SMTP reply: {words!r}", LONGEST_WORDS)


def without(secrets: Iterable[str], text: bytes) -> bytes:
    """The text with stars for secrets: some servers repeat the command that they refuse, and jobs keep what they say.

    >>> without(["c2VjcmV0"], b"unknown command AUTH PLAIN C2VJCMV0")
    b'unknown command AUTH PLAIN ***'
    """
    for secret in filter(None, secrets):
        text = re.sub(re.escape(secret.encode()), b"***", text, flags=re.IGNORECASE)
    return text
