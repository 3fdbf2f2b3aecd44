"""Rota: plain functions as bodies, and its own store driven bare for the floor and the cost of claims."""

from __future__ import annotations

import asyncio
import os
import re
import time

import script
import tally

from rota import Rota
from rota.model import Ask, Claimed, Ended, Succeeded, WorkerRow
from rota.stores import Store, open_store, queries

app = Rota(script.url())
WORKER = "bench"
WARM_UP = 5
"""Rounds that are not counted: plans and caches settle."""


@app.task
def noop() -> None:
    tally.body()


@app.task
async def anoop() -> None:
    tally.body()


@app.task
def stamped(sent: int) -> None:
    tally.stamped(sent)


@app.task
def nap() -> None:
    tally.nap(0.02)


def setup() -> None:
    app.store.open()


# -- jobs come in -----------------------------------------------------------------------------------


def enqueue(n: int) -> None:
    script.one_by_one(noop.enqueue, n)


def enqueue_silently(n: int) -> None:
    """The same enqueue, by an insert that has lost its notification."""
    texts = dict(queries.load("postgres"))
    name = "insert_one"
    texts[name], found = re.subn(r"\(select pg_notify\(.*\)$", "null", texts[name], flags=re.MULTILINE)
    if found != 1:
        raise SystemExit(f"{name} does not notify as this expects: see rota/stores/postgres.sql")
    queries.load = lambda dialect: texts
    script.one_by_one(noop.enqueue, n)


def enqueue_async(n: int, callers: int) -> None:
    asyncio.run(script.many_callers(noop.aenqueue, n, callers))


def bulk(n: int) -> None:
    script.all_at_once(lambda jobs: noop.enqueue_many(() for _ in range(jobs)), n)


def bulk_coroutines(n: int) -> None:
    script.all_at_once(lambda jobs: anoop.enqueue_many(() for _ in range(jobs)), n)


def naps(n: int) -> None:
    nap.enqueue_many(() for _ in range(n))


def ping(n: int) -> None:
    script.ping(stamped.enqueue, n)


def wake() -> None:
    stamped.enqueue(1)


# -- one job of each kind, which the bench multiplies -------------------------------------------------


def one_queued() -> None:
    noop.enqueue()


def one_scheduled() -> None:
    noop.using(delay=86_400).enqueue()


def one_finished() -> None:
    nap.enqueue()
    app.drain()


# -- the store alone --------------------------------------------------------------------------------


def join(store: Store) -> None:
    """Join as a worker whose lease outlasts the run."""
    store.join(WorkerRow(WORKER, WORKER, "", 0, None, [], concurrency=1, lease=3_600_000_000, version=""))


def ended(claimed: list[Claimed]) -> list[Ended]:
    return [Ended(job.id, job.claim, Succeeded()) for job in claimed]


def floor(batch: int) -> None:
    """Claim and finish all there is, the finish of one batch together with the claim of the next."""
    store = app.store
    join(store)
    ask = Ask(WORKER, ("default",), batch)
    jobs = 0
    start = time.monotonic_ns()
    claimed = store.claim(ask)
    while claimed:
        jobs += len(claimed)
        claimed = store.finish(WORKER, ended(claimed), ask).claimed
    script.answer(start=start, end=time.monotonic_ns(), jobs=jobs)


def claims(n: int) -> None:
    """Time rounds of finishing a hundred jobs and claiming the next, by turns here and in the store `BENCH_BESIDE`."""
    stores = {"here": app.store, "beside": open_store(os.environ["BENCH_BESIDE"])}
    for store in stores.values():
        store.open()
        join(store)
    ask = Ask(WORKER, ("default",), 100)
    held = {name: store.claim(ask) for name, store in stores.items()}
    for number in range(n + WARM_UP):
        took = {}
        for name, store in stores.items():
            ends = ended(held[name])
            start = time.monotonic_ns()
            held[name] = store.finish(WORKER, ends, ask).claimed
            took[name] = time.monotonic_ns() - start
            assert len(held[name]) == 100
        if number >= WARM_UP:
            script.answer(**took)
