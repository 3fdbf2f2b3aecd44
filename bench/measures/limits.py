"""What limits cost: jobs under one that is never full, beside a backlog that one holds, and out of such a backlog."""

from __future__ import annotations

from dataclasses import replace

from bench.contenders import Contender
from bench.measures.throughput import MANY, drain
from bench.session import Measure, Session, is_rota

FEW_HELD, MANY_HELD, HEAPS_HELD = 2_000, 20_000, 100_000
RUNNING = {
    "redis": f"""
        local counts, many = redis.call('hgetall', '{{rota}}:counts'), 0
        for at = 1, #counts, 2 do
            if string.find(counts[at], '%zsucceeded$') then many = many + counts[at + 1] end
        end
        return many < {MANY + 10}
    """
}
RUNNING["postgres"] = RUNNING["sqlite"] = f"select count(*) < {MANY + 10} from rota_history"
"""True while jobs wait or run beside those that stay held; to look for these among the others would take long."""


def under_limits(contender: Contender, app: str) -> Contender:
    """The same with an app whose tasks have limits."""
    worker = tuple(part.replace("peer_rota:app", f"peer_rota_limits:{app}") for part in contender.worker)
    return replace(contender, adapter="peer_rota_limits", worker=worker)


def far_from_full(session: Session, contender: Contender) -> None:
    with session.run(contender) as run:
        session.note(contender, "without a limit", drain(run, MANY))
    with session.run(under_limits(contender, "wide")) as run:
        session.note(contender, "under a limit never full", drain(run, MANY, fill="bulk_far_from_full"))


def beside_held(session: Session, contender: Contender) -> None:
    limited = replace(under_limits(contender, "wide"), unfinished=RUNNING[contender.store])
    with session.run(limited) as run:
        session.note(contender, "beside no held jobs", drain(run, MANY))
    with session.run(limited) as run:
        run.answers("held_by_full", session.size(HEAPS_HELD, MANY_HELD))
        if contender.store != "redis":
            run.place.run("vacuum")  # they have been held for a while
        session.note(contender, "beside many held jobs", drain(run, MANY))


def out_of_held(session: Session, contender: Contender) -> None:
    for figure, jobs in (("out of few held jobs", FEW_HELD), ("out of many held jobs", session.size(MANY_HELD, 5_000))):
        with session.run(under_limits(contender, "narrow")) as run:
            session.note(contender, figure, drain(run, jobs, fill="held_by_narrow"))


MEASURES = (
    Measure("limits", far_from_full, is_rota),
    Measure("limits", beside_held, is_rota, rounds=2),
    Measure("limits", out_of_held, is_rota, rounds=2),
)
