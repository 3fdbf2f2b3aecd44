"""The named queries on a Postgres connection that is the caller's own, whatever its driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import UUID
from weakref import WeakSet

import psycopg

from rota.errors import StoreError, StoreUnavailable
from rota.stores.database import Params, Row, Steps
from rota.stores.foreign import Elsewhere, Statement, Template, template, told_by_postgres
from rota.stores.postgres_errors import meaning
from rota.stores.postgres_queries import Queries

_NUMBERED = re.compile(r"\$(\d+)::([a-z]+(?:\[\])?)")
_MARKED = re.compile("\0([a-z_]+)\0")


class PostgresDialect:
    """Every value goes as text and is cast by the server, for callers teach drivers ways of their own for others."""

    system = "postgresql"

    def __init__(self, queries: Queries, place: str, read: Callable[[str, Params], list[Row]]) -> None:
        self._queries = queries
        self.place = place
        self._read = read
        self._templates: dict[str, Template] = {}
        self.home: Row | None = None
        self._known: WeakSet[object] = WeakSet()

    def learn(self) -> None:
        [self.home] = self._read("whereabouts", self._names())

    def statements(self, query: str, params: Params) -> list[Statement]:
        made = self._queries[query]
        values = [None if value is None else value.decode() for value in made.values(params)]
        return [Statement(self._template(query), dict(zip(made.names, values, strict=True)))]

    def rows(self, query: str, answers: Sequence[Sequence[Row]]) -> list[Row]:
        [found] = answers
        return [[str(cell) if isinstance(cell, UUID) else cell for cell in row] for row in found]

    def check(self, known_as: object | None) -> Steps[None]:
        if known_as is not None and known_as in self._known:
            return
        [there] = yield "whereabouts", self._names()
        if self.home is None or not _same(there, self.home):
            self.learn()  # anew: the server may have been started again since
        assert self.home is not None
        if not _same(there, self.home):
            raise Elsewhere(
                f"the connection leads to {_named(there)}, and the store is in {_named(self.home)}: pass a connection to the "
                "store's own database, or do it without one, after your commit"
            )
        if known_as is not None:
            self._known.add(known_as)

    def meaning(self, error: BaseException) -> StoreError:
        driver = _driver_error(error)
        match driver.sqlstate:
            case "25P02":
                return StoreError(
                    "your transaction has failed before, and Postgres takes nothing more in it: roll it back first"
                )
            case "26000" | "42P05":
                return StoreError(
                    "statements that your driver prepared on this connection are gone or another's: behind a pooler, or where "
                    "you discard them, have it prepare none, with statement_cache_size=0 for asyncpg or prepare_threshold=None "
                    "for psycopg"
                )
            case "25006":
                return StoreUnavailable(
                    f"your transaction takes no writes ({driver}): enqueue in one that is not read-only, on a connection to "
                    "the primary"
                )
            case "25P03" | "25P04":
                return StoreUnavailable(
                    f"Postgres ended your session, for its transaction was open too long ({driver}): keep it shorter, or "
                    "raise the time-out that ended it"
                )
            case "40001" | "40P01":
                return StoreUnavailable(
                    f"your transaction is in conflict with another ({driver}): roll it back and run it again"
                )
            case None:
                return StoreUnavailable(
                    f"your connection to Postgres does not work ({driver}): see that it is open, and that nobody else uses it "
                    "now"
                )
            case _:
                return meaning(driver, self.place)

    def _names(self) -> Params:
        return {"schema": self._queries.schema, "jobs_table": "rota_jobs"}

    def _template(self, query: str) -> Template:
        made = self._templates.get(query)
        if made is None:
            names = self._queries[query].names
            text = self._queries[query].unqualified
            cast = _NUMBERED.sub(lambda found: f"cast(cast(\0{names[int(found[1]) - 1]}\0 as text) as {found[2]})", text)
            made = self._templates[query] = template(self._queries.qualify(cast), _MARKED)
        return made


def _same(one: Row, other: Row) -> bool:
    """Whether both are of one start of one server, one database and one table; the rest is for people."""
    return list(one[:3]) == list(other[:3])


def _named(there: Row) -> str:
    database, address, since = there[3:]
    return f"the database {database} at {address} (started {since})"


def _driver_error(error: BaseException) -> psycopg.Error:
    """The error as psycopg would have raised it, whichever driver did."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, psycopg.Error):
            return seen
        state, words = told_by_postgres(seen)
        if state is not None:
            try:
                return psycopg.errors.lookup(state)(words)
            except KeyError:
                break
        seen = getattr(seen, "orig", None) or seen.__cause__
    return psycopg.OperationalError(str(error) or type(error).__name__)
