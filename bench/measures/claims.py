"""Whether a claim costs the same with a million finished, scheduled or queued jobs in the store as with none."""

from __future__ import annotations

from bench.contenders import Contender
from bench.filling import multiply, multiply_in_redis
from bench.session import Measure, Session, is_rota
from bench.valkey import RedisPlace
from bench.workers import Run

CONDITIONS = {
    "finished": ("rota_history", {"finished_at": "finished_at - 1000000 + n"}),
    "scheduled": ("rota_jobs", {"due": "due + n"}),
    "queued": ("rota_jobs", {"due": "due - 1000000 + n"}),
}
"""The table that the jobs are in, and what tells them apart, where the store has tables."""


def fill(run: Run, condition: str, jobs: int) -> None:
    run.answers(f"one_{condition}")
    if isinstance(run.place, RedisPlace):
        multiply_in_redis(run.place, jobs)
    else:
        table, changes = CONDITIONS[condition]
        multiply(run.place, run.contender.store, table, jobs, changes)


def act(session: Session, contender: Contender) -> None:
    """Two places at once, the full one and one with nothing beside the jobs claimed: the processor's moods hit both."""
    jobs = session.size(1_000_000, 100_000)
    for condition in CONDITIONS:
        with session.run(contender) as empty, session.run(contender) as full:
            fill(full, condition, jobs)
            for run in (empty, full):
                run.answers("bulk", 10_000)
                if isinstance(run.place, RedisPlace):
                    run.place.rest()
                else:
                    # What any database does to its tables sooner or later, and what has changed plans for the worse.
                    run.place.run("analyze")
            answers = full.answers("claims", session.size(60, 30), BENCH_BESIDE=empty.place.url)
            session.note(contender, f"claim beside {condition}", *(answer["beside"] / 1e6 for answer in answers))
            session.note(contender, f"claim with {condition}", *(answer["here"] / 1e6 for answer in answers))


MEASURE = Measure("claims", act, is_rota, rounds=1)
