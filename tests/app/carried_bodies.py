"""A task that sees a carried variable in a process of its own."""

from __future__ import annotations

from contextvars import ContextVar

from rota import Rota

tenant: ContextVar[str] = ContextVar("tenant")
app = Rota("sqlite:///never", context=[tenant])


@app.task(isolated=True, keep_result=True)
def tell() -> str:
    return tenant.get("nobody")
