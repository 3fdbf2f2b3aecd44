"""Bringing the tables of a Postgres schema to this version: by one process at a time, and no wait for others is endless."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import psycopg

from rota.errors import StoreError, StoreUnavailable
from rota.stores import queries, versions
from rota.stores.database import Params, Row
from rota.stores.locks import table_of
from rota.stores.postgres_driver import Session, bound
from rota.stores.postgres_queries import Queries

log = logging.getLogger("rota")

_PATIENCE = 5.0
"""For how many seconds a migration waits for a table that others use, and they for it."""
_WAITS = (3.0, 12.0, 45.0)
"""For how many seconds another process that migrates is waited for; after each but the last, people are told of it."""


class Migrating:
    """One run of what is to be run, in one transaction; after an error nothing has changed."""

    def __init__(self, session: Session, place: str) -> None:
        self._session = session
        self._place = place
        self._schema = session.queries.schema
        self._statement = ""

    def run(self) -> list[str]:
        """The names of the migrations that ran.

        Raises `StoreUnavailable`, which says who is in the way, where another process migrates for too long or uses a table
        that must be changed, and `StoreError` where this user lacks a right.
        """
        try:
            with self._session.transaction():
                self._session.send([bound(durable=True)])
                self._take_turn()
                return self._migrate()
        except psycopg.errors.LockNotAvailable as error:
            raise self._blocked() from error
        except psycopg.errors.InsufficientPrivilege as error:
            said = " ".join(str(error).split())
            raise StoreError(
                f"this user may not make or change the tables in the schema {self._schema!r} of Postgres at {self._place} "
                f"({said}): run `rota migrate` as a user who owns them or may make them, or have one run what "
                "`rota migrate --sql` prints"
            ) from error

    def _migrate(self) -> list[str]:
        session = self._session
        [(there, schema)] = session.run("tables", names(session.queries))
        if not schema:
            self._execute(f"create schema {session.queries.quoted}")
        if not there:
            self._script(versions.TABLE)
        session.run("lock_briefly", {"patience": f"{_PATIENCE}s"})
        return versions.migrate(session.run, self._script, "postgres")

    def _script(self, text: str) -> None:
        for statement in queries.statements(text):
            self._statement = statement
            self._execute(self._session.queries.qualify(statement))

    def _execute(self, statement: str) -> None:
        self._session.driver().execute(statement.encode())

    def _take_turn(self) -> None:
        *waits, last = _WAITS
        for wait in waits:
            if self._turn_comes(wait):
                return
            log.warning(
                "waiting for another process that migrates the tables in the schema %r of Postgres at %s: %s",
                self._schema,
                self._place,
                named(self._holders()),
            )
        if not self._turn_comes(last):
            holders = self._holders()
            raise StoreUnavailable(
                f"another process has been migrating the tables in the schema {self._schema!r} of Postgres at {self._place} "
                f"for more than {sum(_WAITS):g} s: {named(holders)}. If it works on a large table, try again when it has "
                f"ended; if it stands still, {ended(holders)}"
            )

    def _turn_comes(self, within: float) -> bool:
        try:
            with self._session.transaction():  # a savepoint, beyond which a wait that fails undoes nothing
                self._session.run("lock_briefly", {"patience": f"{within * 1000:.0f}ms"})
                self._session.run("lock_migrations", names(self._session.queries))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def _holders(self) -> list[Row]:
        return self._session.run("migrating", names(self._session.queries))

    def _blocked(self) -> StoreUnavailable:
        table = table_of(self._statement)
        users = self._session.run("users_of", {"table": self._session.queries.table(table)}) if table else []
        [first, *_] = self._statement.splitlines()
        return StoreUnavailable(
            f"a migration must have {table or 'a table'} for itself and did not get it within {_PATIENCE:g} s, so nothing was "
            f"changed in the schema {self._schema!r} of Postgres at {self._place} ({first!r}): {named(users)}. Wait until that "
            f"has ended, or {ended(users)}, and run `rota migrate` again"
        )


def names(made: Queries) -> Params:
    """What the schema and the table of migrations are called."""
    return {"schema": made.schema, "migrations": made.table("rota_migrations")}


def named(sessions: Sequence[Row]) -> str:
    """The sessions that hold what is waited for, as whoever looks for them needs it."""
    return "; ".join(map(_named, sessions)) or "it is gone meanwhile"


def ended(sessions: Sequence[Row]) -> str:
    """How these sessions are ended."""
    calls = "; ".join(f"select pg_terminate_backend({pid})" for pid, *_, prepared in sessions if not prepared)
    if not calls:
        return "end the transaction that holds it"
    return f"end it with {calls}"


def _named(session: Row) -> str:
    pid, user, program, address, state, since, prepared = session
    if prepared:
        return "a prepared transaction that was neither committed nor rolled back holds it, see pg_prepared_xacts"
    if state is None:  # one of the server's own, or one of which this user may not know more
        hidden = f"user {user}; more is shown to superusers and members of pg_read_all_stats"
        return f"the server's process {pid} has it ({program or hidden})"
    told = [program or "unnamed", f"user {user}", f"from {address}" if address else "", state]
    begun = f", its transaction began at {since} UTC" if since else ""
    return f"the server's process {pid} has it ({', '.join(filter(None, told))}{begun})"
