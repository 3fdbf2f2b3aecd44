"""A task: a function declared as runnable in the background, with the options its jobs start from."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from rota.clock import Micros
from rota.codec import Signature, encode_untyped
from rota.codec.wire import brief
from rota.errors import ArgumentsError, ConfigError
from rota.handle import Job
from rota.hooks import AroundHook, FailureHook, Hooks, StartHook, SuccessHook, When
from rota.ids import new_id
from rota.model import Ended, NewJob, TaskRow
from rota.options import Options, OwnConnection, changed, check_name, given_after
from rota.rules.retry import RetryPolicy

if TYPE_CHECKING:  # without limits nothing of them is loaded
    from rota.rules.limits import Declared

P = ParamSpec("P")
R = TypeVar("R")
C_co = TypeVar("C_co", covariant=True)
_ASKED = ("queue", "priority", "delay", "run_at", "key", "key_until", "max_attempts")
"""The options of a call, in the order of `rota.options.changed`."""


class Desk(Protocol):
    """Where a task hands in its jobs; the app is one."""

    max_payload: int
    hooks: Hooks

    def take(self, jobs: Iterable[NewJob], connection: object = None) -> list[Job[Any]]: ...
    async def atake(self, jobs: list[NewJob], connection: object = None) -> list[Job[Any]]: ...
    async def atake_many(self, jobs: Iterable[NewJob], connection: object = None) -> list[Job[Any]]: ...
    def defaults(self, name: str, connection: object = None) -> Options: ...
    async def in_thread(self, call: Callable[[], R]) -> R: ...
    def carry(self, args: str) -> str | None: ...
    def restore(self, context: str) -> None: ...
    def finish_within(self, connection: object, worker: str, end: Ended, progress: str | None) -> None: ...
    async def afinish_within(self, connection: object, worker: str, end: Ended, progress: str | None) -> None: ...


class BoundTask(Generic[P, R]):
    """A task with the options of a call set; `using` makes one."""

    def __init__(
        self,
        task: Task[P, R, Any],
        options: Options,
        connection: OwnConnection | None = None,
        given: frozenset[str] = frozenset(),
    ) -> None:
        self._task = task
        self._options = options
        self._connection = connection
        self._given = given
        """The names of the options that were set, rather than left to the task's declaration."""

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        key_until: Literal["finished", "started"] | None = None,
        max_attempts: int | None = None,
        connection: OwnConnection | None = None,
    ) -> BoundTask[P, R]:
        """The same task with these options for its next jobs; what is left out stays as it was.

        `delay` (seconds or a `timedelta`) or `run_at` (an aware `datetime`) say when the job becomes due. Of one `key`, a task
        has at most one unfinished job: enqueueing a second answers the first, `existed` set. With `key_until="started"` the
        key is free again once the job has been claimed. Raises `ConfigError` for an option that cannot be right.

        With `connection`, one of your own to the store's database, the job is part of the transaction that is open there: it
        exists once that is committed, and never did if it is rolled back. It may be a connection of psycopg, asyncpg, sqlite3
        or aiosqlite, one of Django's, or a session or connection of SQLAlchemy; those that are awaited go with `aenqueue`.

        >>> import sqlite3
        >>> from rota import Rota
        >>> app = Rota("sqlite:///shop.db")
        >>> made = app.migrate()
        >>> @app.task
        ... def send_receipt(order_id: int) -> None: ...
        >>> with sqlite3.connect("shop.db") as connection:
        ...     job = send_receipt.using(connection=connection).enqueue(42)
        >>> job.status
        <State.QUEUED: 'queued'>
        >>> connection.close()
        >>> app.close()
        """
        asked = (queue, priority, delay, run_at, key, key_until, max_attempts)
        options = changed(self._options, *asked)
        given = given_after(self._given, dict(zip(_ASKED, asked, strict=True)))
        return BoundTask(self._task, options, self._connection if connection is None else _known(connection), given)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the job, durably, and answer it. Raises `ArgumentsError` for arguments that do not fit or cannot be stored."""
        return self._task.desk.take([self._new(args, kwargs)], self._connection)[0]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`enqueue` for coroutines: those that wait at the same time share one transaction."""
        return (await self._task.desk.atake([self._new(args, kwargs)], self._connection))[0]

    def enqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[R]]:
        """Store one job for each tuple of arguments, all or none, in as few round trips as the store allows.

        `calls` may be a generator of millions: it is read in chunks, inside the transaction, so it may not change jobs itself.
        Raises `ArgumentsError` naming the first call that does not fit.
        """
        return self._task.desk.take(self._each(calls), self._connection)

    async def aenqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[R]]:
        """`enqueue_many` for coroutines; `calls` is read in another thread, in a copy of this context."""
        return await self._task.desk.atake_many(self._each(calls), self._connection)

    def _each(self, calls: Iterable[Sequence[Any]]) -> Iterator[NewJob]:
        return each_call(calls, lambda args: self._new(args, {}))

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        o = self._options
        text = self._task.signature.encode(args, kwargs, self._task.desk.max_payload)
        return NewJob(
            new_id(),
            self._task.name,
            o.queue,
            text,
            o.priority,
            o.run_at,
            o.delay,
            o.max_attempts,
            o.key,
            o.key_waiting,
            self._task.desk.carry(text),
        )


class Task(BoundTask[P, R], Generic[P, R, C_co]):
    """A declared task. Calling it runs the function here and now; `enqueue` has it run in the background.

    `R` is what the task returns in the end, `C_co` what the plain call answers: the same, or a coroutine of it.
    """

    def __init__(
        self,
        desk: Desk,
        function: Callable[P, C_co],
        name: str,
        options: Options,
        *,
        policy: RetryPolicy,
        timeout: Micros | None,
        keep_result: bool,
        isolated: bool,
        is_coroutine: bool,
        limits: tuple[Declared, ...] = (),
    ) -> None:
        super().__init__(self, options)
        self.desk = desk
        self.hooks = desk.hooks
        self.function = function
        self.name = name
        self.options = options
        self.policy = policy
        self.timeout = timeout
        self.keep_result = keep_result
        self.isolated = isolated
        self.is_coroutine = is_coroutine
        self.limits = limits
        self.on_loop = is_coroutine and not isolated
        """Whether its bodies run on a worker's event loop."""
        self.signature = Signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__module__ = getattr(function, "__module__", type(function).__module__)
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__wrapped__ = function

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C_co:
        return self.function(*args, **kwargs)

    def on_start(self, function: StartHook) -> StartHook:
        """Have the function called before each body of this task, as `Rota.on_start` does for all tasks."""
        return self.hooks.add(When.START, function, self.name)

    def around(self, function: AroundHook) -> AroundHook:
        """Have the generator function run around each body of this task, as `Rota.around` does for all tasks."""
        return self.hooks.add(When.AROUND, function, self.name)

    def on_success(self, function: SuccessHook) -> SuccessHook:
        """Have the function called after each success of this task, as `Rota.on_success` does for all tasks."""
        return self.hooks.add(When.SUCCESS, function, self.name)

    def on_failure(self, function: FailureHook) -> FailureHook:
        """Have the function called after each failed attempt of this task, as `Rota.on_failure` does for all tasks."""
        return self.hooks.add(When.FAILURE, function, self.name)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class NamedTask:
    """A task by its name alone, for a process without its code. Its declared defaults are used where the store knows them."""

    def __init__(
        self, desk: Desk, name: str, changes: tuple[dict[str, Any], ...] = (), connection: OwnConnection | None = None
    ) -> None:
        self._desk = desk
        self.name = check_name("task", name)
        self._changes = changes
        self._connection = connection

    def __repr__(self) -> str:
        return f"<NamedTask {self.name}>"

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
        key: str | None = None,
        key_until: Literal["finished", "started"] | None = None,
        max_attempts: int | None = None,
        connection: OwnConnection | None = None,
    ) -> NamedTask:
        """The same task with these options for its next jobs, as `BoundTask.using`."""
        given = {
            "queue": queue,
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "key": key,
            "key_until": key_until,
            "max_attempts": max_attempts,
        }
        changed(Options(), **given)  # type: ignore[arg-type]  # a mistake shows here, not at the enqueue
        own = self._connection if connection is None else _known(connection)
        return NamedTask(self._desk, self.name, (*self._changes, given), own)

    def enqueue(self, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Store the job; its arguments are checked by the worker that knows the task."""
        return self._desk.take([self._new(args, kwargs, self._options())], self._connection)[0]

    async def aenqueue(self, /, *args: Any, **kwargs: Any) -> Job[Any]:
        new = await self._desk.in_thread(lambda: self._new(args, kwargs, self._options()))
        return (await self._desk.atake([new], self._connection))[0]

    def enqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[Any]]:
        """Store one job for each tuple of arguments, all or none, as `BoundTask.enqueue_many`."""
        options = self._options()  # once, before the store's transaction begins
        return self._desk.take(self._each(calls, options), self._connection)

    async def aenqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[Any]]:
        options = await self._desk.in_thread(self._options)
        return await self._desk.atake_many(self._each(calls, options), self._connection)

    def _each(self, calls: Iterable[Sequence[Any]], options: Options) -> Iterator[NewJob]:
        return each_call(calls, lambda args: self._new(args, {}, options))

    def _options(self) -> Options:
        options = self._desk.defaults(self.name, self._connection)
        for given in self._changes:
            options = changed(options, **given)
        return options

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any], o: Options) -> NewJob:
        text = encode_untyped(args, kwargs, self._desk.max_payload)
        context = self._desk.carry(text)
        return NewJob(
            new_id(), self.name, o.queue, text, o.priority, o.run_at, o.delay, o.max_attempts, o.key, o.key_waiting, context
        )


class TaskDecorator(Protocol):
    """What `@app.task(…)` with options answers: turns a function into a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...


def each_call(calls: Iterable[Sequence[Any]], new: Callable[[tuple[Any, ...]], NewJob]) -> Iterator[NewJob]:
    """A job for each call. Raises `ArgumentsError` naming the number of the call that does not fit."""
    for number, args in enumerate(calls, 1):
        if type(args) is not tuple:
            if isinstance(args, str | bytes | bytearray) or not isinstance(args, Sequence):
                raise ArgumentsError(
                    f"call {number} is {brief(args)}: pass a tuple of arguments for each call, for example (42,)"
                )
            args = tuple(args)
        try:
            yield new(args)
        except ArgumentsError as error:
            raise type(error)(f"call {number}: {error}") from error


def _known(connection: OwnConnection) -> OwnConnection:
    from rota.within import check_known

    check_known(connection)
    return connection


def declarations(tasks: Iterable[Task[..., Any, Any]]) -> list[TaskRow]:
    """The defaults of these tasks, as the store keeps them."""
    return [TaskRow(task.name, task.options.queue, task.options.priority, task.options.max_attempts) for task in tasks]


def name_of(function: Callable[..., Any]) -> str:
    """A task's name where none is given: the function's module and its name there.

    A file that is run as a script is called `__main__`; the worker that imports it knows it by the file's name.
    """
    try:
        return f"{_module_of(function)}.{function.__qualname__}"
    except AttributeError:
        raise ConfigError(f'{brief(function)} has no name of its own: give it one with @app.task(name="…")') from None


def _module_of(function: Callable[..., Any]) -> str:
    if function.__module__ != "__main__":
        return function.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return "__main__" if file is None else Path(file).stem


def check_function(function: object) -> None:
    """Refuse what cannot be run as a body. Raises `ConfigError`."""
    if not callable(function):
        raise ConfigError(f"{brief(function)} is no function: write @app.task above one; a name is given as @app.task(name=…)")
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ConfigError(f"{brief(function)} is a generator function, whose body would never run: return a list, not `yield`")
