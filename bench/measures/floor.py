"""What the store alone allows: Rota's own store object claims and finishes in a bare loop, without worker or bodies."""

from __future__ import annotations

from bench.contenders import Contender
from bench.session import Measure, Session, is_rota, rate

BATCHES = (100, 500)


def act(session: Session, contender: Contender) -> None:
    jobs = session.size(20_000, 5_000)
    for batch in BATCHES:
        with session.run(contender) as run:
            run.answers("bulk", jobs)
            session.note(contender, f"floor {batch}", rate(run.answers("floor", batch)))


MEASURE = Measure("floor", act, is_rota)
