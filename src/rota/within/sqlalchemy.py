"""SQLAlchemy's sessions and connections over any driver, and their twins that are awaited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, UnboundExecutionError

from rota.errors import ConfigError
from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement, told_by_postgres
from rota.within.foreign import weakly, work_through
from rota.within.sqlite import beginning, control_of

if TYPE_CHECKING:  # a program that uses one of these need not have what the others take
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

T = TypeVar("T")

_NONE_OPEN = "25P01"
"""What Postgres says to a savepoint where no transaction is open."""
_AT_ONCE = {"stream_results": False, "yield_per": None}
"""For callers who stream their own rows: a cursor on the server reads, and does nothing else."""


class SqlalchemyConnection:
    name = "a SQLAlchemy connection"

    def __init__(self, connection: Connection) -> None:
        self.own = connection

    @property
    def system(self) -> str:
        return self.own.dialect.name

    def check(self, dialect: Dialect) -> None:
        self._look(dialect.check(weakly(self.own.connection.driver_connection)), dialect)

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            with _taking_part(self.own):
                return self._look(steps, dialect)
        except DBAPIError as error:
            raise dialect.meaning(error) from error

    def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        def execute(statement: Statement) -> list[Row]:
            written, values = statement.escaped()
            result = self.own.execute(text(written), values, execution_options=_AT_ONCE)
            return [tuple(row) for row in result] if result.returns_rows else []

        try:
            return work_through(steps, dialect, execute)
        except DBAPIError as error:
            raise dialect.meaning(error) from error


class SqlalchemySession:
    name = "a SQLAlchemy session"

    def __init__(self, session: Session) -> None:
        self.own = session

    @property
    def system(self) -> str:
        return _bound_to(self.own)

    def check(self, dialect: Dialect) -> None:
        SqlalchemyConnection(self.own.connection()).check(dialect)

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        return SqlalchemyConnection(self.own.connection()).run(steps, dialect)


def scoped(session: scoped_session[Any]) -> SqlalchemySession:
    """The session of the scope that the caller is in, such as its thread."""
    return SqlalchemySession(session())


class AsyncSqlalchemyConnection:
    name = "an async SQLAlchemy connection"

    def __init__(self, connection: AsyncConnection) -> None:
        self.own = connection

    @property
    def system(self) -> str:
        return self.own.dialect.name

    async def acheck(self, dialect: Dialect) -> None:
        await self.own.run_sync(lambda connection: SqlalchemyConnection(connection).check(dialect))

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        return await self.own.run_sync(lambda connection: SqlalchemyConnection(connection).run(steps, dialect))


class AsyncSqlalchemySession:
    name = "an async SQLAlchemy session"

    def __init__(self, session: AsyncSession) -> None:
        self.own = session

    @property
    def system(self) -> str:
        return _bound_to(self.own.sync_session)

    async def acheck(self, dialect: Dialect) -> None:
        await self.own.run_sync(lambda session: SqlalchemySession(session).check(dialect))

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T:
        return await self.own.run_sync(lambda session: SqlalchemySession(session).run(steps, dialect))


def async_scoped(session: async_scoped_session[Any]) -> AsyncSqlalchemySession:
    """The same for one that is awaited."""
    return AsyncSqlalchemySession(session())


def _bound_to(session: Session) -> str:
    try:
        return session.get_bind().dialect.name
    except UnboundExecutionError:
        raise ConfigError(
            "this SQLAlchemy session has no database of its own, but one for each mapped class: pass the connection to the "
            "store's database, session.connection(bind_arguments=…)"
        ) from None


@contextmanager
def _taking_part(connection: Connection) -> Iterator[None]:
    """Within the caller's transaction, which SQLAlchemy takes for begun; where the driver has none yet, it begins here."""
    raw = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        begin, ends = beginning(raw, control_of(getattr(raw, "_conn", raw)))  # type: ignore[arg-type]  # it, or aiosqlite's
    else:
        begin = "begin" if _commits_each(connection) and _idle(connection, raw) else None
        ends = begin is not None
    if begin is None:
        yield
        return
    connection.exec_driver_sql(begin)
    try:
        yield
        if ends:
            connection.exec_driver_sql("commit")
    except BaseException:
        if ends and not connection.invalidated:  # it holds nothing of the caller's; one that broke holds nothing at all
            connection.exec_driver_sql("rollback")
        raise


def _commits_each(connection: Connection) -> bool:
    """Whether the connection was told to commit each statement."""
    try:
        return connection.dialect.detect_autocommit_setting(connection.connection.dbapi_connection)  # type: ignore[arg-type]
    except (NotImplementedError, AttributeError):  # a driver that does not say: it begins as the caller's statements do
        return False


def _idle(connection: Connection, raw: object) -> bool:
    """Whether no transaction is open on a driver's connection: asyncpg, psycopg and psycopg2 say so, else the server does.

    That takes a savepoint within a transaction alone.
    """
    if hasattr(raw, "is_in_transaction"):
        return not raw.is_in_transaction()
    status = getattr(getattr(raw, "info", None), "transaction_status", None)
    if status is not None:
        return int(status) == 0
    try:
        connection.exec_driver_sql("savepoint rota_idle")
    except DBAPIError as error:
        if error.orig is None or told_by_postgres(error.orig)[0] != _NONE_OPEN:
            raise
        return True
    connection.exec_driver_sql("release savepoint rota_idle")
    return False
