"""Tasks whose bodies run in a process of their own, which imports this module."""

import os
import time

from app.words import nothing
from rota import Retry, Rota, current_job

app = Rota("memory://")
limited = Rota("memory://")


@app.task(isolated=True, keep_result=True)
def process() -> int:
    current_job().progress(1, 2, "half")
    return os.getpid()


@app.task(isolated=True, keep_result=True)
async def process_of_a_coroutine() -> int:
    return os.getpid()


@app.task(isolated=True, max_attempts=1)
def die() -> None:
    os._exit(3)


@app.task(isolated=True, timeout=0.3, max_attempts=1)
def sleep() -> None:
    time.sleep(60)


@app.task(isolated=True, max_attempts=1)
def unawaited() -> object:
    return nothing()


@limited.task(isolated=True, rate="1000/s", max_attempts=1)
def busy() -> None:
    raise Retry(30, "busy", limit=True)
