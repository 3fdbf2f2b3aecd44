"""The tasks of the fault tests. Each body writes its start and its end down by itself."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import time

import psycopg
import redis

from accounts import note, noted
from rota import Rota, current_job

LEDGER = os.environ["FAULT_LEDGER"]
app = Rota(os.environ["FAULT_URL"], **json.loads(os.environ.get("FAULT_OPTIONS", "{}")))


@app.task(name="quick", retry=0)
def quick() -> None:
    with noted(LEDGER):
        pass


@app.task(name="nap", retry=0)
def nap(seconds: float) -> None:
    with noted(LEDGER):
        time.sleep(seconds)


@app.task(name="anap", retry=0)
async def anap(seconds: float) -> None:
    note(LEDGER, "start")
    try:
        await asyncio.sleep(seconds)
    finally:
        note(LEDGER, "end")


@app.task(name="until", retry=0)
def until(path: str) -> None:
    """Run until there is a file at the path."""
    with noted(LEDGER):
        while not os.access(path, os.F_OK):
            time.sleep(0.01)


@app.task(name="auntil", retry=0)
async def auntil(path: str) -> None:
    note(LEDGER, "start")
    try:
        while not os.access(path, os.F_OK):  # noqa: ASYNC110  # other processes make the file
            await asyncio.sleep(0.01)
    finally:
        note(LEDGER, "end")


@app.task(name="until_in_a_thread", retry=0)
async def until_in_a_thread(path: str) -> None:
    await asyncio.to_thread(until, path)


@app.task(name="grumble", retry=0)
def grumble(path: str) -> None:
    """The first attempt ends in an error, and any other well, as soon as there is a file at the path."""
    with noted(LEDGER):
        while not os.access(path, os.F_OK):
            time.sleep(0.01)
        if current_job().attempt == 1:
            raise ValueError("the late one")


@app.task(name="die", retry=0)
def die() -> None:
    note(LEDGER, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="hog", retry=0)
def hog(seconds: float) -> None:
    """Hold Python's lock in the first attempt, so that no other thread of the process can do anything."""
    with noted(LEDGER):
        if current_job().attempt == 1:
            ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@app.task(name="hog_isolated", retry=0, isolated=True)
def hog_isolated(seconds: float) -> None:
    with noted(LEDGER):
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@app.task(name="limited", timeout=0.5, max_attempts=1)
def limited(seconds: float) -> None:
    with noted(LEDGER):
        time.sleep(seconds)


@app.task(name="short_until", retry=0, timeout=15.0)
def short_until(path: str) -> None:
    until(path)


@app.task(name="long_until", retry=0, timeout=600.0)
def long_until(path: str) -> None:
    until(path)


@app.task(name="cut", retry=0)
def cut(server: str) -> None:
    """End every connection to the server in the body's last line."""
    if server.startswith("unix"):
        with noted(LEDGER), redis.Redis.from_url(server) as admin:
            for kind in ("normal", "pubsub"):
                admin.client_kill_filter(_type=kind, skipme=True)
        return
    with noted(LEDGER), psycopg.connect(server, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename is not null"
        )


@app.task(name="until_isolated", retry=0, isolated=True)
def until_isolated(path: str) -> None:
    with noted(LEDGER):
        while not os.access(path, os.F_OK):
            time.sleep(0.01)


@app.task(name="split", retry=0, keep_result=True)
def split() -> int:
    """Fork, and return in the child as well."""
    return os.fork() or os.getpid()


@app.task(name="asplit", retry=0, keep_result=True)
async def asplit() -> int:
    return os.fork() or os.getpid()


@app.task(name="split_isolated", retry=0, isolated=True, keep_result=True)
def split_isolated() -> int:
    return os.fork() or os.getpid()
