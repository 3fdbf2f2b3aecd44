"""What a worker costs while it has nothing to do: processor, memory, writes to the store, and how often it asks Redis."""

from __future__ import annotations

import time

import psutil

from bench.contenders import Contender
from bench.session import Measure, Session, is_rota
from bench.stores import Place
from bench.valkey import Heard, RedisPlace
from bench.workers import family


def act(session: Session, contender: Contender) -> None:
    with session.run(contender) as run, run.workers() as processes:
        run.answers("wake")
        run.first_start(processes)
        # What follows a job (finishing it, settling down) is not idling.
        time.sleep(session.size(2, 1))
        members = family(processes[0])
        seconds = _seconds(session, contender)
        used, written = _processor(members), run.place.written()
        heard = _wait(run.place, seconds)
        session.note(contender, "idle cpu", (_processor(members) - used) / seconds * 100)
        session.note(contender, "idle written", run.place.written() - written)
        if contender.store == "redis":
            session.note(contender, "idle commands", len(heard) / seconds)
            session.note(contender, "idle pause", _least_pause(heard, seconds))
        session.note(contender, "memory", sum(member.memory_info().rss for member in members) / 1e6)


def _seconds(session: Session, contender: Contender) -> int:
    """On Redis long enough to hear a poll again that comes every five seconds; those of its peers come sooner."""
    if contender.store == "redis":
        return 12 if is_rota(contender) else session.size(5, 3)
    return session.size(10, 3)


def _wait(place: Place, seconds: float) -> list[Heard]:
    """Wait, and answer what was heard meanwhile where that can be."""
    if isinstance(place, RedisPlace):
        return place.overhear(seconds)
    time.sleep(seconds)
    return []


def _least_pause(heard: list[Heard], seconds: float) -> float:
    """The seconds between a command and the same one again, at the least; all of them where none came again."""
    last: dict[bytes, float] = {}
    least = seconds
    for each in heard:
        least = min(least, each.at - last.get(each.kind, float("-inf")))
        last[each.kind] = each.at
    return least


def _processor(members: list[psutil.Process]) -> float:
    """Seconds of processor that they have used so far."""
    return sum(sum(member.cpu_times()[:2]) for member in members)


MEASURE = Measure("idle", act, rounds=1)
