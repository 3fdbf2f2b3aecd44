"""The life of an app, and of a worker beside it, as ASGI servers and frameworks take it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from rota.app import Rota
from rota.beside import Beside, off_loop
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("rota")

Inner = Callable[[Any], AbstractAsyncContextManager[Any]]
"""A lifespan as Starlette and FastAPI know it: called with the web application, it answers an async context manager."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Message, Receive, Send], Awaitable[None]]


class Lifespan:
    """What `app.lifespan(…)` answers: pass it to a framework as `lifespan=`, or wrap a plain application with `asgi`.

    Called with the web application, it answers an async context manager that gives what `inner` gives. It enters `inner`
    first and leaves it last, so bodies find what that provides; between the two the worker is at work. At the end the app is
    closed.
    """

    def __init__(self, app: Rota, inner: Inner | None, make: Callable[[], Beside] | None) -> None:
        self._app = app
        self._inner = inner
        self._make = make

    @asynccontextmanager
    async def __call__(self, application: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(off_loop, self._app.close, _nothing)
            state = None if self._inner is None else await stack.enter_async_context(self._inner(application))
            if self._make is not None:
                await stack.enter_async_context(self._make())
            elif not self._app.eager:
                await off_loop(self._open, _nothing)
            yield state

    def asgi(self, application: ASGI) -> ASGI:
        """The application, living by this lifespan, and within it by its own where it has one."""

        async def serve(scope: Message, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await self._serve(application, scope, receive, send)
            else:
                await application(scope, receive, send)

        return serve

    def _open(self) -> None:
        try:
            self._app.store.open()
        except StoreUnavailable as error:
            log.warning("the store is away and is opened when it is needed: %s", error)

    async def _serve(self, application: ASGI, scope: Message, receive: Receive, send: Send) -> None:
        """Tell the server how far the life is."""
        stage = "startup"
        await receive()
        try:
            async with _life_of(application, scope), self(application):
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
        except Exception as error:
            await send({"type": f"lifespan.{stage}.failed", "message": f"{type(error).__name__}: {error}"})
            raise
        await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def _life_of(application: ASGI, scope: Message) -> AsyncIterator[None]:
    """The life that an application has of its own. Many know no lifespan, and say so by an error or by returning."""
    import asyncio

    told: asyncio.Queue[Message] = asyncio.Queue()
    said: asyncio.Queue[Message] = asyncio.Queue()

    async def live() -> None:
        try:
            await application(scope, told.get, said.put)
        except Exception as error:  # noqa: BLE001  # before its start is complete, an error only says that it knows no lifespan
            await said.put({"type": "ended", "error": error})
        else:
            await said.put({"type": "ended"})

    task = asyncio.create_task(live())
    try:
        await told.put({"type": "lifespan.startup"})
        begun = await said.get()
        if begun["type"] == "lifespan.startup.failed":
            raise RuntimeError(begun.get("message") or "the application failed to start")
        try:
            yield
        except Exception:  # what lies within failed to begin or to end
            await _end(begun, told, said)
            raise
        await _end(begun, told, said)
    finally:
        task.cancel()


async def _end(begun: Message, told: asyncio.Queue[Message], said: asyncio.Queue[Message]) -> None:
    """Have an application that has a life end it."""
    if begun["type"] == "ended":
        return
    await told.put({"type": "lifespan.shutdown"})
    ended = await said.get()
    if "error" in ended:
        raise ended["error"]
    if ended["type"] == "lifespan.shutdown.failed":
        raise RuntimeError(ended.get("message") or "the application failed to shut down")


def _nothing() -> None: ...
