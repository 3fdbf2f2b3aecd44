"""A seal on a SQLite database: triggers refuse every change, whoever makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from rota.model import Seal
from rota.stores import sealing
from rota.stores.database import Run
from rota.stores.sealing import TABLES, check_same, check_there, literal, written
from rota.stores.sqlite_engine import Cursor

T = TypeVar("T")


def sealed(run: Run) -> Seal | None:
    if not run("sealing", {}):
        return None
    [[text]] = run("sealed", {})
    return sealing.read(text)


def seal(cursor: Cursor, wanted: Seal) -> None:
    """Put a seal on, inside a transaction; one with the same id goes."""
    check_same(sealed(cursor.run), wanted.id)
    _take_off(cursor)
    cursor.script("create table rota_seal (seal text not null, lifted integer not null)")
    cursor.run("note_seal", {"seal": written(wanted)})
    for name, table, change in _triggers():
        # SQLite takes no parameter here, and before 3.47 nothing but a literal.
        cursor.script(
            f"create trigger {name} before {change} on {table} "  # noqa: S608  # the names are ours, and the words are quoted
            f"when not (select lifted from rota_seal) begin select raise(abort, {literal(wanted.words)}); end"
        )


def unseal(cursor: Cursor, id: str) -> bool:
    present = sealed(cursor.run)
    if present is None or present.id != id:
        return False
    _take_off(cursor)
    return True


def beneath(cursor: Cursor, id: str, do: Callable[[Run], T]) -> T:
    """Run `do` beneath the seal, inside a transaction, which alone sees the seal lifted."""
    check_there(sealed(cursor.run), id)
    cursor.run("lift", {"lifted": True})
    answer = do(cursor.run)
    cursor.run("lift", {"lifted": False})
    return answer


def _take_off(cursor: Cursor) -> None:
    for name, _, _ in _triggers():
        cursor.script(f"drop trigger if exists {name}")
    cursor.script("drop table if exists rota_seal")


def _triggers() -> Iterator[tuple[str, str, str]]:
    for table in TABLES:
        for change in ("insert", "update", "delete"):
            yield f"{table}_sealed_{change}", table, change
