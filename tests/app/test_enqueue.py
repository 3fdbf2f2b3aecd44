"""Enqueueing one job, from plain code and from coroutines, declared here or known by name alone."""

from __future__ import annotations

import asyncio

import pytest

from rota import ArgumentsError, Job, NamedTask, Rota, State


def test_a_job_is_in_the_store_when_enqueue_returns(app: Rota) -> None:
    @app.task(queue="mail", priority=4, max_attempts=3)
    def greet(name: str) -> None: ...

    job = greet.enqueue("Ada")
    row = app.get(job.id).row
    assert (row.task, row.queue, row.priority, row.max_attempts) == (greet.name, "mail", 4, 3)
    assert (row.args, row.state, row.attempt, row.key, job.existed) == ('{"name":"Ada"}', State.QUEUED, 0, None, False)


def test_a_coroutine_enqueues_the_same_job(app: Rota) -> None:
    @app.task
    async def greet(name: str, times: int = 1) -> None: ...

    async def main() -> tuple[Job[None], Job[None], Job[None]]:
        return (
            await greet.aenqueue("Ada", times=2),
            await app.named(greet.name).aenqueue("Ada", times=2),
            await app.asend(greet.name, "Ada", times=2),
        )

    declared, named, sent = asyncio.run(main())
    assert declared.row.args == '{"name":"Ada","times":2}'
    assert named.row.args == sent.row.args == '{"*":["Ada"],"times":2}'
    assert {job.status for job in (declared, named, sent)} == {State.QUEUED}


def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored(app: Rota) -> None:
    @app.task
    def greet(name: str) -> None: ...

    async def by_coroutine() -> None:
        await greet.aenqueue(7)  # type: ignore[arg-type]

    with pytest.raises(ArgumentsError, match="name: expected `str`, got `int`"):
        greet.enqueue(7)  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match="name"):
        asyncio.run(by_coroutine())
    with pytest.raises(ArgumentsError, match="cannot be called like this"):
        greet.enqueue()  # type: ignore[call-arg]
    assert app.jobs() == []


def test_an_argument_may_be_called_name(app: Rota) -> None:
    said = []

    @app.task(name="greet")
    def greet(name: str, self: int) -> None:
        said.append((name, self))

    greet.enqueue(name="Ada", self=1)
    app.send("greet", name="Bo", self=2)
    asyncio.run(app.asend("greet", name="Cy", self=3))
    app.drain()
    assert said == [("Ada", 1), ("Bo", 2), ("Cy", 3)]


def test_an_unknown_task_sent_by_name_has_the_usual_defaults(app: Rota) -> None:
    row = app.send("shop.ship", 1).row
    assert (row.queue, row.priority, row.max_attempts) == ("default", 0, 5)


def test_a_task_sent_by_name_has_the_defaults_that_another_app_declared(store_url: str) -> None:
    with Rota(store_url) as here, Rota(store_url) as there:
        if store_url == "memory://":  # each app on memory has a store of its own
            there.holding._store = here.store.twin()  # type: ignore[attr-defined]

        @there.task(name="ship", queue="goods", priority=7, max_attempts=2)
        def ship(order: int) -> None: ...

        there.declare()
        row = here.send("ship", 1).row
        assert (row.queue, row.priority, row.max_attempts) == ("goods", 7, 2)
        changed = here.named("ship").using(queue="fast").enqueue(1).row
        assert (changed.queue, changed.priority, changed.max_attempts) == ("fast", 7, 2)


def test_a_declaration_made_later_is_seen_by_the_next_job(app: Rota) -> None:
    assert app.send("ship").queue == "default"
    asyncio.run(_declare_elsewhere(app))
    assert app.send("ship").queue == "goods"


async def _declare_elsewhere(app: Rota) -> None:
    other = Rota("memory://")
    other.holding._store = app.store.twin()
    other.task(name="ship", queue="goods")(print)
    await other.adeclare()
    await other.aclose()


def test_a_task_declared_here_needs_no_word_from_the_store(app: Rota) -> None:
    @app.task(name="ship", queue="goods")
    def ship() -> None: ...

    assert app.named("ship").enqueue().queue == "goods"


def test_a_named_task_says_what_it_is(app: Rota) -> None:
    task = app.named("shop.ship")
    assert isinstance(task, NamedTask)
    assert (task.name, repr(task)) == ("shop.ship", "<NamedTask shop.ship>")


def test_a_job_is_itself_however_it_was_found(app: Rota) -> None:
    job, other = app.send("t"), app.send("t")
    found = app.get(job.id)
    assert found == job
    assert {found, job} == {job}
    assert job != other
    assert job != job.id
    assert repr(job) == f"<Job {job.id}>"
    assert repr(found) == f"<Job {job.id} t queued>"
