"""The named queries on a connection to a SQLite file that is the caller's own, whatever its driver."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import msgspec

from rota.errors import StoreError, StoreUnavailable
from rota.stores.database import Params, Row, Steps
from rota.stores.foreign import Elsewhere, Statement, Template, Value, template
from rota.stores.sqlite_engine import bind, forms
from rota.stores.sqlite_errors import meaning

_PARAMETER = re.compile(r":([a-z_]+)")
_ANSWERS = re.compile(r"\A(?:select|pragma)\b|^returning\b", re.MULTILINE)


class SqliteDialect:
    """Ids are read as the results of expressions, for the caller may have told the driver to make something of a column."""

    system = "sqlite"

    def __init__(self, place: str, files: Callable[[], list[Row]]) -> None:
        self.place = place
        self.home: str | None = None
        self._files = files

    def learn(self) -> None:
        self.home = _main(self._files())

    def statements(self, query: str, params: Params) -> list[Statement]:
        values = {name: cast(Value, bind(name, value)) for name, value in params.items()}
        return [Statement(made, values) for made in _templates(query)]

    def rows(self, query: str, answers: Sequence[Sequence[Row]]) -> list[Row]:
        for text, found in zip(forms()[query], answers, strict=True):
            if _ANSWERS.search(text):
                plain = [[cell.decode() if isinstance(cell, bytes) else cell for cell in row] for row in found]
                return list(msgspec.json.decode(plain[0][0])) if " as packed\n" in text else list(plain)
        return []

    def check(self, known_as: object | None) -> Steps[None]:
        theirs = _main((yield "files", {}))
        if self.home is None:
            self.learn()
        if not _same(theirs, self.home or ""):
            raise Elsewhere(
                f"the connection leads to {f'the SQLite file {theirs}' if theirs else 'a SQLite database in memory'}, and the "
                f"store is in the SQLite file {self.home}: pass a connection to the store's own file, or do it without "
                "one, after your commit"
            )

    def meaning(self, error: BaseException) -> StoreError:
        driver = _driver_error(error)
        name = getattr(driver, "sqlite_errorname", "")
        if name == "SQLITE_BUSY_SNAPSHOT":
            return StoreUnavailable(
                f"the SQLite file {self.place} was written to since your transaction first read it, so it cannot write any "
                "more: roll it back and run it again, and begin transactions that will write with `begin immediate`"
            )
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return StoreUnavailable(
                f"the SQLite file {self.place} is locked by another transaction, for longer than your connection's timeout: "
                "raise that, or find the transaction that stays open"
            )
        if name.startswith("SQLITE_READONLY"):
            return StoreUnavailable(
                f"your connection to the SQLite file {self.place} takes no writes ({driver}): open it without mode=ro and "
                "query_only, or look at the file's rights and its directory's"
            )
        if not name and isinstance(driver, sqlite3.ProgrammingError):  # the driver's own words: SQLite was not asked
            return StoreUnavailable(
                f"your connection to the SQLite file {self.place} does not work ({driver}): see that it is open, and used in "
                "the thread that it is for"
            )
        return meaning(driver, Path(self.place), 0)


def _main(files: Sequence[Row]) -> str:
    """The path of the file that a connection was opened with; empty for one in memory."""
    return next((file or "" for _, name, file in files if name == "main"), "")


def _same(one: str, other: str) -> bool:
    """Whether both paths lead to one file that is there."""
    try:
        return bool(one and other) and Path(one).samefile(other)
    except FileNotFoundError:
        return False


@cache
def _templates(query: str) -> list[Template]:
    return [template(text, _PARAMETER) for text in forms()[query]]


def _driver_error(error: BaseException) -> sqlite3.Error:
    """The error of SQLite's driver, which another may have wrapped."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, sqlite3.Error):
            return seen
        seen = getattr(seen, "orig", None) or seen.__cause__
    return sqlite3.OperationalError(str(error) or type(error).__name__)
