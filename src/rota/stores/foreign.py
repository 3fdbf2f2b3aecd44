"""The named queries on a connection that is not the store's own: in pieces, since each driver marks parameters in its own way.

Whoever holds the connection gives its queries one after the other (`Steps`), so the same work is done by blocking code and by
coroutines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

from rota.errors import ConfigError, StoreError
from rota.stores.database import Params, Row, Steps

Value = str | int | float | None
"""What a parameter may be: what every driver sends alike."""


class Elsewhere(ConfigError):
    """A connection that leads to another database than the store's."""


class Template:
    """A statement in pieces, with a parameter between each two of them; the same parameter may come more than once."""

    def __init__(self, pieces: Sequence[str], names: Sequence[str]) -> None:
        self.pieces = pieces
        self.names = names
        self.once = list(dict.fromkeys(names))

    @cached_property
    def numbered(self) -> str:
        return self._joined([f"${self.once.index(name) + 1}" for name in self.names], self.pieces)

    @cached_property
    def colons(self) -> str:
        return self._joined([f":{name}" for name in self.names], self.pieces)

    @cached_property
    def escaped_colons(self) -> str:
        return self._joined([f":{name}" for name in self.names], [piece.replace(":", r"\:") for piece in self.pieces])

    @cached_property
    def percents(self) -> str:
        return self._joined(["%s"] * len(self.names), [piece.replace("%", "%%") for piece in self.pieces])

    def _joined(self, marks: Sequence[str], pieces: Sequence[str]) -> str:
        return pieces[0] + "".join(mark + piece for mark, piece in zip(marks, pieces[1:], strict=True))


def template(text: str, parameter: re.Pattern[str]) -> Template:
    """A statement whose parameters are found by a pattern with one group: the name."""
    parts = parameter.split(text)
    return Template(parts[::2], parts[1::2])


class Statement:
    """A statement with its values, in whichever form a driver wants."""

    __slots__ = ("_template", "_values")

    def __init__(self, template: Template, values: Mapping[str, Value]) -> None:
        self._template = template
        self._values = values

    def numbered(self) -> tuple[str, list[Value]]:
        """Parameters are `$1`, `$2`, …"""
        return self._template.numbered, [self._values[name] for name in self._template.once]

    def named(self) -> tuple[str, dict[str, Value]]:
        """Parameters are `:name`."""
        return self._template.colons, {name: self._values[name] for name in self._template.once}

    def escaped(self) -> tuple[str, dict[str, Value]]:
        """Parameters are `:name`, and every other colon has a backslash before it."""
        return self._template.escaped_colons, {name: self._values[name] for name in self._template.once}

    def formatted(self) -> tuple[str, list[Value]]:
        """Parameters are `%s`, and every other percent sign is doubled."""
        return self._template.percents, [self._values[name] for name in self._template.names]


def told_by_postgres(error: BaseException) -> tuple[str | None, str]:
    """The code that Postgres gave a driver's error, where it tells that, and the error in words.

    Most have it as an attribute; pg8000 raises with all that the server said.
    """
    said = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or said.get("C")
    return (state if isinstance(state, str) else None), str(said.get("M") or error)


class Dialect(Protocol):
    """How a store's queries are put to a connection of somebody else's, and what that answers."""

    system: str
    """`postgresql` or `sqlite`."""

    place: str
    """Where the store is, for messages."""

    @property
    def home(self) -> object | None:
        """What `learn` found out; `None` before."""
        ...

    def learn(self) -> None:
        """Ask the store where it is, which blocks; `check` does it where nobody did."""
        ...

    def statements(self, query: str, params: Params) -> list[Statement]:
        """A named query, to be run one statement after the other."""
        ...

    def rows(self, query: str, answers: Sequence[Sequence[Row]]) -> list[Row]:
        """What the query answered, given what each statement did; ids are text, whatever the driver makes of them."""
        ...

    def check(self, known_as: object | None) -> Steps[None]:
        """Make sure that the connection leads to the store's database. Raises `Elsewhere`, naming both.

        A connection is asked once, if there is something that it can be `known_as`, which is not kept alive.
        """
        ...

    def meaning(self, error: BaseException) -> StoreError:
        """What a driver's error means, in words."""
        ...
