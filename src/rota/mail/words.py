"""The text of headers, written so that it holds to ASCII and to short lines whatever is in it.

The rules are those of RFC 2047 and 5322. They are written out here since the standard library's folding has differed from
version to version, and has had words that it folded wrongly or for ever.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from string import ascii_letters, digits

from rota.mail.errors import MessageRefused

SOFT = 78
LONGEST = 998
"""How long a line should be, and may be, without its end."""

_WORD = 75 - len("=?utf-8?q??=")
_PLAIN = frozenset(ascii_letters + digits + "!*+-/")


def text_header(name: str, value: str) -> str:
    """A header of plain text as it goes over the wire; text that is not ASCII, or has no place to fold, is encoded.

    >>> text_header("Subject", "Grüße an alle")
    'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe_an_alle?='
    """
    if value.isascii() and "=?" not in value:
        folded = fold(f"{name}: {value}")
        if all(len(line) <= LONGEST for line in folded.split("\n")):
            return folded
    return f"{name}: {encoded(value, len(name) + 2)}"


def exact_header(name: str, value: str) -> str:
    """A header for machines, in which no word can be encoded: raises `MessageRefused` where one would have to be."""
    if not value.isascii() or _longest(value) >= LONGEST - len(name) - 100:
        raise MessageRefused(f"{name}: it must be ASCII in words of fewer than {LONGEST - len(name) - 100} characters")
    return fold(f"{name}: {value}")


def encoded(text: str, taken: int = 0) -> str:
    """The text as encoded words, one a line; `taken` is how much of the first line is in use.

    Where most of it is ASCII people can still read it in the row of a job; other scripts are shorter in base64.
    """
    if 3 * sum(not character.isascii() for character in text) <= len(text):
        parts = _packed([_quoted(character) for character in text], taken, _WORD, len)
        return "\n ".join(f"=?utf-8?q?{part}?=" for part in parts)
    parts = _packed(list(text), taken, _WORD // 4 * 3, lambda piece: len(piece.encode()))
    return "\n ".join(f"=?utf-8?b?{b64encode(part.encode()).decode()}?=" for part in parts)


def fold(line: str) -> str:
    """The line with breaks before spaces where it would be too long; no line of it is empty or of spaces alone."""
    start = line.find(":") + 2  # the space after the name stays where it is
    lines = []
    while len(line) > SOFT:
        cut = _last_place(line, start) or _first_place(line, start)
        if not cut:
            break
        lines.append(line[:cut])
        line, start = line[cut:], 1
    return "\n".join([*lines, line])


def _last_place(line: str, start: int) -> int | None:
    return next((place.start() for place in reversed(list(_PLACE.finditer(line, start, SOFT + 1)))), None)


def _first_place(line: str, start: int) -> int | None:
    found = _PLACE.search(line, start)
    return found.start() if found else None


_PLACE = re.compile(r"(?<=[^ \t])[ \t](?=[ \t]*[^ \t])")
"""The first space after a word, where another word follows."""


def _longest(value: str) -> int:
    return max((len(word) for word in value.split()), default=0)


def _packed(pieces: list[str], taken: int, room: int, weigh: Callable[[str], int]) -> Iterator[str]:
    """The pieces, in order, in as few parts as hold `room` each."""
    part: list[str] = []
    left = max(room // 3, room - taken)
    for piece in pieces:
        if part and weigh(piece) > left:
            yield "".join(part)
            part, left = [], room
        part.append(piece)
        left -= weigh(piece)
    yield "".join(part)


def _quoted(character: str) -> str:
    if character in _PLAIN:
        return character
    return "_" if character == " " else "".join(f"={byte:02X}" for byte in character.encode())
