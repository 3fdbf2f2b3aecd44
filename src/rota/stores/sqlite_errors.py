"""SQLite's errors in Rota's words."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable

_MISSING = re.compile("no such (table|column)|table .* has no column")


def meaning(error: sqlite3.Error, path: Path, patience: float) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    name = getattr(error, "sqlite_errorname", "")
    match "_".join(name.split("_")[:2]):
        case "SQLITE_FULL":
            return StoreUnavailable(f"the disk is full, so the SQLite file {path} cannot be written: make room")
        case "SQLITE_IOERR":
            return StoreUnavailable(f"the disk is full or broken, so the SQLite file {path} cannot be used ({name}: {error})")
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return StoreUnavailable(
                f"the SQLite file {path} was locked by another connection for {patience:g} s: find the transaction that stays "
                "open; within one of your own, enqueue over its connection"
            )
        case "SQLITE_CANTOPEN" | "SQLITE_READONLY" | "SQLITE_PERM":
            return StoreUnavailable(
                f"the SQLite file {path} cannot be opened for writing ({error}): look at its rights and its directory's"
            )
        case "SQLITE_CORRUPT" | "SQLITE_NOTADB":
            return StoreError(f"{path} is damaged or no SQLite file ({error}): restore it from a backup, or name another file")
        case _ if _MISSING.match(f"{error}"):
            return SchemaMismatch(
                f"the tables in the SQLite file {path} are not those of this Rota ({error}): `rota migrate` makes them so "
                "where they are older, and says whether they are newer"
            )
        case _:
            return StoreError(f"the SQLite file {path} refused a query: {error}")
