"""Migrations: numbered scripts, each run once, in order. Each says in its first line whether older processes may go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rota.errors import SchemaMismatch
from rota.model import Migration
from rota.stores import queries
from rota.stores.database import Run
from rota.stores.locks import locks

TABLE = """\
create table if not exists rota_migrations (version integer primary key, name text not null, applied_at bigint not null);"""
"""Where it is noted which migrations ran; the only table that is made without one."""

_OLDER = re.compile(r"-- Older processes (?P<fate>go on|end)(?:: (?P<remark>[^\n]+))?\.\n")


def newest(dialect: str) -> int:
    """The version of the tables that this Rota uses."""
    return queries.migrations(dialect)[-1][0]


def older(name: str, text: str) -> tuple[bool, str]:
    """Whether processes that do not know this migration may go on once it ran, and what is to be said of it."""
    said = _OLDER.match(text)
    assert said is not None, f"the first line of {name} does not say whether older processes go on"
    return said["fate"] == "go on", said["remark"] or ""


def needs(dialect: str) -> int:
    """The least version that a process must know to use these tables: that of the last migration which ends older ones."""
    return max(number for number, name, text in queries.migrations(dialect) if not older(name, text)[0])


def fits(run: Run, dialect: str) -> bool:
    """Whether the tables can be used as they are. Raises `SchemaMismatch` when they were changed beyond this Rota."""
    found = run("version", {})[0][0] or 0
    if found > newest(dialect):
        check(run("needs", {})[0][0], dialect)
    return bool(found >= newest(dialect))


def check(needed: int, dialect: str) -> None:
    """Raise `SchemaMismatch` where a process must know this version of the tables and this Rota does not."""
    known = newest(dialect)
    if needed > known:
        raise SchemaMismatch(
            f"the store's tables were changed for a newer Rota: a process must know their version {needed}, and this one knows "
            f"{known} at most; install a newer Rota here"
        )


def refusal(run: Run | None, dialect: str, where: str) -> SchemaMismatch:
    """What to say of tables that are missing (`None`) or old in a store which this process is not to change."""
    found = 0 if run is None else run("version", {})[0][0] or 0
    lacking = f"have version {found}, and this Rota uses {newest(dialect)}" if found else "are not there"
    return SchemaMismatch(f"in {where} the store's tables {lacking}: run `rota migrate` as a user who may change them")


def script(dialect: str) -> list[tuple[str, str]]:
    """The name and text of each step that makes the tables from nothing, the note that it ran included."""
    steps = [("0000_migrations", TABLE)]
    for version, name, text in queries.migrations(dialect):
        note = f"insert into rota_migrations (version, name, applied_at) values ({version}, '{name}', 0);"  # noqa: S608  # both are ours
        steps.append((name, f"{text.strip()}\n\n{note}"))
    last, text = steps.pop()
    note = f"update rota_migrations set needs = {needs(dialect)} where version = {newest(dialect)};"  # noqa: S608  # both are ours
    return [*steps, (last, f"{text}\n\n{note}")]


def pending(run: Run | None, dialect: str, sizes: Mapping[str, int]) -> list[Migration]:
    """What `migrate` would run, where tables of these sizes are there; without a `Run` there are none."""
    found = 0
    if run is not None:
        fits(run, dialect)
        found = run("version", {})[0][0] or 0
    return [
        Migration(name, *older(name, text), locks(text, sizes))
        for version, name, text in queries.migrations(dialect)
        if version > found
    ]


def migrate(run: Run, script: Callable[[str], None], dialect: str) -> list[str]:
    """Run the scripts that have not run yet, inside a transaction that holds the lock, and return their names."""
    if fits(run, dialect):
        return []
    found = run("version", {})[0][0] or 0
    ran = []
    for version, name, text in queries.migrations(dialect):
        if version <= found:
            continue
        script(text)
        run("record_migration", {"number": version, "name": name, "now": None})
        ran.append(name)
    run("record_needs", {"number": newest(dialect), "needs": needs(dialect)})
    return ran
