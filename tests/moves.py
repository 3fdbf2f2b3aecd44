"""Stores that have something of everything, for moves from one to another, and all that a store has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from rota import Abandon, Limit, Rota, Snooze, current_job
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import Ask, NewJob, State, WorkerRow
from rota.moving.comparing import Sum
from rota.moving.sides import Side
from rota.stores import open_store
from rota.stores.base import Store

TENANT: ContextVar[str] = ContextVar("tenant", default="none")
AN_HOUR = 3600 * SECOND


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    store.open()
    try:
        yield store
    finally:
        store.close()


def contents(url: str) -> tuple[object, ...]:
    """All that a store has: jobs with their attempts, rooms, tasks, pauses and sizes."""
    with opened(url) as store:
        side = Side(store)
        jobs = [whole for page in side.pages() for whole in page]
        rooms = [room for page in side.rooms() for room in page]
        rooms.sort(key=lambda room: (room.name, room.key))
        return jobs, rooms, store.declarations(), store.pauses(), store.overrides(), store.rooms()


def digest(url: str) -> str:
    with opened(url) as store:
        total = Sum()
        for page in Side(store).pages():
            for whole in page:
                total.add(whole)
        return total.digest


def shop(url: str) -> Rota:
    """An app whose tasks end in every way."""
    app = Rota(url, context=[TENANT])

    @app.task(name="shop.receipt", queue="mail", keep_result=True)
    def receipt(order: object) -> object:
        current_job().progress(1, 2, "half")
        return order

    @app.task(name="shop.charge", retry=3600, priority=3)
    def charge(order: int) -> None:
        raise ValueError(f"the bank refused {order} 🦀 \0")

    @app.task(name="shop.bill", queue="bills", max_attempts=1)
    def bill(order: int) -> None:
        raise Abandon("it was refunded")

    @app.task(name="shop.later")
    def later(order: int) -> None:
        raise Snooze(3600)

    @app.task(name="shop.export", concurrency=Limit(1, name="exports"))
    def export() -> None: ...

    @app.task(
        name="shop.call", concurrency=Limit(1, key=lambda partner: partner, name="partners"), rate=Limit("1/h", name="calls")
    )
    def call(partner: str) -> None: ...

    return app


def fill(url: str, many: int = 30) -> None:
    """Put jobs in each state into an empty store, and whatever else it may have. No worker's lease holds afterwards."""
    with shop(url) as app:
        tasks = app.tasks
        TENANT.set("Müller")
        app.declare()
        odd: list[Any] = ["🦀 日本語 \u202e", "NUL \0", {"a": [1.5, None, "'\"\\"]}, "x" * 300_000]
        for number in range(many):
            for name in ("receipt", "charge", "bill", "later"):
                tasks[f"shop.{name}"].enqueue(odd[number % len(odd)] if name == "receipt" else number)
        for partner in ("a", "b"):
            tasks["shop.call"].enqueue_many([(partner,)] * 3)
        app.drain()
        for number in range(many):
            tasks["shop.receipt"].using(key=f"k{number}", priority=number % 5).enqueue(number)
            tasks["shop.charge"].using(delay=timedelta(days=number + 1), key="ü", key_until="started").enqueue(number)
        tasks["shop.receipt"].using(queue="gone").enqueue(0).cancel()
        app.pause("mail", by="Ada")
        app.pause("bills", until=timedelta(days=1))
        app.set_limit("partners", 2)
        _lose(app)
        assert {count.state for count in app.store.counts()} == set(State)


def _lose(app: Rota) -> None:
    """Have a worker's lease run out while it runs a job, in a place of a limit."""
    store = app.store
    then = store.vitals().now - AN_HOUR
    worker = WorkerRow(new_id(), "lost one", "elsewhere", 7, ["lost"], ["shop.export"], 1, SECOND, "1")
    store.insert([NewJob(new_id(), "shop.export", "lost", "{}", max_attempts=1) for _ in range(2)], now=then)
    store.join(worker, now=then)
    assert app.limiting is not None
    assert len(store.admit(Ask(worker.id, ("lost",), 2, 2), app.limiting, now=then).claimed) == 1
