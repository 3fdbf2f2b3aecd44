"""The Lua scripts: each a small file, with the prelude before it."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

_FOLDER = Path(__file__).with_name("scripts")


class Script(Struct, frozen=True):
    """A script as the server gets it."""

    name: str
    text: bytes
    digest: bytes
    """What the server calls it once it has been loaded, in 40 hexadecimal digits."""


@cache
def script(name: str) -> Script:
    """The script in the file of this name."""
    text = (_FOLDER / "prelude.lua").read_bytes() + (_FOLDER / f"{name}.lua").read_bytes()
    return Script(name, text, sha1(text, usedforsecurity=False).hexdigest().encode())


def loading(script: Script) -> bytes:
    """The command that makes it known to the server."""
    return command(b"SCRIPT", b"LOAD", script.text)


def calling(script: Script, base: bytes, payload: bytes) -> bytes:
    """The command that runs it. The base of all keys carries the hash tag by which a cluster finds their node."""
    return command(b"EVALSHA", script.digest, b"1", base, payload)


def command(*words: bytes) -> bytes:
    """A command as it goes over the wire."""
    return b"*%d\r\n%b" % (len(words), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words]))
