"""Django's connections, which it makes by itself for each thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from django import conf  # type: ignore[import-untyped]
from django.db import connections, transaction  # type: ignore[import-untyped]
from django.db.backends.base.base import BaseDatabaseWrapper  # type: ignore[import-untyped]
from django.db.transaction import TransactionManagementError  # type: ignore[import-untyped]
from django.db.utils import Error  # type: ignore[import-untyped]

from rota.errors import ConfigError
from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement
from rota.within.foreign import weakly, work_through

T = TypeVar("T")


def to_come() -> list[Callable[[], object]]:
    """What runs once the transactions that are open in this thread are committed."""
    if not conf.settings.configured:
        return []
    return [call for connection in connections.all(initialized_only=True) for _, call, *_ in connection.run_on_commit]


class DjangoConnection:
    name = "a Django connection"

    def __init__(self, connection: Any) -> None:
        self.own = connections[connection.alias]  # that of this thread, where the proxy was given
        if isinstance(connection, BaseDatabaseWrapper) and connection is not self.own:
            raise ConfigError(
                "this Django connection is another thread's, and so is its transaction: in the thread that enqueues, use "
                "django.db.connection or connections[…]"
            )

    @property
    def system(self) -> str:
        return str(self.own.vendor)

    def check(self, dialect: Dialect) -> None:
        self.own.ensure_connection()
        self._look(dialect.check(weakly(self.own.connection)), dialect)

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        try:
            # Django's connections commit each statement, save in its atomic blocks.
            with transaction.atomic(self.own.alias) if self.own.get_autocommit() else nullcontext():
                return self._look(steps, dialect)
        except TransactionManagementError:  # it says in words that the block has failed before
            raise
        except Error as error:
            raise dialect.meaning(error) from error

    def after_commit(self, call: Callable[[], object]) -> None:
        """Have `call` run once the caller's transaction is committed, and never if it is not."""
        transaction.on_commit(call, using=self.own.alias)

    def to_come(self) -> list[Callable[[], object]]:
        """What runs once the transaction that is open is committed."""
        return [call for _, call, *_ in self.own.run_on_commit]

    def _look(self, steps: Steps[T], dialect: Dialect) -> T:
        def execute(statement: Statement) -> list[Row]:
            with self.own.cursor() as cursor:
                cursor.execute(*statement.formatted())
                return [] if cursor.description is None else list(cursor.fetchall())

        return work_through(steps, dialect, execute)
