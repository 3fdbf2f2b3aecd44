"""Seconds from starting the worker command to the first body, a job being queued already."""

from __future__ import annotations

import time

from bench.contenders import Contender
from bench.session import Measure, Session


def act(session: Session, contender: Contender) -> None:
    for _ in range(1 if contender.slow and contender.store == "redis" else session.size(3, 1)):
        with session.run(contender) as run:
            run.answers("wake")
            started = time.monotonic_ns()
            with run.workers() as processes:
                session.note(contender, "cold", (run.first_start(processes) - started) / 1e9)


MEASURE = Measure("cold", act)
