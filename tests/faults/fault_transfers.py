"""Transfers between accounts that finish their jobs with their effects, and a worker of them: `fault_transfers '{…}'`.

Some kill their own process in their first attempt, at a point that is named.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys

from effects import Connection, transaction
from rota import Rota, current_job
from rota.worker import Worker

URL = os.environ["FAULT_URL"]
app = Rota(URL)


@app.task(name="transfer", retry=0, max_attempts=100)
def transfer(source: int, target: int, amount: int, die: str) -> None:
    def pass_by(point: str) -> None:
        if point == die and current_job().attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with transaction(URL) as own:
        pass_by("before the effects")
        move(own, source, target, amount)
        pass_by("before the finish")
        current_job().finish_within(own)
        pass_by("before the commit")
    pass_by("after the commit")


def move(own: Connection, source: int, target: int, amount: int) -> None:
    for account, change in sorted([(source, -amount), (target, amount)]):  # one order for all, so that none deadlocks
        own.execute(f"update accounts set balance = balance + {change} where number = {account}")
    own.execute(f"insert into effects (job) values ('{current_job().id}')")


def main() -> int:
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    return Worker(app, **json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    sys.modules["fault_transfers"] = sys.modules["__main__"]
    sys.exit(main())
