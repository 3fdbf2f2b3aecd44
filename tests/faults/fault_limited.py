"""Tasks under limits, and a worker of them: `python -m fault_limited '{"lease": 1.5, …}'`."""

from __future__ import annotations

import json
import logging
import os
import sys
import time

from accounts import noted
from rota import Limit, Rota
from rota.worker import Worker

LEDGER = os.environ["FAULT_LEDGER"]
app = Rota(os.environ["FAULT_URL"])

ROOMS = {"pair": 2, "shared one": 3, "shared two": 3, "tenant": 1}
"""How many bodies of a task (or of a key of `tenant`) may run at once; the two that share have the three together."""
PER_SECOND = 8


@app.task(name="pair", retry=0, concurrency=2, max_attempts=50)
def pair() -> None:
    with noted(LEDGER):
        time.sleep(0.02)


@app.task(name="shared one", retry=0, concurrency=Limit(3, name="shared"), max_attempts=50)
def shared_one() -> None:
    with noted(LEDGER):
        time.sleep(0.03)


@app.task(name="shared two", retry=0, concurrency=Limit(3, name="shared"), max_attempts=50)
async def shared_two() -> None:
    import asyncio

    with noted(LEDGER):
        await asyncio.sleep(0.03)


@app.task(name="spaced", retry=0, rate=f"{PER_SECOND}/s", max_attempts=50)
def spaced() -> None:
    with noted(LEDGER):
        pass


@app.task(name="tenant", retry=0, concurrency=[Limit(1, key=lambda tenant: tenant), 4], max_attempts=50)
def tenant(tenant: str) -> None:
    with noted(LEDGER):
        time.sleep(0.02)


@app.task(name="free", retry=0)
def free() -> None:
    with noted(LEDGER):
        pass


def main() -> int:
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    return Worker(app, **json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    sys.modules["fault_limited"] = sys.modules["__main__"]
    sys.exit(main())
