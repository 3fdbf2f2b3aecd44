"""A program without a server: `quiet`, `configured`, `warnings` say what it does about logging, `async` makes it a coroutine.

It ends when all that waits on the queue has had an attempt, or with `stay` at a signal; with `patient` it waits for bodies too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading

from beside_tasks import app

WORDS = sys.argv[1:]


def serve() -> None:
    if "stay" in WORDS or "patient" in WORDS:
        threading.Event().wait(60)
    pause = threading.Event()
    while app.stats().states["queued"] or app.stats().states["running"]:
        pause.wait(0.01)


async def serve_in_loop() -> None:
    async with app.beside(queues=["mail"], shutdown_timeout=0.1):
        await asyncio.sleep(60)


if "configured" in WORDS:
    logging.basicConfig(level="INFO", format="logged: %(message)s")
if "warnings" in WORDS:
    logging.basicConfig(format="logged: %(message)s")
if "async" in WORDS:
    asyncio.run(serve_in_loop())
else:
    with app, app.beside(queues=["mail"], shutdown_timeout=600 if "patient" in WORDS else 0.1):
        serve()
print("threads left:", [thread.name for thread in threading.enumerate() if thread.name.startswith("rota")])
