"""Hooks where bodies run: what they see, in which order, and that nothing they do concerns a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app import hooked, hooked_around
from app.hook_words import arounds, bodies, said, work
from app.words import careless
from rota import ConfigError, CurrentJob, Rota, current_job

# -- around and on_start ------------------------------------------------------------------------


def test_what_goes_around_nests_in_the_order_in_which_it_was_registered(here: Rota) -> None:
    told: list[str] = []

    @here.on_start
    def start(job: CurrentJob) -> None:
        told.append(f"start of {job.task}")

    for each in (*arounds("a", told), *arounds("b", told)):
        here.around(each)
    inside = ["a in", "a in", "b in", "b in"]
    for task in bodies(here, lambda: told.append("body")):
        told.clear()
        assert work(here, task) == "succeeded"
        assert told == [*inside, f"start of {task.name}", "body", *(each.replace("in", "out") for each in reversed(inside))]


def test_a_body_sees_the_context_variables_that_hooks_set_and_the_next_one_does_not(here: Rota) -> None:
    seen: list[str] = []

    def body() -> None:
        seen.append(said.get())
        said.set("a body's")

    for task in bodies(here, body):
        for each in arounds(task.name, []):
            task.around(each)

        @task.on_start
        async def awaited(job: CurrentJob) -> None:
            await asyncio.sleep(0)
            said.set(f"{said.get()} awaited")

        @task.on_start
        def start(job: CurrentJob) -> None:
            said.set(f"{said.get()} started")

        for _ in range(2):
            assert work(here, task) == "succeeded"
            assert seen.pop() == f"nothing {task.name} {task.name} awaited started"
    assert said.get() == "nothing"


def test_a_hook_is_told_of_its_job(app: Rota) -> None:
    told: list[object] = []

    @app.on_start
    def start(job: CurrentJob) -> None:
        told.extend([job.id, job.task, job.queue, job.key, job.attempt, job.max_attempts, job.arguments])
        told.append(current_job().id)
        job.progress(1, 2)

    @app.task(name="t", queue="q")
    def t(*numbers: int, word: str) -> None: ...

    job = t.using(key="k", max_attempts=3).enqueue(1, 2, word="x")
    app.run_one()
    assert told == [job.id, "t", "q", "k", 1, 3, {"*": [1, 2], "word": "x"}, job.id]
    assert job.progress is not None


def test_a_hook_of_a_task_is_not_called_for_others(memory: Rota) -> None:
    told: list[str] = []
    one, other = bodies(memory, lambda: None)
    one.on_start(lambda job: told.append(f"start {job.task}"))
    one.on_success(lambda job, result: told.append(f"success {job.task}"))
    work(memory, one)
    work(memory, other)
    assert told == ["start plain", "success plain"]


def test_hooks_are_not_called_for_a_body_that_cannot_begin(memory: Rota) -> None:
    told: list[str] = []
    memory.on_start(lambda job: told.append("start"))
    memory.task(name="t", max_attempts=1)(lambda number: None)
    memory.send("t", other=1)
    memory.drain()
    assert told == []


def test_around_hears_what_the_body_raises(here: Rota) -> None:
    heard: list[BaseException] = []

    def plain(job: CurrentJob) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            heard.append(error)
            raise

    async def coroutine(job: CurrentJob) -> AsyncIterator[None]:
        try:
            yield
        except BaseException as error:
            heard.append(error)
            raise

    here.around(plain)
    here.around(coroutine)
    for error in (ValueError("bad"), SystemExit("left"), StopIteration("on"), StopAsyncIteration("on"), GeneratorExit("x")):

        def body(error: BaseException = error) -> None:
            raise error

        for number, task in enumerate(bodies(here, body, max_attempts=1)):
            heard.clear()
            assert work(here, task).startswith("failed: ")
            if number == 0 or not isinstance(error, StopIteration):  # of which Python makes another error in a coroutine
                assert heard == [error, error]
            del here.tasks[task.name]


def test_a_hook_is_no_part_of_a_failures_trace(memory: Rota) -> None:
    for each in arounds("a", []):
        memory.around(each)

    def fail() -> None:
        raise ValueError("bad")

    for task in bodies(memory, fail, max_attempts=1):
        job = task.enqueue()
        memory.drain()
        [attempt] = job.attempts()
        assert attempt.failure is not None
        assert [
            line for line in attempt.failure.trace.splitlines() if line.lstrip().startswith("File") and "rota/" in line
        ] == []
        assert attempt.failure.trace.endswith("ValueError: bad")


def test_around_sees_a_body_fail_that_returns_what_nobody_awaited(here: Rota) -> None:
    heard: list[str] = []

    @here.around
    def listen(job: CurrentJob) -> Iterator[None]:
        try:
            yield
        except TypeError as error:
            heard.append(str(error))
            raise

    async def nothing() -> None: ...

    task = here.task(name="t", max_attempts=1)(careless(nothing))
    assert work(here, task).startswith("failed: t is run as a plain function")
    assert len(heard) == 1


def test_coroutine_hooks_of_plain_bodies_run_inside_a_running_loop_too(memory: Rota) -> None:
    told: list[str] = []
    for each in arounds("a", told):
        memory.around(each)

    @memory.on_success
    async def success(job: CurrentJob, result: object) -> None:
        await asyncio.sleep(0)
        told.append("success")

    plain, coroutine = bodies(memory, lambda: told.append(said.get()))

    async def main() -> None:
        assert (work(memory, plain), work(memory, coroutine)) == ("succeeded", "succeeded")

    asyncio.run(main())
    assert told == ["a in", "a in", "nothing a a", "a out", "a out", "success"] * 2


# -- isolated bodies ----------------------------------------------------------------------------


def test_an_isolated_body_is_wrapped_in_its_own_process(caplog: pytest.LogCaptureFixture) -> None:
    with hooked.app as app:
        jobs = [hooked.plain.enqueue(), hooked.coroutine.enqueue()]
        app.drain()
        assert [job.result() for job in jobs] == [f"attempt 1 of app.hooked.{name}" for name in ("plain", "coroutine")]
        said = caplog.text
        assert said.count("the around hook app.hooked_around.inner raised an error") == 2
        assert said.count("the on_start hook app.hooked_around.broken raised an error") == 2


def test_a_hook_that_an_isolated_bodys_process_does_not_find_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def nested(job: CurrentJob) -> None: ...

    before = hooked.app.hooks._all.copy()
    hooked.app.on_start(nested)
    try:
        with hooked.app as app:
            hooked.plain.enqueue()
            assert str(app.run_one()) == "ran app.hooked.plain"
    finally:
        hooked.app.hooks._all[:] = before
    assert "is not called for isolated task app.hooked.plain" in caplog.text
    assert hooked_around.outer in [hook.function for hook in before]


# -- registering --------------------------------------------------------------------------------


def test_a_hook_stays_the_function_that_it_is(memory: Rota) -> None:
    def start(job: CurrentJob) -> str:
        return job.id

    assert memory.on_start(start) is start
    assert memory.task(name="t")(lambda: None).on_start(start) is start


def takes_nothing() -> None: ...
def yields(job: CurrentJob, more: object = None) -> Iterator[None]:
    yield


async def ayields(job: CurrentJob, more: object = None) -> AsyncIterator[None]:
    yield


@contextmanager
def managed(job: CurrentJob) -> Iterator[None]:
    yield


def plain(job: CurrentJob) -> None: ...
def awaited(job: CurrentJob) -> Awaitable[None] | None: ...


@pytest.mark.parametrize(
    ("when", "function", "why"),
    [
        ("on_start", 7, "is no function"),
        ("on_start", takes_nothing, r"cannot be called as on_start does, with \(job\)"),
        ("on_success", plain, r"with \(job, result\)"),
        ("on_failure", plain, r"with \(job, failure\)"),
        ("on_failure", yields, "is a generator function"),
        ("on_success", ayields, "is a generator function"),
        ("on_start", managed, "is a generator function"),
        ("around", plain, "write one `yield` where the body runs"),
        ("around", managed, "leave @contextmanager out"),
        ("around", "name", "is no function"),
    ],
)
def test_what_cannot_be_called_as_such_a_hook_is_refused(memory: Rota, when: str, function: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        getattr(memory, when)(function)
