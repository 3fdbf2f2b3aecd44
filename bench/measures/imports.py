"""Seconds that importing the package adds to starting the interpreter."""

from __future__ import annotations

import statistics
import subprocess
import time

from bench.contenders import Contender
from bench.environments import programs
from bench.session import Measure, Session


def act(session: Session, contender: Contender) -> None:
    python = str(programs(contender) / "python")
    bare, full = [], []
    for _ in range(session.size(7, 5)):
        bare.append(_wall(python, "pass"))
        full.append(_wall(python, f"from {contender.package} import *"))
    session.note(contender, "import", statistics.median(full) - statistics.median(bare))


def _wall(python: str, code: str) -> float:
    start = time.monotonic()
    subprocess.run([python, "-c", code], check=True)
    return time.monotonic() - start


# What is on Redis too need not be timed again, and the others there take a second a time.
MEASURE = Measure("import", act, lambda contender: contender.store != "redis")
