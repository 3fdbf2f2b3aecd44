"""Runs one function of an adapter, `script.py peer_huey enqueue 2000`, and holds the loops that time the enqueueing side.

Answers are JSON lines on stdout. Only the standard library is used, since every contender's interpreter runs it.
The adapter is imported, not run, so that its tasks have the same names here as in its worker.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

from tally import SEEN, SENT, open_slots

WARM_UP = 20


def url() -> str:
    """Where the store of this run is."""
    return os.environ["BENCH_URL"]


def answer(**values: float) -> None:
    print(json.dumps(values), flush=True)


def main() -> None:
    """Run the function named on the command line; its arguments are whole numbers."""
    adapter, name, *arguments = sys.argv[1:]
    getattr(importlib.import_module(adapter), name)(*map(int, arguments))


def wait_at_gate() -> None:
    """Say that all is ready and wait for the word, so that several processes start together."""
    answer(ready=1)
    sys.stdin.readline()


# -- one by one -------------------------------------------------------------------------------------


def one_by_one(send: Callable[[], object], n: int) -> None:
    """Time `n` calls, one after the other."""
    for _ in range(WARM_UP):
        send()
    wait_at_gate()
    start = time.monotonic_ns()
    for _ in range(n):
        send()
    answer(start=start, end=time.monotonic_ns(), jobs=n)


async def aone_by_one(send: Callable[[], Awaitable[object]], n: int) -> None:
    for _ in range(WARM_UP):
        await send()
    wait_at_gate()
    start = time.monotonic_ns()
    for _ in range(n):
        await send()
    answer(start=start, end=time.monotonic_ns(), jobs=n)


async def many_callers(send: Callable[[], Coroutine[object, object, object]], n: int, callers: int) -> None:
    """Time `n` calls made by `callers` coroutines, each of which waits for its own before the next."""

    async def caller(calls: int) -> None:
        for _ in range(calls):
            await send()

    await asyncio.gather(*(caller(2) for _ in range(callers)))
    start = time.monotonic_ns()
    await asyncio.gather(*(caller(n // callers) for _ in range(callers)))
    answer(start=start, end=time.monotonic_ns(), jobs=n // callers * callers)


def all_at_once(send: Callable[[int], object], n: int) -> None:
    """Time one call that adds `n` jobs."""
    send(10)
    start = time.monotonic_ns()
    send(n)
    answer(start=start, end=time.monotonic_ns(), jobs=n)


async def aall_at_once(send: Callable[[int], Awaitable[object]], n: int) -> None:
    await send(10)
    start = time.monotonic_ns()
    await send(n)
    answer(start=start, end=time.monotonic_ns(), jobs=n)


# -- latency ----------------------------------------------------------------------------------------


def pauses(n: int) -> list[float]:
    """Seconds between single jobs: random, so that no poll falls into step with them, and the same for every contender."""
    dice = random.Random(7)
    return [dice.uniform(0.02, 0.08) for _ in range(n)]


def worker_slots() -> memoryview:
    """The tally of the one worker that runs."""
    (path,) = Path(os.environ["BENCH_TALLY"]).glob("*.tally")
    return open_slots(path)


def arrived(sent: int, returned: int, slots: memoryview) -> None:
    answer(from_call=slots[SEEN] - sent, from_return=slots[SEEN] - returned, call=returned - sent)


def ping(send: Callable[[int], object], n: int) -> None:
    """Send single jobs to an idle worker and answer for each how long its body took to begin, in nanoseconds."""
    slots = worker_slots()
    for pause in pauses(n):
        time.sleep(pause)
        sent = time.monotonic_ns()
        send(sent)
        returned = time.monotonic_ns()
        while slots[SENT] != sent:
            time.sleep(0.0005)
        arrived(sent, returned, slots)


async def aping(send: Callable[[int], Awaitable[object]], n: int) -> None:
    slots = worker_slots()
    for pause in pauses(n):
        await asyncio.sleep(pause)
        sent = time.monotonic_ns()
        await send(sent)
        returned = time.monotonic_ns()
        # The worker is another process: there is nothing here to await but time.
        while slots[SENT] != sent:  # noqa: ASYNC110
            await asyncio.sleep(0.0005)
        arrived(sent, returned, slots)


if __name__ == "__main__":
    main()
