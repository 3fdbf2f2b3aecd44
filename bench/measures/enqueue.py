"""How fast jobs come in: one by one, from 32 coroutines at once, and in bulk. No worker runs meanwhile."""

from __future__ import annotations

from bench.contenders import Contender
from bench.session import Measure, Session, is_rota, rate

CALLERS = 32


def one_by_one(session: Session, contender: Contender) -> None:
    with session.run(contender) as run:
        session.note(contender, "enqueue", rate(run.answers("enqueue", session.size(2_000, 500))))


def many_callers(session: Session, contender: Contender) -> None:
    # Rota's callers share commits; with so few jobs as the others get it would be measured for a tenth of a second.
    jobs = session.size(16_000, 6_400) if is_rota(contender) else session.size(1_600, 640)
    with session.run(contender) as run:
        session.note(contender, "enqueue async", rate(run.answers("enqueue_async", jobs, CALLERS)))


def bulk(session: Session, contender: Contender) -> None:
    jobs = session.size(20_000, 5_000) if contender.slow else session.size(100_000, 20_000)
    with session.run(contender) as run:
        session.note(contender, "bulk", rate(run.answers("bulk", jobs)))


MEASURES = (
    Measure("enqueue", one_by_one),
    Measure("enqueue", many_callers, lambda contender: contender.asynchronous),
    Measure("bulk", bulk, lambda contender: contender.bulk),
)
