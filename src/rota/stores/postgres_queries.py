"""The named queries in the form in which they are sent to Postgres."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from rota.stores import queries
from rota.stores.database import Params

_TABLE = re.compile(r"\brota_(?:jobs|history|attempts|workers|tasks|rooms|places|tallies|slots|limits|queues|migrations)\b")
_PARAMETER = re.compile(r"(?:\bin )?(?<!:):([a-z_]+)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

_TYPES = {
    **dict.fromkeys(("behind", "closes", "ends", "held", "jobs", "over", "places", "reports", "rooms", "tally"), "jsonb"),
    **dict.fromkeys(("asleep", "durable", "whole", "among_live", "among_finished", "key_waiting"), "boolean"),
    **dict.fromkeys(("age", "delay", "lease", "limit", "many", "pid", "run_at", "span", "until", "now", "wait"), "bigint"),
    **dict.fromkeys(("priority", "max_attempts", "concurrency", "excuse", "needs", "number"), "integer"),
    **dict.fromkeys(("job_id", "before"), "uuid"),
    **dict.fromkeys(("names", "queues", "states", "workers"), "text[]"),
    "ids": "uuid[]",
}
"""The types of parameters that are not text. Every parameter is cast, so that a null has a type too."""

_TEXT, _BINARY = 0, 1


class Query:
    """A query whose parameters have numbers: `$1` is the first of `names`."""

    def __init__(self, name: str, text: str, qualify: Callable[[str], str]) -> None:
        self.name = f"rota_{name}".encode()
        """What it is called once it is prepared."""
        self.names: list[str] = []
        self.unqualified = _PARAMETER.sub(self._numbered, text)
        # Tables are qualified last: a schema's name may hold what looks like a parameter.
        self.text = qualify(self.unqualified).encode()
        # In the text form a text would end at its first null character; the server refuses one in the binary form.
        self.formats = [_BINARY if _type(name) == "text" else _TEXT for name in self.names]
        self._writers = [(name, _WRITERS.get(_type(name), _plain)) for name in self.names]

    def values(self, params: Params) -> list[bytes | None]:
        """The parameters as they are sent."""
        return [None if (value := params[name]) is None else write(value) for name, write in self._writers]

    def _numbered(self, found: re.Match[str]) -> str:
        name = found[1]
        if name not in self.names:
            self.names.append(name)
        number = f"${self.names.index(name) + 1}::{_type(name)}"
        if name == "now":
            return f"coalesce({number}, (extract(epoch from statement_timestamp()) * 1000000)::bigint)"
        return f"= any({number})" if found[0].startswith("in ") else number


class Queries:
    """The named queries of a schema, whatever its name."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.quoted = '"{}"'.format(schema.replace('"', '""'))
        self.channel = f"rota_{zlib.crc32(schema.encode()):08x}"
        """Where this schema's sleepers listen; a name of any length or alphabet becomes a short one.
        Should two schemas of a database share it, each is rung for the other, which does no harm."""
        self._made: dict[str, Query] = {}

    def __getitem__(self, name: str) -> Query:
        """The query of this name; it is made when it is first asked for, since most programs need few."""
        made = self._made.get(name)
        if made is None:
            text = queries.load("postgres")[name].replace(":channel", f"'{self.channel}'")
            made = self._made[name] = Query(name, text, self.qualify)
        return made

    def table(self, name: str) -> str:
        """A table's full name, quoted."""
        return f"{self.quoted}.{name}"

    def qualify(self, text: str) -> str:
        return _TABLE.sub(lambda found: self.table(found[0]), text)


def _type(name: str) -> str:
    return _TYPES.get(name, "text")


def _plain(value: object) -> bytes:
    return str(value).encode()


def _uuid(value: str) -> bytes | None:
    """A page that begins at no job's id begins at the newest."""
    return value.encode() if _UUID(value) else None


def _array(values: Sequence[str]) -> bytes:
    quoted = ('"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"')) for value in values)
    return "{{{}}}".format(",".join(quoted)).encode()


def _ids(values: Sequence[str]) -> bytes:
    """What is no UUID is no job's id."""
    return "{{{}}}".format(",".join(filter(_UUID, values))).encode()


_WRITERS: dict[str, Callable[[Any], bytes | None]] = {"uuid": _uuid, "text[]": _array, "uuid[]": _ids}
