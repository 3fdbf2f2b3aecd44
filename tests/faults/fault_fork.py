"""Use the app, fork, and enqueue by both ways in parent and child."""

from __future__ import annotations

import asyncio
import os
import sys

from rota import Rota


async def some(app: Rota) -> None:
    for job in await asyncio.gather(*(app.asend("quick") for _ in range(10))):
        await job.arefresh()


def both(app: Rota) -> None:
    for _ in range(10):
        app.send("quick").refresh()
    asyncio.run(some(app))


if __name__ == "__main__":
    app = Rota(os.environ["FAULT_URL"])
    both(app)
    child = os.fork()
    both(app)
    if child == 0:
        app.close()
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    both(app)
    app.close()
    sys.exit(os.waitstatus_to_exitcode(status))
