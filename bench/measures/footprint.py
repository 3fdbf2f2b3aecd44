"""How many bytes of Redis's memory a small job takes, with all that finds it."""

from __future__ import annotations

from bench.contenders import Contender
from bench.measures.throughput import drain
from bench.session import Measure, Session, is_rota
from bench.valkey import RedisPlace


def act(session: Session, contender: Contender) -> None:
    # Others get fewer jobs: they have no bulk call to add them with.
    jobs = session.size(100_000, 20_000) if is_rota(contender) else session.size(10_000, 2_000)
    with session.run(contender) as run:
        assert isinstance(run.place, RedisPlace)
        before = run.place.used()
        run.answers("bulk", jobs)
        session.note(contender, "bytes a job", (run.place.used() - before) / jobs)


def finished(session: Session, contender: Contender) -> None:
    """The same of jobs that have succeeded, which Rota remembers."""
    jobs = session.size(100_000, 20_000)
    with session.run(contender) as run:
        assert isinstance(run.place, RedisPlace)
        before = run.place.used()
        drain(run, jobs)
        session.note(contender, "bytes a finished job", (run.place.used() - before) / jobs)


MEASURES = (
    Measure("footprint", act, lambda contender: contender.store == "redis", rounds=1),
    Measure("footprint", finished, lambda contender: contender.store == "redis" and is_rota(contender), rounds=1),
)
