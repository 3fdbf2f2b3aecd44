"""What an adapter makes of a connection of the caller's own, and how steps are worked through on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

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

    system: str
    """`postgresql` or `sqlite`."""

    known_as: object | None
    """What tells this connection from others for as long as it lives, and can be referred to weakly."""

    def look(self, steps: Steps[T], dialect: Dialect) -> T:
        """Work through steps that change nothing, and begin nothing for them."""
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
    system: str
    known_as: object | None

    async def alook(self, steps: Steps[T], dialect: Dialect) -> T: ...

    async def arun(self, steps: Steps[T], dialect: Dialect) -> T: ...


def work_through(steps: Steps[T], dialect: Dialect, execute: Callable[[Statement], Sequence[Row]]) -> T:
    """What these steps return, once each statement of theirs was executed."""
    try:
        query, params = next(steps)
        while True:
            answers = [execute(statement) for statement in dialect.statements(query, params)]
            query, params = steps.send(dialect.rows(query, answers))
    except StopIteration as end:
        result: T = end.value
        return result


async def awork_through(steps: Steps[T], dialect: Dialect, execute: Callable[[Statement], Awaitable[Sequence[Row]]]) -> T:
    try:
        query, params = next(steps)
        while True:
            answers = [await execute(statement) for statement in dialect.statements(query, params)]
            query, params = steps.send(dialect.rows(query, answers))
    except StopIteration as end:
        result: T = end.value
        return result
