"""A worker of `fault_limited` that stops itself, once, in the middle of a claim: it holds the room's lock then."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence

import fault_limited

from rota.stores import postgres_driver
from rota.stores.database import Call, Row
from rota.stores.postgres_driver import Exchange

postgres_driver._SILENCE = "1s"
send = Exchange.send


def freezing(exchange: Exchange, calls: Sequence[Call]) -> list[list[Row]]:
    answers = send(exchange, calls)
    if any(name == "lock_rooms" for name, _ in calls):
        Exchange.send = send  # type: ignore[method-assign]
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.2)  # the signal may stop another thread first
    return answers


if __name__ == "__main__":
    Exchange.send = freezing  # type: ignore[method-assign]
    sys.modules["fault_limited"] = fault_limited
    sys.exit(fault_limited.main())
