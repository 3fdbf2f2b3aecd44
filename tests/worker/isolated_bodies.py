"""Tasks that run in processes of their own, and their kin on threads and on the loop."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from accounts import note, noted
from rota import Rota, current_job

app = Rota("memory://")


class Odd(BaseException):
    pass


@app.task(isolated=True, keep_result=True)
def process_id() -> int:
    return os.getpid()


@app.task(isolated=True, keep_result=True)
async def process_id_async() -> int:
    await asyncio.sleep(0)
    return os.getpid()


@app.task(isolated=True, keep_result=True)
def parents_arguments(text: str, *, times: int) -> str:
    return text * times


@app.task(isolated=True, keep_result=True)
def open_files() -> list[str]:
    return files()


def files() -> list[str]:
    """The sockets and the database files that this process has open, each by what it is."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists the folder
            found.append(str(descriptor.readlink()))
    return [each for each in found if each.startswith("socket:") or ".db" in each]


@app.task(isolated=True, max_attempts=1)
def end_by(how: str) -> None:
    match how:
        case "exit 0":
            sys.exit(0)
        case "exit x":
            sys.exit("x")
        case "interrupt":
            raise KeyboardInterrupt
        case "generator":
            raise GeneratorExit
        case "odd":
            raise Odd("odd")
        case "leave":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), 9)


@app.task(isolated=True, timeout=1.0, retry=0, max_attempts=2)
def overrun(ledger: str) -> None:
    with noted(ledger):
        while True:
            time.sleep(0.01)


@app.task(isolated=True)
def endless(ledger: str) -> None:
    current_job().progress(1, 3, "on its way")
    with noted(ledger):
        while True:
            time.sleep(0.01)


@app.task(isolated=True)
def until_there_isolated(ledger: str, go: str) -> None:
    until_there(ledger, go)


@app.task
def until_there_plain(ledger: str, go: str) -> None:
    until_there(ledger, go)


@app.task
async def until_there_async(ledger: str, go: str) -> None:
    note(ledger, "start")
    while not os.access(go, os.F_OK):  # noqa: ASYNC110  # a file, for it is what the three kinds of bodies can share
        await asyncio.sleep(0.005)
    note(ledger, "end")


def until_there(ledger: str, go: str) -> None:
    with noted(ledger):
        while not Path(go).exists():
            time.sleep(0.005)
