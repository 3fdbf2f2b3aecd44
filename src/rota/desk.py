"""The app's desk: where tasks hand in their jobs, and where jobs from outside ask for theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from rota import operate
from rota.block import Block
from rota.clock import Micros, machine_now
from rota.door import Door
from rota.errors import ArgumentsError, ConfigError, NotSupported, ResultError
from rota.handle import Job, not_found
from rota.holding import Holding
from rota.hooks import Hooks
from rota.ids import is_id
from rota.model import AttemptRow, Changed, Edit, Ended, Inserted, JobRow, Move, NewJob
from rota.options import Options
from rota.settings import Settings
from rota.stores.base import Store
from rota.task import Task

if TYPE_CHECKING:  # loaded by those who ask for it
    from rota.carrying import Carried
    from rota.limiting import Limiting
    from rota.rules.explain import Explanation

T = TypeVar("T")
_DEFAULTS_AGE = 60.0
"""Seconds that a task's defaults read from the store are believed."""


class Owner(Protocol):
    """What the desk asks of its app."""

    @property
    def store(self) -> Store: ...
    @property
    def holding(self) -> Holding: ...
    @property
    def tasks(self) -> Mapping[str, Task[..., Any, Any]]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def max_payload(self) -> int: ...
    @property
    def eager(self) -> bool: ...
    @property
    def limiting(self) -> Limiting | None: ...
    @property
    def carried(self) -> Carried | None: ...
    @property
    def hooks(self) -> Hooks: ...
    def now(self) -> Micros | None: ...


class StoreDesk:
    """Takes jobs into the store, one by one, many at once, and from coroutines; in eager mode it runs them instead."""

    def __init__(self, app: Owner) -> None:
        self._app = app
        self.max_payload = app.max_payload
        self.hooks = app.hooks
        self.door = Door(lambda jobs: app.store.insert(jobs, app.now()))
        self._inserting = threading.local()
        self._declared: dict[str, tuple[float, Options]] = {}

    # -- for tasks ------------------------------------------------------------------------------

    def take(self, jobs: Iterable[NewJob], connection: object = None) -> list[Job[Any]]:
        if connection is None and (block := Block.of(self)) is not None:
            connection = block.connection
        if self._app.eager:
            if connection is not None:
                self._check_blocking(connection, "enqueue")
            return self._take_eagerly(jobs)
        self._refuse_inside_of_insert()
        self._inserting.here = True
        try:
            return [Job(self, put.id, existed=put.existed) for put in self._insert(jobs, connection)]
        finally:
            self._inserting.here = False

    async def atake(self, jobs: list[NewJob], connection: object = None) -> list[Job[Any]]:
        if connection is None and (block := Block.of(self)) is not None:
            connection = block.connection
        if connection is not None:
            return await self._atake_within(jobs, connection)
        if self._app.eager:
            return await in_pool(lambda: self._take_eagerly(jobs))
        return [Job(self, put.id, existed=put.existed) for put in await self.door.insert(jobs)]

    async def atake_many(self, jobs: Iterable[NewJob], connection: object = None) -> list[Job[Any]]:
        """As `atake`, for however many: they are made in another thread, or here on a connection that is awaited."""
        if connection is None and (block := Block.of(self)) is not None:
            connection = block.connection
        if connection is not None:
            return await self._atake_within(jobs, connection)
        return await self.in_thread(lambda: self.take(jobs))

    def defaults(self, name: str, connection: object = None) -> Options:
        """What jobs of a task start with: as declared here, else as a worker told the store, else Rota's defaults."""
        if name in self._app.tasks:
            return self._app.tasks[name].options
        if self._app.eager:
            return Options()
        read_at, options = self._declared.get(name, (-_DEFAULTS_AGE, Options()))
        if time.monotonic() - read_at >= _DEFAULTS_AGE:
            alone = connection is None and Block.of(self) is None
            row = (self._app.store if alone else self._app.holding.open_beside()).declared(name)
            if row is None:
                return Options()
            options = Options(queue=row.queue, priority=row.priority, max_attempts=row.max_attempts)
            self._declared[name] = (time.monotonic(), options)
        return options

    async def in_thread(self, call: Callable[[], T]) -> T:
        return await self.door.run(call)

    def carry(self, args: str) -> str | None:
        """What goes along with a job that has these arguments; see `rota.carrying`."""
        carried = self._app.carried
        return None if carried is None else carried.pack(len(args.encode()), self.max_payload)

    # -- for bodies -----------------------------------------------------------------------------

    def restore(self, context: str) -> None:
        """Set the context variables of the body's context that its job brought along."""
        if self._app.carried is not None:
            self._app.carried.unpack(context)

    def finish_within(self, connection: object, worker: str, end: Ended, progress: str | None) -> None:
        from rota.stores.finishing import finish_steps
        from rota.within import blocking, work
        from rota.within.turns import turn

        foreign = blocking(connection, "finish_within")
        if not self._app.eager:
            with turn(foreign.own):
                work(self._app.store, foreign, finish_steps(worker, end, progress, self._app.now()))

    async def afinish_within(self, connection: object, worker: str, end: Ended, progress: str | None) -> None:
        from rota.stores.finishing import finish_steps
        from rota.within import awork, of_coroutines
        from rota.within.turns import aturn

        foreign = of_coroutines(connection, "finish_within")
        if not self._app.eager:
            store = await self.in_thread(lambda: self._app.store)  # which may have to be opened first
            async with aturn(foreign.own):
                await awork(store, foreign, finish_steps(worker, end, progress, self._app.now()))

    # -- for jobs -------------------------------------------------------------------------------

    def rows(self, ids: Sequence[str]) -> list[JobRow]:
        known = [id for id in ids if is_id(id)]
        return self._app.store.get(known) if known else []

    def attempts_of(self, id: str) -> list[AttemptRow]:
        return self._app.store.attempts(id) if is_id(id) else []

    def change(self, move: Move, ids: Sequence[str]) -> list[Changed]:
        self._refuse_to_change()
        return operate.change(self._app.store, move, ids, self._app.settings.kept, self._app.now())

    def edit(self, wanted: Edit, ids: Sequence[str]) -> list[Changed]:
        self._refuse_to_change()
        return operate.edit(self._app.store, wanted, ids, self._app.now())

    def read_result(self, task: str, text: str) -> Any:
        """A stored result as its task declares it; as plain JSON values where the task's code is not here."""
        known = self._app.tasks.get(task)
        try:
            return msgspec.json.decode(text) if known is None else known.signature.decode_result(text)
        except (ArgumentsError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ResultError(f"the result of {task} cannot be read: {error}") from error

    def explain(self, id: str) -> Explanation:
        from rota.explaining import explanation

        rows = self.rows([id])
        if not rows:
            raise not_found(id)
        return explanation(self._app.store, self._app.limiting, rows[0], self._app.now())

    # -- inside ---------------------------------------------------------------------------------

    def _insert(self, jobs: Iterable[NewJob], connection: object) -> list[Inserted]:
        if connection is None:
            return self._app.store.insert(jobs, self._app.now())
        from rota.within.inserting import insert

        return insert(connection, jobs, self._app.holding.open_beside, self._app.now)

    async def _atake_within(self, jobs: Iterable[NewJob], connection: object) -> list[Job[Any]]:
        from rota.within import of_coroutines
        from rota.within.inserting import ainsert

        if self._app.eager:
            of_coroutines(connection, "enqueue")
            return await in_pool(lambda: self._take_eagerly(jobs))
        inserted = await ainsert(connection, jobs, self._astore_beside, self._app.now)
        return [Job(self, put.id, existed=put.existed) for put in inserted]

    async def _astore_beside(self) -> Store:
        return holding.open() if (holding := self._app.holding).is_open else await self.in_thread(holding.open_beside)

    def _check_blocking(self, connection: object, call: str) -> None:
        from rota.within import blocking

        blocking(connection, call)

    def _take_eagerly(self, jobs: Iterable[NewJob]) -> list[Job[Any]]:
        with Block.none():  # as a worker's bodies would be
            return [self._eagerly(new) for new in list(jobs)]  # all or none: none runs before the last call is known to fit

    def _eagerly(self, new: NewJob) -> Job[Any]:
        from rota.eager import run_eagerly

        task = self._app.tasks.get(new.task)
        if task is None:
            raise ConfigError(f"eager mode runs jobs in this process, and no task here is named {new.task}: import its module")
        now = self._app.now()
        return run_eagerly(self, new, task, machine_now() if now is None else now)

    def _refuse_to_change(self) -> None:
        if self._app.eager:
            raise NotSupported("eager mode keeps no jobs: there is nothing to change")
        self._refuse_inside_of_insert()

    def _refuse_inside_of_insert(self) -> None:
        if getattr(self._inserting, "here", False):
            raise NotSupported(
                "the generator given to enqueue_many changes jobs itself, inside the transaction that it feeds: pass a list"
            )


async def in_pool(call: Callable[[], T]) -> T:
    """Run what may take long, a body for example, in a thread of asyncio's own pool: the door's few are for the store."""
    import asyncio

    return await asyncio.to_thread(call)
