"""An app's life in ASGI servers: nested in one that exists, alone, with a worker and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rota import Job, Rota, State
from rota.errors import ConfigError
from working import eventually

PATIENCE = 30.0


async def soon(check: Callable[[], object]) -> None:
    await asyncio.to_thread(eventually, check)


def test_the_worker_works_within_the_life_that_exists_already(app: Rota) -> None:
    told: list[str] = []

    @app.task
    def last() -> None:
        told.append("ran")

    @asynccontextmanager
    async def inner(web: object) -> AsyncIterator[dict[str, object]]:
        told.append("inner begins")
        yield {"web": web}
        assert app.workers() == []
        told.append("inner ends")

    async def live() -> None:
        async with app.lifespan(inner, worker=True, queues=["default"])("the web application") as state:
            assert state == {"web": "the web application"}
            job = await last.aenqueue()
            await soon(lambda: job.refresh().status is State.SUCCEEDED)
            assert [row.queues for row in app.workers()] == [["default"]]

    asyncio.run(live())
    assert told == ["inner begins", "ran", "inner ends"]


def test_the_lives_of_two_apps_nest(app: Rota) -> None:
    other = Rota("memory://")

    @other.task
    def theirs() -> None: ...

    @app.task
    def ours() -> None: ...

    async def live() -> None:
        async with app.lifespan(other.lifespan(worker=True), worker=True)(None):
            jobs: list[Job[None]] = [await theirs.aenqueue(), await ours.aenqueue()]
            await soon(lambda: {job.refresh().status for job in jobs} == {State.SUCCEEDED})

    asyncio.run(live())


def test_without_a_worker_the_store_is_opened_and_closed(app: Rota) -> None:
    async def live() -> None:
        async with app.lifespan()(None) as state:
            assert state is None
            assert app.holding.is_open
            assert app.workers() == []

    asyncio.run(live())
    assert not app.holding.is_open


def test_a_store_that_is_away_keeps_no_server_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    away = Rota("postgresql://nobody@/none?host=/nowhere")

    async def live(worker: bool) -> None:
        async with away.lifespan(worker=worker)(None):
            await soon(lambda: "the store is away" in caplog.text)
        caplog.clear()

    asyncio.run(live(True))
    asyncio.run(live(False))


def test_a_mistake_keeps_the_server_from_starting(app: Rota) -> None:
    async def live() -> None:
        async with Rota("nothing://").lifespan()(None):
            pass

    with pytest.raises(ConfigError, match="no store is known"):
        asyncio.run(live())
    with pytest.raises(ConfigError, match="add worker=True"):
        app.lifespan(queues=["mail"])


def test_one_lifespan_serves_several_lives(app: Rota) -> None:
    @app.task
    def quick() -> None: ...

    lifespan = app.lifespan(worker=True)

    async def live() -> None:
        async with lifespan(None):
            job = await quick.aenqueue()
            await soon(lambda: job.refresh().status is State.SUCCEEDED)

    for _ in range(2):
        asyncio.run(live())


# -- plain applications -------------------------------------------------------------------------


class Server:
    """Tells an application of its life as a server does, and keeps what it answers."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.said: list[str] = []

    async def live(self, meanwhile: Callable[[], object]) -> None:
        task = asyncio.create_task(self._application({"type": "lifespan", "state": {}}, self._told.get, self._hear))
        await self._told.put({"type": "lifespan.startup"})
        await soon(lambda: self.said or task.done())
        await asyncio.to_thread(meanwhile)
        await self._told.put({"type": "lifespan.shutdown"})
        await task

    async def _hear(self, message: dict[str, Any]) -> None:
        self.said.append(": ".join(filter(None, [message["type"], message.get("message")])))


def with_life(begun: str = "complete", ended: str = "complete") -> tuple[Any, list[str]]:
    """A plain application with a life of its own, and what it was told of that."""
    told: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        for answer in (begun, ended):
            told.append((await receive())["type"])
            await send({"type": f"{told[-1]}.{answer}", "message": "no room" if answer == "failed" else ""})

    return application, told


def test_a_plain_application_keeps_its_own_life(app: Rota) -> None:
    application, told = with_life()
    server = Server(app.lifespan(worker=True).asgi(application))
    asyncio.run(server.live(lambda: eventually(app.workers)))
    assert told == ["lifespan.startup", "lifespan.shutdown"]
    assert server.said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert app.workers() == []


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("failed", "complete"), ["lifespan.startup.failed: RuntimeError: no room"]),
        (("complete", "failed"), ["lifespan.startup.complete", "lifespan.shutdown.failed: RuntimeError: no room"]),
    ],
)
def test_a_plain_application_that_fails_is_heard(app: Rota, answers: tuple[str, str], said: list[str]) -> None:
    application, _ = with_life(*answers)
    server = Server(app.lifespan(worker=True).asgi(application))
    with pytest.raises(RuntimeError, match="no room"):
        asyncio.run(server.live(lambda: None))
    assert server.said == said
    assert app.workers() == []


def test_a_plain_application_ends_its_own_life_where_the_worker_cannot_begin() -> None:
    application, told = with_life()
    server = Server(Rota("nothing://").lifespan(worker=True).asgi(application))
    with pytest.raises(ConfigError, match="no store is known"):
        asyncio.run(server.live(lambda: None))
    assert told == ["lifespan.startup", "lifespan.shutdown"]
    assert [said.split(":")[0] for said in server.said] == ["lifespan.startup.failed"]
