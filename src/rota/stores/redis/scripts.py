"""The Lua scripts: each a small file, with what it needs of the prelude before it."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

_FOLDER = Path(__file__).with_name("scripts")

_PRELUDE = (
    *("ground", "together", "lines", "counting", "rooms", "ending", "jobs"),
    *("claiming", "workers", "limits", "looking"),
)
"""The files of the prelude, in the order in which one needs those before it."""

_COMMENT = re.compile(r"--[^\n]*\n?")
_MAKING = re.compile(r"^local (?:function )?(\w+(?:, \w+)*)", re.MULTILINE)
"""The names that a stretch of the prelude makes."""
_UNASKED = {
    "sealed": ("It only reads.", "It works beneath a seal."),
    "eased": ("It only reads.", "It takes memory."),
}
"""What every script needs of the prelude, by what that makes, but for those that say one of these of themselves."""


class Script(Struct, frozen=True):
    """A script as the server gets it."""

    name: str
    text: bytes
    digest: bytes
    """What the server calls it once it has been loaded, in 40 hexadecimal digits."""


@cache
def script(name: str) -> Script:
    """The script in the file of this name."""
    own = (_FOLDER / f"{name}.lua").read_text("utf-8")
    text = f"{_needed(own)}\n\n{own}".encode()
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


def _needed(text: str) -> str:
    """The stretches of the prelude that make what a script names, or what another of them names, which stands before it.

    The server makes all of this anew at each call: of a lone job's insert the whole would take a quarter.
    """
    head, first, *stretches = _stretches()
    words = set(re.findall(r"\w+", _COMMENT.sub("", text)))
    says = " ".join(text.replace("\n--", "\n").split())  # wherever its lines end
    unasked = {name for name, unless in _UNASKED.items() if not any(said in says for said in unless)}
    needed = []
    for stretch in reversed(stretches):
        code = _COMMENT.sub("", stretch)
        made = {name for names in _MAKING.findall(code) for name in re.findall(r"\w+", names)}
        if made & (words | unasked):
            needed.append(stretch)
            words.update(re.findall(r"\w+", code))
    return "\n\n".join([head, first, *reversed(needed)])


@cache
def _stretches() -> list[str]:
    parts = [(_FOLDER / "prelude" / f"{name}.lua").read_text("utf-8") for name in _PRELUDE]
    return [stretch for part in parts for stretch in part.strip("\n").split("\n\n")]


def loading(script: Script) -> bytes:
    """The command that makes it known to the server."""
    return command(b"SCRIPT", b"LOAD", script.text)


def calling(script: Script, base: bytes, *given: bytes) -> bytes:
    """The command that runs it. The base of all keys carries the hash tag by which a cluster finds their node."""
    return command(b"EVALSHA", script.digest, b"1", base, *given)


def command(*words: bytes) -> bytes:
    """A command as it goes over the wire."""
    return b"*%d\r\n%b" % (len(words), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words]))
