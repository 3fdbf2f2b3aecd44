"""The hooks that are called where a body runs: `around` and `on_start`. Whatever they do, the body runs and its end stands."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from rota.context import CurrentJob
from rota.hooks import Hook, When

if TYPE_CHECKING:  # only coroutine hooks of plain bodies take an event loop of their own
    from asyncio import Runner

log = logging.getLogger("rota")

T = TypeVar("T")
End = tuple[Any, BaseException | None]
"""What a body returned, or what it raised. A value, since Python lets no StopIteration pass through a coroutine."""
Finish = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Brings a coroutine of a hook to its end."""
_MISSING: Any = object()


def call_wrapped(hooks: Sequence[Hook], job: CurrentJob, body: Callable[[], Any]) -> Any:
    """Run a plain body within its hooks, in this thread and context. Returns and raises what the body does."""
    with HookLoop() as loop:
        context = copy_context()

        async def here() -> End:
            try:
                return body(), None
            except BaseException as error:  # noqa: BLE001  # raised again below
                return None, error

        async def finish(going: Coroutine[Any, Any, Any]) -> Any:
            return _in_both(context, lambda: loop.run(going, context))

        return _ended(_at_once(_within(hooks, job, here, finish)))


async def acall_wrapped(hooks: Sequence[Hook], job: CurrentJob, body: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine's body within its hooks, on this loop and in this context. Returns and raises what the body does."""

    async def here() -> End:
        try:
            return await body(), None
        except BaseException as error:  # noqa: BLE001  # raised again below
            return None, error

    async def finish(going: Coroutine[Any, Any, Any]) -> Any:
        return await going

    return _ended(await _within(hooks, job, here, finish))


def tell_of(hook: Hook, job: CurrentJob, error: BaseException) -> None:
    """Log what a hook raised, where it is the hook's own doing; otherwise raise it on."""
    if _interrupts(error):
        raise error
    with suppress(Exception):  # a log that fails must not fail the job
        log.error("%s raised an error; job %s (%s) is not concerned", hook, job.id, job.task, exc_info=error)


class HookLoop:
    """An event loop for coroutine hooks where none runs, made when the first of them comes. Belongs to one thread."""

    def __init__(self) -> None:
        self._runner: Runner | None = None

    def run(self, going: Coroutine[Any, Any, T], context: Context) -> T:
        """Run the coroutine to its end in this context."""
        from asyncio import Runner

        if self._runner is None:
            self._runner = Runner()
        runner = self._runner
        return _off_loops(lambda: runner.run(going, context=context))

    def __enter__(self) -> HookLoop:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            _off_loops(self._runner.close)


async def _within(hooks: Sequence[Hook], job: CurrentJob, body: Callable[[], Awaitable[End]], finish: Finish) -> End:
    """Go through the hooks in their order, run the body, and leave what was entered in the opposite order."""
    entered: list[_Around] = []
    try:
        for hook in hooks:
            if hook.when is When.AROUND:
                around = _Around(hook, job, finish)
                if await around.enter():
                    entered.append(around)
            else:
                await _call(hook, job, finish)
        value, error = await body()
    except BaseException as interruption:  # noqa: BLE001  # the body was told to end before it began
        value, error = None, interruption
    trace = None if error is None else error.__traceback__
    for around in reversed(entered):
        try:
            await around.leave(error)
        except KeyboardInterrupt as interruption:  # Ctrl+C, where jobs are run in the caller
            value, error, trace = None, interruption, interruption.__traceback__
        except BaseException:  # noqa: BLE001  # it was told to end, and did
            log.warning("%s was interrupted at its end, after the body of job %s (%s)", around.hook, job.id, job.task)
        if error is not None:
            error.__traceback__ = trace  # the way through the hooks is no part of the failure
    return value, error


def _at_once(steps: Coroutine[Any, Any, End]) -> End:
    """Take a coroutine that waits for no event loop to its end: so the order of hooks is written once for all bodies."""
    try:
        steps.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("a plain body waited for an event loop")


def _ended(end: End) -> Any:
    value, error = end
    if error is not None:
        raise error
    return value


async def _call(hook: Hook, job: CurrentJob, finish: Finish) -> None:
    try:
        answer = hook.function(job)
        if isinstance(answer, Coroutine):
            await finish(answer)
    except BaseException as error:  # noqa: BLE001  # told, or raised on
        tell_of(hook, job, error)


class _Around:
    """One run through a generator function: up to its `yield` before the body, and on to its end after it."""

    def __init__(self, hook: Hook, job: CurrentJob, finish: Finish) -> None:
        self.hook = hook
        self._job = job
        self._finish = finish
        self._steps: Any = None

    async def enter(self) -> bool:
        """Go up to the `yield`; false where it did not get there. Raises only what interrupts the body itself."""
        try:
            self._steps = self.hook.function(self._job)
            if await self._go_on(None):
                return True
            self._say("came to its end without a yield; the body runs all the same")
        except BaseException as error:  # noqa: BLE001  # told, or raised on
            tell_of(self.hook, self._job, error)
        return False

    async def leave(self, error: BaseException | None) -> None:
        """Go on to the end, with what the body raised if it did. Raises only what interrupts the hook itself."""
        try:
            if await self._go_on(error):
                self._say("yielded a second time, which means nothing: it is closed")
                await self._close()
            elif error is not None:
                self._say(f"swallowed the body's {type(error).__name__}, which counts all the same: raise it on")
        except BaseException as raised:  # noqa: BLE001  # told, or raised on
            if error is None or not _same(raised, error):
                tell_of(self.hook, self._job, raised)

    async def _go_on(self, error: BaseException | None) -> bool:
        """Up to the next `yield`; false where it came to its end."""
        if hasattr(self._steps, "asend"):
            return bool(await self._finish(_next(self._steps, error)))
        try:
            next(self._steps) if error is None else self._steps.throw(error)
        except StopIteration:
            return False
        return True

    async def _close(self) -> None:
        if hasattr(self._steps, "asend"):
            await self._finish(_closed(self._steps))
        else:
            self._steps.close()

    def _say(self, what: str) -> None:
        with suppress(Exception):
            log.error("%s %s; job %s (%s)", self.hook, what, self._job.id, self._job.task)


async def _next(steps: Any, error: BaseException | None) -> bool:
    try:
        await (anext(steps) if error is None else steps.athrow(error))
    except StopAsyncIteration:
        return False
    return True


async def _closed(steps: Any) -> None:
    await steps.aclose()


def _same(raised: BaseException, error: BaseException) -> bool:
    """Whether a hook let the body's error pass. Generators make a RuntimeError of a StopIteration, loops a new cancellation."""
    if raised is error or (isinstance(error, StopIteration | StopAsyncIteration) and raised.__cause__ is error):
        return True
    return type(error).__name__ == "CancelledError" == type(raised).__name__


def _interrupts(error: BaseException) -> bool:
    """Whether what a hook raised came to it from outside, to end the body: a cancellation, or Ctrl+C."""
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError) or asyncio._get_running_loop() is None:
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _off_loops(call: Callable[[], T]) -> T:
    """Call it in this thread, or in another where this one runs an event loop already."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return call()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="rota-hooks") as pool:
        return pool.submit(call).result()


def _in_both(context: Context, call: Callable[[], T]) -> T:
    """Call what runs in `context`, which starts with what is set here; what is set there is set here afterwards."""
    for variable, value in copy_context().items():
        if context.get(variable, _MISSING) is not value:
            context.run(variable.set, value)
    try:
        return call()
    finally:
        for variable, value in context.items():
            if variable.get(_MISSING) is not value:
                variable.set(value)
