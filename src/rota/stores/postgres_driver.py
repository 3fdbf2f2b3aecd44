"""Named queries on a Postgres connection that is lent, one transaction or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from rota.stores.database import Call, Params, Row
from rota.stores.postgres_queries import Queries
from rota.stores.postgres_wire import Wire

_SILENCE = "15s"
"""How long a transaction may hear nothing of its client between two of its queries."""


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


class Exchange:
    """One transaction over several round trips: it begins with the first and is committed with the last.

    Where it need not be `durable`, its commit does not wait for the disk. Postgres ends it when this process falls silent
    within it. One that is not ended is undone, since its connection is not used again.
    """

    def __init__(self, session: Session, durable: bool) -> None:
        self._session = session
        self._settings = bound(durable)
        self._open = False

    def run(self, query: str, params: Params) -> list[Row]:
        return self.send([(query, params)])[0]

    def send(self, calls: Sequence[Call]) -> list[list[Row]]:
        if self._open:
            return self._session.send(calls)
        self._open = True
        return self._session.send([("begin", {}), self._settings, *calls])[1:]  # what is set is not answered

    def last(self, calls: Sequence[Call]) -> list[list[Row]]:
        answers = self.send([*calls, ("commit", {})])
        self._open = False
        return answers[:-1]

    def end(self) -> None:
        """Commit, where that was not done."""
        if self._open:
            self.last([])


def bound(durable: bool) -> Call:
    """What has Postgres end the present transaction if its client falls silent: others may wait for what it locked."""
    return ("bound" if durable else "hurry_bound"), {"silence": _SILENCE}
