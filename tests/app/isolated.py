"""Tasks whose bodies run in a process of their own, which imports this module."""

import logging
import os
import threading
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


@app.task(isolated=True, queue="mail")
def logs() -> None:
    log = logging.getLogger("shop.stock")
    log.info("order %d is packed", 7, extra={"shelf": 3, "lock": threading.Lock()})
    log.debug("nobody wants to know")
    try:
        raise ValueError("the last one is gone")
    except ValueError:
        log.exception("order 8 is not")
    if (child := os.fork()) == 0:
        log.warning("a fork says so itself")
        os._exit(0)
    os.waitpid(child, 0)


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
