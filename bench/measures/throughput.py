"""How many jobs of an empty body are drained a second, from the first start to the last recorded finish."""

from __future__ import annotations

from bench.contenders import Contender
from bench.session import Measure, Session, is_rota
from bench.workers import Run

FEW, MANY, HEAPS = 5_000, 20_000, 200_000
FEWER = 3_000
"""What slow peers on Redis get instead of a few: to add jobs takes them about as long as to run them."""


def drain(run: Run, jobs: int, workers: int = 1, fill: str = "bulk") -> float:
    """Queue the jobs, start the workers and return the jobs a second.

    Two workers are let go together once each has its first job in hand: one that is still importing measures nothing.
    """
    run.answers(fill, jobs)
    run.place.run(*run.contender.once_queued)
    # The adapter's warm-up jobs are in the queue too.
    jobs += 10
    gate = workers > 1
    with run.workers(workers, gate) as processes:
        if gate:
            run.open_gate(processes)
        start = run.first_start(processes)
        return jobs / (run.last_finish(jobs, processes) - start) * 1e9


def figure(jobs: int, workers: int) -> str:
    return f"throughput {jobs} x{workers}"


def _measure(jobs: int, workers: int, only_fast: bool = False) -> Measure:
    def act(session: Session, contender: Contender) -> None:
        if session.quick and contender.slow and workers > 1:
            return
        fewer = contender.slow and contender.store == "redis"
        with session.run(contender) as run:
            session.note(contender, figure(jobs, workers), drain(run, FEWER if fewer else jobs, workers))

    return Measure("throughput", act, lambda contender: not (only_fast and contender.slow))


def _heaps(session: Session, contender: Contender) -> None:
    if not session.quick:
        with session.run(contender) as run:
            session.note(contender, figure(HEAPS, 1), drain(run, HEAPS))


def _coroutines(session: Session, contender: Contender) -> None:
    with session.run(contender) as run:
        session.note(contender, "throughput 20000 x1 async", drain(run, MANY, fill="bulk_coroutines"))


MEASURES = (
    _measure(FEW, 1),
    _measure(FEW, 2),
    _measure(MANY, 1, only_fast=True),
    _measure(MANY, 2, only_fast=True),
    Measure("throughput", _coroutines, is_rota),
    Measure("throughput", _heaps, lambda contender: is_rota(contender) and contender.store != "redis", rounds=2),
    Measure("throughput", _heaps, lambda contender: is_rota(contender) and contender.store == "redis", rounds=1),
)
