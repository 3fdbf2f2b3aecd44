"""A task: a function declared as runnable in the background, with the options its jobs start from."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from rota.clock import Micros, moment, span
from rota.codec import Signature, encode_untyped
from rota.errors import ConfigError
from rota.handle import Job
from rota.ids import new_id
from rota.model import NewJob
from rota.rules.retry import RetryPolicy

P = ParamSpec("P")
R = TypeVar("R")
C_co = TypeVar("C_co", covariant=True)
NAME_LIMIT = 200
PRIORITY_LIMIT = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a job is enqueued with, besides its arguments."""

    queue: str = "default"
    priority: int = 0
    max_attempts: int = 5
    run_at: Micros | None = None
    delay: Micros = 0
    key: str | None = None
    key_waiting: bool = False


class Desk(Protocol):
    """Where a task hands in its jobs; the app is one."""

    max_payload: int

    def take(self, jobs: Iterable[NewJob]) -> list[Job[Any]]: ...
    async def atake(self, jobs: Sequence[NewJob]) -> list[Job[Any]]: ...
    def defaults(self, name: str) -> Options: ...
    async def in_thread(self, call: Callable[[], R]) -> R: ...


class BoundTask(Generic[P, R]):
    """A task with the options of a call set; `using` makes one."""

    def __init__(self, task: Task[P, R, Any], options: Options) -> None:
        self._task = task
        self._options = options

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
    ) -> BoundTask[P, R]:
        """The same task with these options for its next jobs; what is left out stays as it was.

        `delay` (seconds or a `timedelta`) or `run_at` (an aware `datetime`) say when the job becomes due. Of one `key`, a task
        has at most one unfinished job: enqueueing a second answers the first, `existed` set. With `key_until="started"` the
        key is free again once the job has been claimed. Raises `ConfigError` for an option that cannot be right.
        """
        given = _options(self._options, queue, priority, delay, run_at, key, key_until, max_attempts)
        return BoundTask(self._task, given)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the job, durably, and answer it. Raises `ArgumentsError` for arguments that do not fit or cannot be stored."""
        return self._task.desk.take([self._new(args, kwargs)])[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`enqueue` for coroutines: those that wait at the same time share one transaction."""
        return (await self._task.desk.atake([self._new(args, kwargs)]))[0]

    def enqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[R]]:
        """Store one job for each tuple of arguments, all or none, in as few round trips as the store allows.

        `calls` may be a generator of millions: it is read in chunks.
        """
        return self._task.desk.take(self._new(tuple(args), {}) for args in calls)

    async def aenqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[R]]:
        return await self._task.desk.in_thread(lambda: self.enqueue_many(calls))

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        o = self._options
        text = self._task.signature.encode(args, kwargs, self._task.desk.max_payload)
        return NewJob(
            new_id(), self._task.name, o.queue, text, o.priority, o.run_at, o.delay, o.max_attempts, o.key, o.key_waiting
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
    ) -> None:
        super().__init__(self, options)
        self.desk = desk
        self.function = function
        self.name = name
        self.options = options
        self.policy = policy
        self.timeout = timeout
        self.keep_result = keep_result
        self.isolated = isolated
        self.is_coroutine = is_coroutine
        self.signature = Signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__module__ = function.__module__
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class NamedTask:
    """A task by its name alone, for a process without its code. Its declared defaults are used where the store knows them."""

    def __init__(self, desk: Desk, name: str, changes: tuple[dict[str, Any], ...] = ()) -> None:
        self._desk = desk
        self.name = check_name("task", name)
        self._changes = changes

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
        _options(Options(), **given)  # type: ignore[arg-type]  # a mistake shows here, not at the enqueue
        return NamedTask(self._desk, self.name, (*self._changes, given))

    def enqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """Store the job; its arguments are checked by the worker that knows the task."""
        return self._desk.take([self._new(args, kwargs)])[0]

    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        new = await self._desk.in_thread(lambda: self._new(args, kwargs))
        return (await self._desk.atake([new]))[0]

    def enqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[Any]]:
        return self._desk.take(self._new(tuple(args), {}) for args in calls)

    async def aenqueue_many(self, calls: Iterable[Sequence[Any]]) -> list[Job[Any]]:
        return await self._desk.in_thread(lambda: self.enqueue_many(calls))

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        o = self._desk.defaults(self.name)
        for given in self._changes:
            o = _options(o, **given)
        text = encode_untyped(args, kwargs, self._desk.max_payload)
        return NewJob(new_id(), self.name, o.queue, text, o.priority, o.run_at, o.delay, o.max_attempts, o.key, o.key_waiting)


class TaskDecorator(Protocol):
    """What `@app.task(…)` with options answers: turns a function into a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...


def check_name(kind: str, name: str) -> str:
    """The name, if it may be one: text of 1 to 200 characters without control characters or lone surrogates."""
    if not isinstance(name, str) or not name or len(name) > NAME_LIMIT:
        raise ConfigError(f"{kind}={name!r}: a {kind} is text of 1 to {NAME_LIMIT} characters")
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in name):
        raise ConfigError(f"{kind}={name!r}: a {kind} has no control characters and no lone surrogates")
    return name


def check_attempts(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= PRIORITY_LIMIT:
        raise ConfigError(f"max_attempts={count!r}: the number of attempts is a whole number from 1")
    return count


def check_priority(priority: int) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > PRIORITY_LIMIT:
        raise ConfigError(f"priority={priority!r}: a priority is a whole number between -2147483647 and 2147483647")
    return priority


def _options(
    base: Options,
    queue: str | None,
    priority: int | None,
    delay: float | timedelta | None,
    run_at: datetime | None,
    key: str | None,
    key_until: Literal["finished", "started"] | None,
    max_attempts: int | None,
) -> Options:
    changes: dict[str, Any] = {}
    if queue is not None:
        changes["queue"] = check_name("queue", queue)
    if priority is not None:
        changes["priority"] = check_priority(priority)
    if delay is not None and run_at is not None:
        raise ConfigError("delay and run_at are both given: pass one of them")
    if delay is not None:
        changes |= {"delay": span(delay, "delay"), "run_at": None}
    if run_at is not None:
        changes |= {"delay": 0, "run_at": moment(run_at, "run_at")}
    if key is not None:
        changes["key"] = check_name("key", key)
    if key_until is not None:
        if key_until not in ("finished", "started"):
            raise ConfigError(f"key_until={key_until!r}: say 'finished' (the default) or 'started'")
        changes["key_waiting"] = key_until == "started"
    if max_attempts is not None:
        changes["max_attempts"] = check_attempts(max_attempts)
    return replace(base, **changes)
