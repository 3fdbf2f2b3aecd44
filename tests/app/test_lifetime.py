"""An app's life: closed and used again, shared by threads, inherited by forked children."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota import Rota, State


def test_an_app_may_be_closed_and_used_again(app: Rota) -> None:
    for _ in range(3):
        job = app.send("t")
        assert app.get(job.id).status is State.QUEUED
        app.close()
        app.close()
        if app.url != "memory://":
            assert job.refresh().status is State.QUEUED


def test_a_memory_store_ends_with_its_app() -> None:
    with Rota("memory://") as app:
        app.send("t")
        app.close()
        assert app.jobs() == []


def test_an_app_that_was_never_used_closes() -> None:
    Rota("postgresql://nowhere.invalid/jobs").close()


def test_coroutines_close_it_too(store_url: str) -> None:
    async def main() -> None:
        async with Rota(store_url) as app:
            job = await app.asend("t")
            await app.aclose()
            if app.url != "memory://":
                assert (await app.aget(job.id)).status is State.QUEUED

    asyncio.run(main())


def test_an_app_outlives_the_loops_that_use_it(app: Rota) -> None:
    ids = {asyncio.run(app.asend("t")).id for _ in range(5)}
    assert {job.id for job in asyncio.run(app.ajobs())} == ids


def test_thirty_two_threads_share_an_app(store_url: str) -> None:
    with Rota(store_url) as app:
        ran: list[int] = []
        app.task(name="t")(ran.append)
        together = threading.Barrier(32)

        def use(number: int) -> None:
            together.wait()  # the first use opens the store, for all of them at once
            job = app.send("t", number)
            assert app.get(job.id).id == job.id
            app.named("t").using(delay=3600).enqueue(-1).cancel()
            app.run_one()
            app.stats()

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(use, range(32)))
        app.drain()
        assert sorted(ran) == list(range(32))
        assert app.workers() == []


FORKED = """
import asyncio, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
from rota import Rota

app = Rota(sys.argv[1])
app.task(name="t")(lambda number: None)

async def use(number):
    job = await app.asend("t", number)
    assert (await job.arefresh()).status == "queued"
    await app.aget(job.id)

asyncio.run(use(0))
app._desk.door._lock.acquire()  # as if another thread were at it just now
app.holding._opening.acquire()
child = os.fork()
if not child:
    try:
        asyncio.run(use(1))
        app.send("t", 2)
        app.close()
        app.send("t", 3)
        app.close()
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
app._desk.door._lock.release()
app.holding._opening.release()
assert os.waitpid(child, 0)[1] == 0
asyncio.run(use(4))
assert len(app.jobs()) == 5
app.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_a_forked_child_uses_an_app_of_its_own(store_url: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, store_url], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
