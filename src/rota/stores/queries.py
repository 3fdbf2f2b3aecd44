"""The named queries: read from files beside this one, and turned into a driver's form by plain substitution.

`queries.sql` holds those that every database runs; `sqlite.sql` and `postgres.sql` add their own and override by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)
_HERE = Path(__file__).parent  # `importlib.resources` would add a megabyte to a process that has no other use for it


@cache
def load(dialect: str) -> Mapping[str, str]:
    """The text of each query of a dialect, without its comments."""
    return _named(_read("queries.sql")) | _named(_read(f"{dialect}.sql"))


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """The number, name and text of each migration of a dialect, in order."""
    found = sorted((_HERE / "migrations" / dialect).iterdir(), key=lambda file: file.name)
    scripts = [file for file in found if file.name.endswith(".sql")]
    return [(int(file.name.split("_")[0]), file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in scripts]


def statements(text: str) -> list[str]:
    """The statements of a text in which each ends its line with a semicolon."""
    return [part for piece in re.split(r";[ \t]*(?:\n|$)", _COMMENT.sub("", text)) if (part := piece.strip())]


def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


def _named(text: str) -> dict[str, str]:
    _, *pieces = _NAMED.split(text)
    return {name: _COMMENT.sub("", body).strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
