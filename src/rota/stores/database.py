"""What `SqlStore` needs of a database: named queries run in transactions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rota.bell import Bell
from rota.clock import Micros
from rota.model import Inserted, Migration, NewJob, Seal, Vitals

if TYPE_CHECKING:
    from rota.stores.foreign import Dialect

T = TypeVar("T")

Params = Mapping[str, object]
"""A query's named parameters. A list is one parameter; `now` may be `None`, for the database's own clock."""

Row = Sequence[Any]

Run = Callable[[str, Params], list[Row]]
"""Runs the query of this name inside the transaction that it was given for."""

Call = tuple[str, Params]

Send = Callable[[Sequence[Call]], list[list[Row]]]
"""Runs several queries in one round trip, inside the transaction that it was given for."""

Steps = Generator[Call, list[Row], T]
"""Asks for queries one after the other, each inside the same transaction, is sent what they answer, and returns a result."""


def through(run: Run, steps: Steps[T]) -> T:
    """What these steps return, once each query that they ask for was run."""
    try:
        call = next(steps)
        while True:
            call = steps.send(run(*call))
    except StopIteration as end:
        result: T = end.value
        return result


class Link(Protocol):
    """What a worker's line needs of a database: see `rota.stores.base.Line`. Owned by one thread."""

    ahead: int
    ample: bool

    def send(self, calls: Sequence[Call], durable: bool) -> None:
        """Run these as one transaction; the answers come later, in the order of the transactions."""
        ...

    def answered(self) -> list[list[Row]] | None:
        """The answers to the oldest transaction, or `None` while they are not there. Raises what it met."""
        ...

    def wait(self, timeout: float, bell: Bell, when_rung: Sequence[Call]) -> bool:
        """See `Line.wait`. When the database rings, `when_rung` is sent at once, not durably."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    """A database that runs the named queries. Its errors are `StoreError`s; any thread may call it."""

    url: str
    kind: str
    """Which queries and migrations are its own: `sqlite` or `postgres`."""
    looks_first: bool
    """Whether a read that finds nothing to do spares the others a lock."""
    wades: bool
    """Whether a claim walks over jobs that are gone, as long as some transaction might still see them."""

    def open(self) -> None: ...

    def close(self) -> None: ...

    def twin(self) -> Database: ...

    def migrate(self) -> list[str]: ...

    def pending(self) -> list[Migration]: ...

    def there(self) -> bool: ...

    def schema(self) -> list[tuple[str, str]]: ...

    def read(self, query: str, params: Params) -> list[Row]:
        """Run one query that changes nothing."""
        ...

    def send(self, calls: Sequence[Call], durable: bool = True) -> list[list[Row]]:
        """Run these as one transaction in one round trip. Not `durable`: a power cut may undo it, never half of it."""
        ...

    def work(self, do: Callable[[Run], T]) -> T:
        """Run `do` in a transaction. It may be run anew when the database asks for that, so it changes nothing else."""
        ...

    def decide(self, do: Callable[[Send, Send], T]) -> T:
        """The same, for what runs often: along indexes alone, and with what `do` sends by its second argument it commits.

        A power cut may undo it, never half of it.
        """
        ...

    def seal(self, seal: Seal) -> None: ...

    def unseal(self, id: str) -> bool: ...

    def sealed(self) -> Seal | None: ...

    def beneath(self, seal: str, do: Callable[[Run], T]) -> T:
        """The same as `work`, beneath the seal with this id: it keeps all others from writing, and not `do`."""
        ...

    def insert(self, jobs: Iterable[NewJob], now: Micros | None) -> list[Inserted]: ...

    def rest(self, worker: str, asleep: bool) -> None: ...

    def sleepers(self) -> frozenset[str]:
        """Workers of this process that sleep, where the database itself need not know."""
        ...

    def line(self) -> Link: ...

    def dialect(self) -> Dialect: ...

    def vitals(self) -> Vitals: ...
