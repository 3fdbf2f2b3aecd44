"""Named queries on a Postgres connection that is lent, and Postgres's errors in Rota's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import sql

from rota.errors import SchemaMismatch, StoreError, StoreUnavailable
from rota.stores import queries
from rota.stores.database import Call, Params, Row
from rota.stores.postgres_queries import Queries
from rota.stores.postgres_wire import Wire


class Session:
    """Runs named queries on a connection for as long as it is borrowed."""

    def __init__(self, wire: Wire, queries: Queries) -> None:
        self._wire = wire
        self.queries = queries

    def run(self, query: str, params: Params) -> list[Row]:
        return self.send([(query, params)])[0]

    def send(self, calls: Sequence[Call], durable: bool = True) -> list[list[Row]]:
        """Run queries in one round trip: as one transaction, or inside of the present one."""
        self._wire.send(self.queries, calls, durable)
        return self._wire.answers()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction, or a savepoint inside of one."""
        with self._wire.driver().transaction():
            try:
                yield
            finally:
                self._wire.driver()

    def driver(self) -> psycopg.Connection[tuple[object, ...]]:
        """The connection, for what the driver does itself."""
        return self._wire.driver()

    def script(self, text: str) -> None:
        for statement in queries.statements(self.queries.qualify(text)):
            self.driver().execute(sql.SQL(statement))


class Exchange:
    """One transaction over several round trips: it begins with the first and is committed with the last.

    Its commit does not wait for the disk. One that is not ended is undone, since its connection is not used again.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open = False

    def send(self, calls: Sequence[Call]) -> list[list[Row]]:
        if self._open:
            return self._session.send(calls)
        self._open = True
        return self._session.send([("begin", {}), ("hurry", {}), *calls])[1:]  # what hurries is not answered

    def last(self, calls: Sequence[Call]) -> list[list[Row]]:
        answers = self.send([*calls, ("commit", {})])
        self._open = False
        return answers[:-1]

    def end(self) -> None:
        """Commit, where that was not done."""
        if self._open:
            self.last([])


def meaning(error: psycopg.Error, place: str) -> StoreError:
    """What a driver's error means to whoever runs jobs, in one line."""
    said = " ".join(str(error).split())
    state = error.sqlstate or ""
    match state[:2]:
        case "40":
            return StoreUnavailable(f"Postgres at {place} ended the transaction to resolve a conflict with others: {said}")
        case "53":
            return StoreUnavailable(f"Postgres at {place} is out of room ({said}): free disk, memory or connections")
        case "25" if state == "25006":
            return StoreUnavailable(f"Postgres at {place} takes no writes ({said}): point the URL at the primary")
        case "25" if state in {"25P03", "25P04"}:
            return StoreUnavailable(
                f"Postgres at {place} ended a transaction that was open for too long ({said}): this process was held up, or a "
                "limit's key function takes long"
            )
        case "08" | "57" | "55" | "58":
            return StoreUnavailable(f"Postgres at {place} cannot serve now ({said}): wait, or look at its log")
        case "28":
            return StoreUnavailable(f"Postgres at {place} refuses this user ({said}): check user and password in the URL")
        case "3D":
            return StoreUnavailable(f"Postgres at {place} has no such database ({said}): create it, or correct the URL")
        case _ if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return SchemaMismatch(f"the tables in Postgres at {place} are not those of this Rota ({said}): run `rota migrate`")
        case "42" if state == "42501":
            return StoreError(f"this user lacks a right in Postgres at {place} ({said}): have it granted")
        case "" if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnavailable(
                f"Postgres at {place} cannot be reached ({said}): see that it runs and that the URL is right"
            )
        case _:
            return StoreError(f"Postgres at {place} refused a query: {said}")
