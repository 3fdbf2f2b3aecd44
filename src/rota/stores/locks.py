"""What a migration keeps others from, told by its statements: so it is known before it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rota.stores import queries

_MADE = re.compile(r"create table (\w+)")
_INDEXED = re.compile(r"create (?:unique )?index \w+\s+on (\w+)")
_WIDENED = re.compile(r"alter table (\w+)\s+add column (?!.*\bcheck\b)")
_CHANGED = re.compile(r"(?:alter table|drop table|update|delete from|insert into) (\w+)")


def locks(text: str, sizes: Mapping[str, int]) -> list[str]:
    """What this script keeps others from, one line for each table of those whose number of rows is given."""
    new: set[str] = set()
    told: list[str] = []
    for statement in queries.statements(text):
        if found := _MADE.match(statement):
            new.add(found[1])
        elif found := _INDEXED.match(statement):
            told += _of(found[1], new, sizes, "no writes while its rows (about {rows}) are read")
        elif found := _WIDENED.match(statement):
            told += _of(found[1], new, sizes, "nobody else for a moment, once nobody uses it")
        elif found := _CHANGED.match(statement):
            told += _of(found[1], new, sizes, "nobody else while its rows (about {rows}) are changed")
        else:
            told.append(f"unknown, of {statement.splitlines()[0]!r}")
    return list(dict.fromkeys(told))


def table_of(statement: str) -> str | None:
    """The table that a statement must have, alone or with others; `None` where that is not known."""
    found = [match for pattern in (_INDEXED, _CHANGED) if (match := pattern.match(statement))]
    return found[0][1] if found else None


def _of(table: str, new: set[str], sizes: Mapping[str, int], what: str) -> list[str]:
    return [f"{table}: {what.format(rows=sizes[table])}"] if table in sizes and table not in new else []
