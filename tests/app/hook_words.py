"""Bodies and hooks of both kinds, and running one job to its end: what tests of hooks share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from rota import CurrentJob, Rota, Task

said: ContextVar[str] = ContextVar("said", default="nothing")
Body = Callable[[], Any]


def work(app: Rota, task: Task[..., Any, Any]) -> str:
    """Run one job of the task, and say how it ended."""
    job = task.enqueue()
    if not app.eager:
        app.drain()
        job.refresh()
    return f"{job.status}: {job.reason}" if job.reason else job.status.value


def bodies(app: Rota, body: Body, **options: Any) -> list[Task[..., Any, Any]]:
    """The same body as a plain function and as a coroutine function."""

    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return body()

    def plain() -> Any:
        return body()

    return [app.task(name="plain", **options)(plain), app.task(name="coroutine", **options)(coroutine)]


def arounds(name: str, told: list[str]) -> list[Any]:
    """The same hook as a generator function and as an asynchronous one."""

    def plain(job: CurrentJob) -> Iterator[None]:
        told.append(f"{name} in")
        token = said.set(f"{said.get()} {name}")
        try:
            yield
        finally:
            said.reset(token)
            told.append(f"{name} out")

    async def coroutine(job: CurrentJob) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        told.append(f"{name} in")
        token = said.set(f"{said.get()} {name}")
        try:
            yield
        finally:
            await asyncio.sleep(0)
            said.reset(token)
            told.append(f"{name} out")

    return [plain, coroutine]
