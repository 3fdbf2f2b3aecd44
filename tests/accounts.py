"""What bodies did, written down by themselves, and whether it agrees with what the store says.

A line is appended at the start and at the end of each body, with one `write` to a file opened for appending, so lines of many
processes do not mix and none is lost with its process.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rota import Rota, current_job
from rota.clock import at
from rota.model import JobRow, State


@dataclass(frozen=True, slots=True)
class Line:
    word: str
    """`start` or `end`."""
    job: str
    claim: int
    pid: int
    monotonic: int
    """Nanoseconds, comparable between the processes of a machine."""
    wall: int
    """Microseconds since the epoch, as the store counts."""


def note(ledger: str | Path, word: str) -> None:
    """Append a line about the running job."""
    claimed = current_job()._claimed
    line = f"{word} {claimed.id} {claimed.claim} {os.getpid()} {time.monotonic_ns()} {time.time_ns() // 1000}\n"
    descriptor = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@contextmanager
def noted(ledger: str | Path) -> Iterator[None]:
    """A line at the start and one at the end, whatever the end."""
    note(ledger, "start")
    try:
        yield
    finally:
        note(ledger, "end")


def lines(ledger: str | Path) -> list[Line]:
    path = Path(ledger)
    if not path.exists():
        return []
    found = []
    for text in path.read_text().splitlines():
        word, job, claim, pid, monotonic, wall = text.split()
        found.append(Line(word, job, int(claim), int(pid), int(monotonic), int(wall)))
    return found


def starts(ledger: str | Path, job: str = "") -> int:
    """How many bodies began, of all jobs or of one."""
    return _count(ledger, f"start {job}")


def ends(ledger: str | Path, job: str = "") -> int:
    return _count(ledger, f"end {job}")


def most_at_once(ledger: str | Path) -> int:
    """The largest number of bodies that ran at the same moment."""
    now = most = 0
    for line in sorted(lines(ledger), key=lambda line: (line.monotonic, line.word == "start")):
        now += 1 if line.word == "start" else -1
        most = max(most, now)
    return most


@dataclass(frozen=True, slots=True)
class Account:
    """What was found; the checks that always hold were made already."""

    states: Counter[State]
    starts: int
    repeated: dict[str, int]
    """Jobs that began more than once, and how often."""
    overlaps: list[str]
    """Jobs of which two bodies ran at once."""


def account(app: Rota, ids: Sequence[str], ledger: str | Path, *, server_crashed: bool = False) -> Account:
    """Check that no job is lost or left running, that no claim began twice, and that none began once its job was final.

    A server that crashes may forget the claims of its last moments, so after that only losses are looked for.
    """
    rows = {row.id: row for step in range(0, len(ids), 500) for row in app.store.get(ids[step : step + 500])}
    missing = [job for job in ids if job not in rows]
    assert not missing, f"{len(missing)} of {len(ids)} jobs are gone, {missing[0]} among them"
    running = [row for row in rows.values() if row.state is State.RUNNING]
    assert not running, f"{len(running)} jobs are left running, for example {running[0]}"
    told = lines(ledger)
    claims = Counter((line.job, line.claim) for line in told if line.word == "start")
    twice = [claim for claim, times in claims.items() if times > 1]
    assert server_crashed or not twice, f"{len(twice)} claims began more than once, for example {twice[0]}"
    for line in told:
        if line.word == "start" and not server_crashed:
            _check_start(line, rows.get(line.job))
    begun = Counter(job for job, _ in claims)
    return Account(
        states=Counter(row.state for row in rows.values()),
        starts=len(claims),
        repeated={job: times for job, times in begun.items() if times > 1},
        overlaps=[job for job, times in begun.items() if times > 1 and _overlap([line for line in told if line.job == job])],
    )


def _check_start(line: Line, row: JobRow | None) -> None:
    if row is None or row.finished_at is None:
        return
    assert line.claim <= row.claim, f"claim {line.claim} of {row.id} began, and the store knows of {row.claim}"
    late = line.wall - row.finished_at
    assert late <= 0, f"claim {line.claim} of {row.id} began {late} µs after it was {row.state} ({at(row.finished_at)})"


def _overlap(of_job: list[Line]) -> bool:
    """Whether two bodies of a job ran at once. One without an end was killed, and counts as its start alone."""
    spans = []
    for line in of_job:
        if line.word == "start":
            end = next((each.monotonic for each in of_job if each.word == "end" and each.claim == line.claim), line.monotonic)
            spans.append((line.monotonic, end))
    return any(later < end for (_, end), (later, _) in pairwise(sorted(spans)))


def _count(ledger: str | Path, text: str) -> int:
    path = Path(ledger)
    return path.read_bytes().count(text.encode()) if path.exists() else 0
