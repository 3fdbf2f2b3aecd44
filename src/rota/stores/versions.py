"""Migrations: numbered scripts, each run once, in order."""

from __future__ import annotations

from collections.abc import Callable

from rota.errors import SchemaMismatch
from rota.stores import queries
from rota.stores.database import Run

TABLE = """\
create table if not exists rota_migrations (version integer primary key, name text not null, applied_at bigint not null);"""
"""Where it is noted which migrations ran; the only table that is made without one."""


def newest(dialect: str) -> int:
    """The version of the tables that this Rota uses."""
    return queries.migrations(dialect)[-1][0]


def check(found: int | None, dialect: str) -> bool:
    """Whether tables of this version can be used as they are. Raises `SchemaMismatch` when a newer Rota made them."""
    known = newest(dialect)
    if found is not None and found > known:
        raise SchemaMismatch(
            f"the store's tables have version {found}, and this Rota knows {known} at most: install a newer Rota here"
        )
    return found == known


def script(dialect: str) -> list[tuple[str, str]]:
    """The name and text of each step that makes the tables from nothing, the note that it ran included."""
    steps = [("0000_migrations", TABLE)]
    for version, name, text in queries.migrations(dialect):
        note = f"insert into rota_migrations (version, name, applied_at) values ({version}, '{name}', 0);"  # noqa: S608 (both are ours)
        steps.append((name, f"{text.strip()}\n\n{note}"))
    return steps


def migrate(run: Run, script: Callable[[str], None], dialect: str) -> list[str]:
    """Run the scripts that have not run yet, inside a transaction that holds the lock, and return their names."""
    found = run("version", {})[0][0] or 0
    check(found, dialect)
    ran = []
    for version, name, text in queries.migrations(dialect):
        if version > found:
            script(text)
            run("record_migration", {"number": version, "name": name, "now": None})
            ran.append(name)
    return ran
