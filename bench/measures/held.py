"""What a transaction held open elsewhere since before the run costs: vacuum cannot clear what claims leave behind."""

from __future__ import annotations

import psycopg

from bench.contenders import Contender
from bench.measures.throughput import MANY, drain
from bench.session import Measure, Session, is_rota


def act(session: Session, contender: Contender) -> None:
    if session.quick and not is_rota(contender):
        return
    with session.run(contender) as run:
        session.note(contender, "held without", drain(run, MANY))
    with session.run(contender) as run, psycopg.connect(run.place.url) as elsewhere:
        elsewhere.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        elsewhere.execute("select count(*) from pg_class")
        session.note(contender, "held with", drain(run, MANY))


MEASURE = Measure("held", act, lambda contender: contender.store == "postgres" and not contender.slow)
