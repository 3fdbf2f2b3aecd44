"""Hooks of the isolated tasks in `hooked`, whose module does not import this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from app.hooked import app, said
from rota import CurrentJob


@app.around
def outer(job: CurrentJob) -> Iterator[None]:
    token = said.set(f"attempt {job.attempt}")
    yield
    said.reset(token)


@app.around
async def inner(job: CurrentJob) -> AsyncIterator[None]:
    said.set(f"{said.get()} of {job.task}")
    yield
    raise ValueError("too late to matter")


@app.on_start
def broken(job: CurrentJob) -> None:
    raise SystemExit(3)
