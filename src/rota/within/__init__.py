"""Work inside a transaction of the caller's own, on the caller's own connection.

Each driver has a module here that is loaded when a connection of that driver comes, so nothing is imported that the program
has not imported itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from rota.codec.wire import brief
from rota.errors import ConfigError, NotSupported
from rota.stores.base import Store
from rota.stores.database import Steps
from rota.stores.foreign import Dialect, Elsewhere
from rota.within.foreign import AsyncForeign, Foreign

__all__ = ["AsyncForeign", "Elsewhere", "Foreign", "awork", "blocking", "check_known", "of_coroutines", "work"]

T = TypeVar("T")

_ADAPTERS = {
    ("aiosqlite", "Connection"): "aiosqlite:AiosqliteConnection",
    ("asyncpg", "Connection"): "asyncpg:AsyncpgConnection",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg:AsyncpgConnection",
    ("django", "BaseDatabaseWrapper"): "django:DjangoConnection",
    ("django", "ConnectionProxy"): "django:DjangoConnection",
    ("psycopg", "Connection"): "psycopg:PsycopgConnection",
    ("psycopg", "AsyncConnection"): "psycopg:AsyncPsycopgConnection",
    ("sqlalchemy", "AsyncConnection"): "sqlalchemy:AsyncSqlalchemyConnection",
    ("sqlalchemy", "AsyncSession"): "sqlalchemy:AsyncSqlalchemySession",
    ("sqlalchemy", "Connection"): "sqlalchemy:SqlalchemyConnection",
    ("sqlalchemy", "Session"): "sqlalchemy:SqlalchemySession",
    ("sqlalchemy", "async_scoped_session"): "sqlalchemy:async_scoped",
    ("sqlalchemy", "scoped_session"): "sqlalchemy:scoped",
    ("sqlite3", "Connection"): "sqlite:SqliteConnection",
}
"""What makes the adapter for each class of connections, or one it inherits from, by its package and its own name."""

_KNOWN = (
    "psycopg's connections, asyncpg's, SQLAlchemy's sessions and connections, Django's connections, and those of sqlite3 and "
    "aiosqlite"
)


def check_known(connection: object) -> None:
    """Raises `ConfigError` for what is no connection of a driver that is known."""
    _adapted(connection)


def blocking(connection: object, call: str) -> Foreign:
    """The caller's connection, for a `call` that blocks. Raises `ConfigError` for one that has to be awaited."""
    foreign = _adapted(connection)
    if not isinstance(foreign, Foreign):
        raise ConfigError(f"{foreign.name} has to be awaited: use `await …a{call}(…)` in place of {call}")
    return foreign


def of_coroutines(connection: object, call: str) -> AsyncForeign:
    """The same for a connection that is awaited; `call` is the name without the `a` in front."""
    foreign = _adapted(connection)
    if isinstance(foreign, Foreign):
        raise ConfigError(f"{foreign.name} would block the event loop: use {call} in place of a{call}")
    return foreign


def work(store: Store, foreign: Foreign, steps: Steps[T]) -> T:
    """Do these steps in the transaction that is open on the connection, and return what they return.

    Raises `Elsewhere`, a `ConfigError`, for a connection to another database than the store's, and `NotSupported` for a store
    to which no connection leads.
    """
    dialect = _dialect(store, foreign)
    foreign.check(dialect)
    return foreign.run(steps, dialect)


async def awork(store: Store, foreign: AsyncForeign, steps: Steps[T]) -> T:
    dialect = _dialect(store, foreign)
    if dialect.home is None:
        from asyncio import to_thread

        await to_thread(dialect.learn)
    await foreign.acheck(dialect)
    return await foreign.arun(steps, dialect)


def _dialect(store: Store, foreign: Foreign | AsyncForeign) -> Dialect:
    if not hasattr(store, "dialect"):  # one of others, made before stores had it
        raise NotSupported(f"the store {store.url} cannot take part in a transaction of yours: enqueue without a connection")
    dialect = store.dialect()
    if dialect.system != foreign.system:
        raise Elsewhere(
            f"{foreign.name} leads to {_called(foreign.system)}, and the store is in {_called(dialect.system)} at "
            f"{dialect.place}: pass a connection to the store's own database, or do it without one, after your commit"
        )
    return dialect


def _called(system: str) -> str:
    return {"postgresql": "Postgres", "sqlite": "SQLite"}.get(system, system)


def _adapted(connection: object) -> Foreign | AsyncForeign:
    for kind in type(connection).__mro__:
        place = _ADAPTERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if place is not None:
            module, _, name = place.partition(":")
            adapted: Foreign | AsyncForeign = getattr(import_module(f"{__name__}.{module}"), name)(connection)
            return adapted
    raise ConfigError(f"connection={brief(connection)} is none that Rota knows: it knows {_KNOWN}")
