"""A worker's line to Postgres: one connection that carries its turns and on which it is rung."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rota.bell import Bell
from rota.stores.database import Call, Row
from rota.stores.postgres_pool import Pool
from rota.stores.postgres_queries import Queries
from rota.stores.postgres_wire import ready_made

log = logging.getLogger("rota")


class PostgresLine:
    """LISTENs on the connection that claims. The server's process for it is awake when a ring comes, and so is this thread.

    Behind a transaction pooler nothing can ring; there `wait` only sleeps.
    """

    ahead = 2
    ample = True

    def __init__(self, pool: Pool, queries: Queries) -> None:
        self._pool = pool
        self._queries = queries
        self._wire = pool.connect("kept")
        if pool.met_pooler:
            pool.met_pooler = False  # it is said once
            log.warning(
                "a pooler is between this worker and Postgres at %s, so no enqueue wakes it and jobs wait for the next poll: "
                "give workers a URL that leads to Postgres itself, or say pooler=true in the URL to be told no more, or "
                "pooler=false if it pools sessions",
                pool.place,
            )
        if not self._wire.pooled:
            try:
                with pool.errors():
                    self._wire.driver().execute(f"listen {queries.channel}".encode())
            except BaseException:
                self.close()
                raise

    def send(self, calls: Sequence[Call], durable: bool) -> None:
        with self._pool.errors():
            self._wire.send(self._queries, calls, durable)

    def answered(self) -> list[list[Row]] | None:
        with self._pool.errors():
            return self._wire.answered()

    def wait(self, timeout: float, bell: Bell, when_rung: Sequence[Call]) -> bool:
        wire = self._wire
        with self._pool.errors():
            made = ready_made(self._queries, when_rung, durable=False)  # now, so that nothing is left to do when it rings
            if not wire.rang:
                bell.wait(timeout, wire.socket)
                wire.read()
            rang, wire.rang = wire.rang, False
            if rang and made:
                wire.send_made(made)
            return rang

    def close(self) -> None:
        self._wire.close()
