"""What the demo's tasks really did, written by themselves to a file that Rota knows nothing of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from rota import current_job
from rota.clock import Micros, machine_now

VARIABLE = "ROTA_DEMO_EFFECTS"
"""The environment variable that names the file."""


class Effect(msgspec.Struct, frozen=True):
    """One line of the file: a body began, or did its work."""

    job: str
    task: str
    attempt: int
    did: bool
    at: Micros


@contextmanager
def recorded() -> Iterator[None]:
    """Write that the running job's body began and, unless it raises, that it did its work."""
    _write(did=False)
    yield
    _write(did=True)


def read(path: Path) -> list[Effect]:
    """Every line, in the order in which they were written."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Effect) for line in path.read_bytes().splitlines()]


def _write(did: bool) -> None:
    job = current_job()
    line = msgspec.json.encode(Effect(job.id, job.task, job.attempt, did, machine_now()))
    # One short write in append mode is whole, whichever processes write beside it, and a kill cannot undo it.
    os.write(_file(), line + b"\n")


@cache
def _file() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
