"""Context variables that are carried from where a job is enqueued to its body."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import date
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest

from app import carried_bodies
from rota import ArgumentsError, ConfigError, CurrentJob, PayloadTooLarge, Rota, current_job
from working import working

tenant: ContextVar[Any] = ContextVar("tenant")
request: ContextVar[Any] = ContextVar("request", default="none")


class Plan(StrEnum):
    FREE = "free"


class Level(IntEnum):
    LOW = 1


@contextmanager
def setting(**values: Any) -> Iterator[None]:
    tokens = [(variable, variable.set(values[variable.name])) for variable in (tenant, request) if variable.name in values]
    yield
    for variable, token in tokens:
        variable.reset(token)


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    with Rota(store_url, context=[tenant, request]) as app:
        yield app


def seen_by(app: Rota) -> list[Any]:
    """What plain and coroutine bodies saw, in order: two tasks, `plain` and `coroutine`, write it down."""
    seen: list[Any] = []

    @app.task(name="plain", retry=0)
    def plain(fails: bool = False) -> None:
        seen.append((tenant.get(None), request.get()))
        tenant.set("the body's own")
        if fails and current_job().attempt == 1:
            raise ValueError("once more")

    @app.task(name="coroutine", concurrency=1)
    async def coroutine() -> None:
        await asyncio.sleep(0)
        seen.append((tenant.get(None), request.get()))
        tenant.set("the body's own")

    return seen


@pytest.mark.parametrize("task", ["plain", "coroutine"])
def test_a_body_sees_what_was_set_at_its_enqueue(app: Rota, task: str) -> None:
    seen = seen_by(app)
    with setting(tenant="acme", request={"id": 7, "tags": ["a", None, 1.5]}):
        app.tasks[task].enqueue()
    app.tasks[task].enqueue()
    with setting(tenant="globex"):
        app.named(task).enqueue()
    app.drain()
    assert seen == [("acme", {"id": 7, "tags": ["a", None, 1.5]}), (None, "none"), ("globex", "none")]


@pytest.mark.parametrize("task", ["plain", "coroutine"])
def test_a_body_in_a_worker_sees_it_and_leaves_nothing_to_the_next(app: Rota, task: str) -> None:
    seen = seen_by(app)
    with working(app, concurrency=1):
        for name in ("acme", None, "globex", None):
            with setting(**({} if name is None else {"tenant": name})):
                app.tasks[task].enqueue().wait(10)
    assert [each[0] for each in seen] == ["acme", None, "globex", None]


def test_each_of_many_carries_it(app: Rota) -> None:
    seen = seen_by(app)
    with setting(tenant="acme"):
        app.tasks["plain"].enqueue_many([()] * 3)
        asyncio.run(app.tasks["plain"].aenqueue_many([()] * 2))
        asyncio.run(app.named("plain").aenqueue())
    app.drain()
    assert seen == [("acme", "none")] * 6


def test_coroutines_that_enqueue_at_once_carry_their_own(app: Rota) -> None:
    seen = seen_by(app)

    async def caller(name: str) -> None:
        tenant.set(name)
        await app.tasks["plain"].aenqueue()

    async def all_at_once() -> None:
        await asyncio.gather(*(caller(f"tenant {number}") for number in range(20)))

    asyncio.run(all_at_once())
    app.drain()
    assert sorted(each[0] for each in seen) == sorted(f"tenant {number}" for number in range(20))


def test_every_attempt_sees_it_also_after_a_retry_by_hand(app: Rota) -> None:
    seen = seen_by(app)
    with setting(tenant="acme"):
        job = app.tasks["plain"].enqueue(True)
    app.drain()
    app.retry(job.id)
    app.drain()
    assert seen == [("acme", "none")] * 4


def test_hooks_around_a_body_see_it(app: Rota) -> None:
    seen_by(app)
    told: list[Any] = []

    @app.on_start
    def begin(job: CurrentJob) -> None:
        told.append(tenant.get(None))

    @app.around
    def wrap(job: CurrentJob) -> Iterator[None]:
        told.append(tenant.get(None))
        yield

    with setting(tenant="acme"):
        app.tasks["plain"].enqueue()
        app.tasks["coroutine"].enqueue()
    app.drain()
    assert told == ["acme"] * 4


def test_a_job_that_is_enqueued_by_a_body_carries_it_on(app: Rota) -> None:
    seen = seen_by(app)

    @app.task
    def first() -> None:
        app.tasks["plain"].enqueue()

    with setting(tenant="acme"):
        first.enqueue()
    app.drain()
    assert seen == [("acme", "none")]


def test_a_body_in_a_process_of_its_own_sees_it(tmp_path: Path) -> None:
    carried_bodies.app.url = f"sqlite:///{tmp_path / 'jobs.db'}"

    def enqueue() -> str:
        carried_bodies.tenant.set("acme")
        return carried_bodies.tell.enqueue().id

    with carried_bodies.app as app:
        id = copy_context().run(enqueue)
        app.drain()
        assert app.get(id).result() == "acme"


def test_in_eager_mode_it_is_the_same(tmp_path: Path) -> None:
    with Rota(eager=True, context=[tenant]) as app:
        seen = seen_by(app)
        with setting(tenant="acme"):
            app.tasks["plain"].enqueue()
            app.tasks["coroutine"].enqueue()
            assert tenant.get() == "acme"
    assert seen == [("acme", "none")] * 2


def test_it_goes_along_within_a_transaction_of_the_callers_own(tmp_path: Path) -> None:
    with Rota(f"sqlite:///{tmp_path / 'jobs.db'}", context=[tenant]) as app:
        seen = seen_by(app)
        app.store.open()
        own = sqlite3.connect(tmp_path / "jobs.db")
        with setting(tenant="acme"), own:
            app.tasks["plain"].using(connection=own).enqueue()
        own.close()
        app.drain()
    assert seen == [("acme", "none")]


def test_what_is_not_declared_where_the_body_runs_is_passed_over(store_url: str) -> None:
    with Rota(store_url, context=[tenant, request]) as app, setting(tenant="acme", request="r"):
        app.named("plain").enqueue()
        app.named("plain").enqueue()
        for declared in ([request], []):
            with Rota(store_url if store_url != "memory://" else "memory://", context=declared) as other:
                if store_url == "memory://":
                    other.holding._store = app.store.twin()
                seen = seen_by(other)
                with setting(tenant="mine", request="mine"):
                    assert str(other.run_one()) == "ran plain"
                assert seen == [("mine", "r" if declared else "mine")]


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "the context variable tenant cannot be stored: it is an object, which has no form in JSON"),
        (
            date(2030, 1, 1),
            "the context variable tenant cannot be carried along: datetime.date(2030, 1, 1) would not come back",
        ),
        ((1, 2), "the context variable tenant cannot be carried along: (1, 2) would not come back"),
        ({1: 2}, "the context variable tenant cannot be carried along: {1: 2} would not come back"),
        (float("nan"), "the context variable tenant cannot be carried along: nan would not come back"),
        (
            "\ud800",
            "the context variable tenant cannot be stored: '\\ud800' holds a lone surrogate, which no UTF-8 text can: decode",
        ),
        (Plan.FREE, "the context variable tenant cannot be carried along: <Plan.FREE: 'free'> would not come back"),
        ([Level.LOW], "the context variable tenant cannot be carried along: [<Level.LOW: 1>] would not come back"),
        (OrderedDict(a=1), "the context variable tenant cannot be carried along: OrderedDict("),
    ],
    ids=[
        "an object",
        "a date",
        "a tuple",
        "a number as a key",
        "not a number",
        "a lone surrogate",
        "an enum of text",
        "an enum of numbers in a list",
        "a dict of another class",
    ],
)
def test_what_would_not_come_back_is_refused_at_the_enqueue(app: Rota, value: object, message: str) -> None:
    seen_by(app)
    with setting(tenant=value, request="fine"), pytest.raises(ArgumentsError) as refused:
        app.tasks["plain"].enqueue()
    assert str(refused.value).startswith(message)
    assert app.jobs() == []


def test_odd_values_come_back(app: Rota) -> None:
    seen = seen_by(app)
    odd = ["\0", "日本語 🎉", "\\ \t \n \r \x1b", [], {}, None, 0, 2**62, "x" * 100_000]
    for value in odd:
        with setting(tenant=value):
            app.tasks["plain"].enqueue()
            app.tasks["plain"].enqueue_many([()] * 2)
    app.drain()
    assert [each[0] for each in seen] == [value for value in odd for _ in range(3)]


def test_it_counts_towards_the_limit_of_a_payload(store_url: str) -> None:
    with Rota(store_url, context=[tenant], max_payload=1_000) as app:
        seen_by(app)
        with setting(tenant="x" * 980):
            app.tasks["plain"].enqueue()
            with pytest.raises(PayloadTooLarge, match="what is carried along, besides 14 bytes of arguments, weighs 993"):
                app.tasks["plain"].enqueue(True)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (tenant, "pass a list of context variables"),
        (["tenant"], "which is no ContextVar"),
        ([tenant, ContextVar("tenant")], "two context variables are named tenant"),
        ([ContextVar("\ud800")], r"the context variable '\\ud800' has a lone surrogate in its name: give it another"),
    ],
)
def test_a_wrong_declaration_is_refused(context: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rota("memory://", context=context)
