"""What a worker costs while it has nothing to do: processor, memory, and writes to the store."""

from __future__ import annotations

import time

import psutil

from bench.contenders import Contender
from bench.session import Measure, Session
from bench.workers import family


def act(session: Session, contender: Contender) -> None:
    with session.run(contender) as run, run.workers() as processes:
        run.answers("wake")
        run.first_start(processes)
        # What follows a job (finishing it, settling down) is not idling.
        time.sleep(session.size(2, 1))
        members = family(processes[0])
        seconds = session.size(10, 3)
        used, written = _processor(members), run.place.written()
        time.sleep(seconds)
        session.note(contender, "idle cpu", (_processor(members) - used) / seconds * 100)
        session.note(contender, "idle written", run.place.written() - written)
        session.note(contender, "memory", sum(member.memory_info().rss for member in members) / 1e6)


def _processor(members: list[psutil.Process]) -> float:
    """Seconds of processor that they have used so far."""
    return sum(sum(member.cpu_times()[:2]) for member in members)


MEASURE = Measure("idle", act, rounds=1)
