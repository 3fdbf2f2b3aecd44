"""Isolated tasks and their hooks, which stand in another module; their own processes import both."""

from __future__ import annotations

from contextvars import ContextVar

from rota import Rota

app = Rota("memory://")
said: ContextVar[str] = ContextVar("said", default="nothing")


@app.task(isolated=True, keep_result=True)
def plain() -> str:
    return said.get()


@app.task(isolated=True, keep_result=True)
async def coroutine() -> str:
    return said.get()


@app.task(isolated=True, keep_result=True)
def exits() -> str:
    raise SystemExit("x")
