"""A seal on a Postgres schema: one function, called by triggers, refuses every change, whoever makes it.

Making triggers waits for every transaction that wrote to the tables, and those that come later see the seal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psycopg

from rota.errors import StoreError, StoreUnavailable
from rota.model import Seal
from rota.stores import sealing
from rota.stores.database import Run
from rota.stores.postgres_driver import Session, bound
from rota.stores.postgres_migrating import ended, named
from rota.stores.sealing import TABLES, check_same, check_there, literal, written

T = TypeVar("T")

_PATIENCE = 5.0
"""For how many seconds a seal waits for transactions that write, and those that come after it wait for that."""


def sealed(run: Run, schema: str) -> Seal | None:
    found = run("sealed", {"schema": schema})
    return sealing.read(found[0][0]) if found else None


def beneath(run: Run, schema: str, id: str, do: Callable[[Run], T]) -> T:
    """Run `do` beneath the seal, inside a transaction, which alone has it lifted."""
    run("lock_jobs", {})
    check_there(sealed(run, schema), id)
    run("lift", {})
    return do(run)


class Sealing:
    """Puts a seal on or takes it off, in one transaction; after an error nothing has changed."""

    def __init__(self, session: Session, place: str) -> None:
        self._session = session
        self._place = place
        self._queries = session.queries
        self._function = f"{session.queries.quoted}.rota_sealed"
        self._table = ""

    def seal(self, wanted: Seal) -> None:
        self._transaction(lambda: self._seal(wanted))

    def unseal(self, id: str) -> bool:
        return self._transaction(lambda: self._unseal(id))

    def _transaction(self, do: Callable[[], T]) -> T:
        try:
            with self._session.transaction():
                self._session.send([bound(durable=True)])
                self._session.run("lock_briefly", {"patience": f"{_PATIENCE}s"})
                return do()
        except psycopg.errors.LockNotAvailable as error:
            users = self._session.run("users_of", {"table": self._queries.table(self._table)})
            raise StoreUnavailable(
                f"transactions that write to {self._table} of Postgres at {self._place} must end before it can be sealed, and "
                f"did not within {_PATIENCE:g} s: {named(users)}. Wait until that has ended, or {ended(users)}, and try again"
            ) from error
        except psycopg.errors.InsufficientPrivilege as error:
            said = " ".join(str(error).split())
            raise StoreError(
                f"this user may not seal the tables of Postgres at {self._place} ({said}): run `rota move` as the user who "
                "owns them"
            ) from error

    def _seal(self, wanted: Seal) -> None:
        self._lock("share row exclusive")
        present = sealed(self._session.run, self._queries.schema)
        check_same(present, wanted.id)
        self._execute(
            f"create or replace function {self._function}() returns trigger language plpgsql as "
            f"{literal(f'begin raise exception using message = {literal(wanted.words)}; end')}"
        )
        self._execute(f"comment on function {self._function}() is {literal(written(wanted))}")
        if present is not None:
            return
        for table in TABLES:
            self._execute(
                f"create trigger rota_sealed before insert or update or delete on {self._queries.table(table)} for each row "
                f"when (current_setting('rota.lifted', true) is distinct from 'on') execute function {self._function}()"
            )

    def _unseal(self, id: str) -> bool:
        self._lock("access exclusive")
        present = sealed(self._session.run, self._queries.schema)
        if present is None or present.id != id:
            return False
        for table in TABLES:
            self._execute(f"drop trigger rota_sealed on {self._queries.table(table)}")
        self._execute(f"drop function {self._function}()")
        return True

    def _lock(self, mode: str) -> None:
        for table in TABLES:
            self._table = table
            self._execute(f"lock table {self._queries.table(table)} in {mode} mode")

    def _execute(self, statement: str) -> None:
        self._session.driver().execute(statement.encode())
