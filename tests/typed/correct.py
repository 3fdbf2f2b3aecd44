"""What type checkers must accept: arguments, results and options as they are declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_type

from rota import Job, Rota, State, Task

app = Rota("memory://")


@app.task
def plain(order_id: int, note: str = "") -> str:
    return f"{order_id}{note}"


@app.task(queue="reports", priority=10, max_attempts=5, timeout=300, keep_result=True, retry=[1, 5, 30])
async def build(tenant_id: int) -> bytes:
    return bytes(tenant_id)


@app.task(retry={TimeoutError: 5.0}, isolated=True)
def optioned(*values: float, flag: bool = False) -> None: ...


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


async def async_use() -> None:
    assert_type(await build(1), bytes)
    assert_type(await plain.aenqueue(1), Job[str])
    assert_type(await build.aenqueue(7), Job[bytes])
    assert_type(await (await build.aenqueue(7)).aresult(), bytes)


def is_task(task: Task[[int], None, None]) -> None:
    task.enqueue(1)
