"""What an adapter makes of a connection of the caller's own, and how steps are worked through on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable
from weakref import ref

from rota.stores.database import Row, Steps
from rota.stores.foreign import Dialect, Statement

T = TypeVar("T")


@runtime_checkable
class Foreign(Protocol):
    """A connection that blocks, in the hands of its caller: nothing here ends a transaction that was open, or changes it.

    The driver's errors leave in the dialect's words.
    """

    name: str
    """What it is, for messages."""

    own: Any
    """The connection itself, on which callers take turns: what the caller has may stand for another in each thread."""

    @property
    def system(self) -> str:
        """`postgresql`, `sqlite`, or what else it leads to."""
        ...

    def check(self, dialect: Dialect) -> None:
        """Make sure that it leads to the store's database, and begin no transaction for that. Raises `Elsewhere`."""
        ...

    def run(self, steps: Steps[T], dialect: Dialect) -> T:
        """Work through the steps in the caller's transaction.

        Where none is open they begin one, as the caller's own statements would; where the connection commits each of those by
        itself, the steps together are one that is committed.
        """
        ...


class AsyncForeign(Protocol):
    """The same for a connection that is awaited."""

    name: str
    own: Any

    @property
    def system(self) -> str: ...

    async def acheck(self, dialect: Dialect) -> None: ...

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T: ...


def work_through(steps: Steps[T], dialect: Dialect, execute: Callable[[Statement], Sequence[Row]]) -> T:
    """What these steps return, once each statement of theirs was executed; they hear of errors."""
    try:
        call = next(steps)
        while True:
            try:
                answers = [execute(statement) for statement in dialect.statements(*call)]
            except Exception as error:  # noqa: BLE001  # it is theirs, and comes back where they do nothing about it
                call = steps.throw(error)
            else:
                call = steps.send(dialect.rows(call[0], answers))
    except StopIteration as end:
        result: T = end.value
        return result


async def awork_through(steps: Steps[T], dialect: Dialect, execute: Callable[[Statement], Awaitable[Sequence[Row]]]) -> T:
    try:
        call = next(steps)
        while True:
            try:
                answers = [await execute(statement) for statement in dialect.statements(*call)]
            except Exception as error:  # noqa: BLE001
                call = steps.throw(error)
            else:
                call = steps.send(dialect.rows(call[0], answers))
    except StopIteration as end:
        result: T = end.value
        return result


def weakly(connection: object) -> object | None:
    """What a check of the connection is remembered by: the connection, if a reference need not keep it alive."""
    try:
        ref(connection)
    except TypeError:
        return None
    return connection
