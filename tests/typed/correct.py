"""What type checkers must accept: arguments, results and options as they are declared."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import aiosqlite

from rota import CurrentJob, Event, FailedAttempt, Job, Limit, Retry, Rota, State, Task, current_job
from rota.beside import Beside
from rota.testing import Clock, assert_enqueued, assert_not_enqueued, drain_through, enqueued, fresh_store

app = Rota("memory://")


@app.task
def plain(order_id: int, note: str = "") -> str:
    return f"{order_id}{note}"


@app.task(queue="reports", priority=10, max_attempts=5, timeout=300, keep_result=True, retry=[1, 5, 30])
async def build(tenant_id: int) -> bytes:
    return bytes(tenant_id)


@app.task(retry={TimeoutError: 5.0}, isolated=True)
def optioned(*values: float, flag: bool = False) -> None: ...


@app.task(concurrency=2, rate="10/m")
def limited(tenant_id: int) -> None:
    raise Retry(after=30, limit=True)


@app.task(
    concurrency=[Limit(2, key=lambda tenant_id: tenant_id), 20],
    rate=Limit("10/m", key=lambda tenant_id, **_: tenant_id, name="partner"),
)
async def limited_by_key(tenant_id: int, report: str = "") -> str:
    raise Retry(after=timedelta(minutes=1), limit="partner")


@app.task(concurrency=Limit(2), rate=("10/s", "1000/d"))
def limited_in_several_ways() -> None: ...


@app.on_start
def note(job: CurrentJob) -> None:
    assert_type(job.arguments, dict[str, Any])


@app.on_start
async def anote(job: CurrentJob) -> None: ...


@app.around
def wrapped(job: CurrentJob) -> Iterator[None]:
    yield


@build.around
async def awrapped(job: CurrentJob) -> AsyncIterator[None]:
    yield


@build.on_success
def succeeded(job: CurrentJob, result: bytes) -> None: ...


@plain.on_failure
@app.on_failure
async def failed(job: CurrentJob, failure: FailedAttempt) -> None:
    assert_type(failure.final, bool)
    assert_type(failure.error, BaseException | None)


def sync_use() -> None:
    assert_type(plain.enqueue(1, note="x"), Job[str])
    assert_type(plain.enqueue(order_id=1).wait(timeout=3).result(), str)
    assert_type(build.enqueue(7).result(), bytes)
    assert_type(plain(1), str)
    assert_type(plain.using(delay=60, key="k").enqueue(1), Job[str])
    assert_type(plain.using(run_at=datetime.now(UTC), queue="mail").enqueue(1).refresh().status, State)
    assert_type(plain.using(delay=timedelta(minutes=1)).using(priority=3).enqueue(1), Job[str])
    assert_type(plain.enqueue_many([(1,), (2, "x")]), list[Job[str]])
    optioned.enqueue(1.0, 2.0, flag=True)
    assert_type(limited.enqueue(1), Job[None])
    assert_type(limited_by_key.enqueue(1, report="x"), Job[str])


async def async_use() -> None:
    assert_type(await build(1), bytes)
    assert_type(await plain.aenqueue(1), Job[str])
    assert_type(await build.aenqueue(7), Job[bytes])
    assert_type(await (await build.aenqueue(7)).aresult(), bytes)


def finishing(own: sqlite3.Connection) -> None:
    assert_type(current_job().finish_within(own), None)
    current_job().finish_within(own, result=[1])


async def afinishing(own: object) -> None:
    assert_type(await current_job().afinish_within(own, result=1), None)


tenant: ContextVar[str] = ContextVar("tenant")
request: ContextVar[dict[str, int]] = ContextVar("request")
carrying = Rota("memory://", context=[tenant, request])


def enqueueing_within(own: sqlite3.Connection) -> None:
    assert_type(plain.using(connection=own, delay=5).enqueue(1), Job[str])
    assert_type(build.using(connection=own).using(key="k").enqueue_many([(1,)]), list[Job[bytes]])
    app.named("plain").using(connection=own).enqueue(1)
    with app.within(own):
        assert_type(plain.enqueue(1), Job[str])


async def aenqueueing_within(own: aiosqlite.Connection) -> None:
    assert_type(await plain.using(connection=own).aenqueue(1), Job[str])
    async with app.within(own):
        assert_type(await plain.aenqueue(1), Job[str])


def beside() -> None:
    with app.beside(queues=["mail"], concurrency=2, shutdown_timeout=timedelta(seconds=5)) as worker:
        assert_type(worker, Beside)
        assert_type(worker.alive, bool)


async def abeside() -> None:
    async with app.beside() as worker, app.lifespan(worker=True, poll=0.5)(None):
        assert_type(worker, Beside)


def asserting() -> None:
    assert_enqueued(plain.using(queue="mail"), 1)
    assert_not_enqueued(app.named("plain"), 1)
    clock = Clock()
    with fresh_store(app, clock=clock) as fresh:
        assert_type(fresh, Rota)
        assert_type(drain_through(app, hours=1), list[Event])
        assert_type(enqueued(app, task=plain, args={"number": 1}), list[Job[Any]])


def is_task(task: Task[[int], None, None]) -> None:
    task.enqueue(1)
