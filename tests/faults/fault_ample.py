"""Quick and slow tasks that share a wide limit, and a worker of them: `python -m fault_ample '{"lease": 1.5, …}'`."""

from __future__ import annotations

import json
import logging
import os
import sys

from accounts import noted
from rota import Limit, Rota
from rota.worker import Worker

LEDGER = os.environ["FAULT_LEDGER"]
app = Rota(os.environ["FAULT_URL"])

PLACES = 400
SHARED = Limit(PLACES, name="shared")


@app.task(name="quick", retry=0, concurrency=SHARED, max_attempts=50)
async def quick() -> None:
    import asyncio

    with noted(LEDGER):
        await asyncio.sleep(0.01)


@app.task(name="slow", retry=0, concurrency=SHARED, max_attempts=50)
async def slow() -> None:
    import asyncio

    with noted(LEDGER):
        await asyncio.sleep(0.3)


def main() -> int:
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    return Worker(app, **json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    sys.modules["fault_ample"] = sys.modules["__main__"]
    sys.exit(main())
