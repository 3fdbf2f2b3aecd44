"""How long a single job waits for an idle worker: from the call of enqueue, and from its return, to the body's first line."""

from __future__ import annotations

from bench.contenders import Contender
from bench.session import Measure, Session

SAMPLES = 70
"""In each round; all rounds' samples are taken together."""


def act(session: Session, contender: Contender) -> None:
    with session.run(contender) as run, run.workers() as processes:
        # A first job shows that the worker is up; it is idle from then on.
        run.answers("wake")
        run.first_start(processes)
        waits = run.answers("ping", session.size(SAMPLES, 25))
    for key, figure in (("from_call", "latency call"), ("from_return", "latency return"), ("call", "latency enqueue")):
        session.note(contender, figure, *(wait[key] / 1e6 for wait in waits))


MEASURE = Measure("latency", act)
