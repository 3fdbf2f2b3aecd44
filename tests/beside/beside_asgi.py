"""Web applications for ASGI servers: one of Starlette's, and a plain one that knows no lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from beside_tasks import app, deliver, linger
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


@asynccontextmanager
async def greeting(web: Starlette) -> AsyncIterator[dict[str, str]]:
    yield {"greeting": "welcome"}


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.state.greeting)


async def send(request: Request) -> PlainTextResponse:
    return PlainTextResponse((await deliver.aenqueue("Ada")).id)


async def dawdle(request: Request) -> PlainTextResponse:
    return PlainTextResponse((await linger.aenqueue(30)).id)


web = Starlette(
    routes=[Route("/", home), Route("/send", send), Route("/dawdle", dawdle)],
    lifespan=app.lifespan(greeting, worker=True, queues=["mail"], shutdown_timeout=0.1),
)


async def simple(scope: Any, receive: Any, answer: Any) -> None:
    if scope["type"] != "http":
        raise ValueError(f"it knows no {scope['type']}")
    job = await deliver.aenqueue("Ada")
    await answer({"type": "http.response.start", "status": 200, "headers": []})
    await answer({"type": "http.response.body", "body": job.id.encode()})


plain = app.lifespan(worker=True, queues=["mail"]).asgi(simple)
