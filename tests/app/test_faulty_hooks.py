"""Hooks that go wrong: what they do is told, and concerns no job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from app.hook_words import arounds, bodies, work
from rota import Abandon, CurrentJob, Rota, Snooze, State


class Odd(BaseException):
    pass


ERRORS = [ValueError("bad"), SystemExit(3), GeneratorExit(), Odd("odd"), asyncio.CancelledError(), Abandon("no"), Snooze(5)]


def raising(error: BaseException, after: bool) -> list[Any]:
    def plain(job: CurrentJob) -> Iterator[None]:
        if not after:
            raise error
        yield
        raise error

    async def coroutine(job: CurrentJob) -> AsyncIterator[None]:
        if not after:
            raise error
        yield
        raise error

    return [plain, coroutine]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_what_an_around_raises_is_told_and_the_body_runs_and_ends_as_it_does(
    here: Rota, error: BaseException, after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    for each in (arounds("a", told)[0], *raising(error, after), arounds("b", told)[1]):
        here.around(each)
    for task in bodies(here, lambda: told.append("body")):
        told.clear()
        caplog.clear()
        assert work(here, task) == "succeeded"
        assert told == ["a in", "b in", "body", "b out", "a out"]
        assert caplog.text.count("the around hook app.test_faulty_hooks.raising.<locals>.") == 2


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_other_hooks_raise_is_told_and_concerns_no_job(
    here: Rota, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(*_: object) -> None:
        raise error

    async def awaited(*_: object) -> None:
        raise error

    told: list[str] = []
    for each in (wrong, awaited):
        here.on_start(each)
        here.on_success(each)
        here.on_failure(each)
    here.on_success(lambda job, result: told.append("success"))
    here.on_failure(lambda job, failure: told.append("failure"))
    good = here.task(name="good")(lambda: None)
    bad = here.task(name="bad", max_attempts=1)(lambda: 1 / 0)
    assert work(here, good) == "succeeded"
    assert work(here, bad) == "failed: division by zero"
    assert told == ["success", "failure"]
    assert [caplog.text.count(f"the {when} hook") for when in ("on_start", "on_success", "on_failure")] == [4, 2, 2]


def odd_steps() -> dict[str, Sequence[Any]]:
    def swallows(job: CurrentJob) -> Iterator[None]:
        with suppress(ValueError):
            yield

    async def aswallows(job: CurrentJob) -> AsyncIterator[None]:
        with suppress(ValueError):
            yield

    def replaces(job: CurrentJob) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise KeyError("other") from error

    async def areplaces(job: CurrentJob) -> AsyncIterator[None]:
        try:
            yield
        except ValueError as error:
            raise KeyError("other") from error

    def twice(job: CurrentJob) -> Iterator[None]:
        try:
            yield
        finally:
            yield

    async def atwice(job: CurrentJob) -> AsyncIterator[None]:
        try:
            yield
        finally:
            yield

    def never(job: CurrentJob) -> Iterator[None]:
        if job.attempt < 0:
            yield

    async def anever(job: CurrentJob) -> AsyncIterator[None]:
        if job.attempt < 0:
            yield

    return {
        "swallowed the body's ValueError": (swallows, aswallows),
        "raised an error": (replaces, areplaces),
        "yielded a second time": (twice, atwice),
        "came to its end without a yield": (never, anever),
    }


@pytest.mark.parametrize(("what", "hooks"), odd_steps().items())
def test_an_around_that_keeps_to_no_rule_is_told_and_the_bodys_error_counts(
    here: Rota, what: str, hooks: Sequence[Any], caplog: pytest.LogCaptureFixture
) -> None:
    for each in hooks:
        here.around(each)

    def fail() -> None:
        raise ValueError("bad")

    for task in bodies(here, fail, max_attempts=1):
        caplog.clear()
        assert work(here, task) == "failed: bad"
        assert caplog.text.count(what) == 2


def test_ctrl_c_in_a_hook_is_meant_for_the_caller(memory: Rota) -> None:
    @memory.on_start
    def start(job: CurrentJob) -> None:
        raise KeyboardInterrupt

    job = memory.task(name="t")(lambda: None).enqueue()
    with pytest.raises(KeyboardInterrupt):
        memory.run_one()
    assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)


def test_an_around_that_hangs_takes_the_bodys_time(memory: Rota) -> None:
    told: list[str] = []

    @memory.around
    async def hangs(job: CurrentJob) -> AsyncIterator[None]:
        try:
            await asyncio.sleep(60)
            yield
        finally:
            told.append("left")

    @memory.task(timeout=0.1, max_attempts=1)
    async def t() -> None:
        told.append("body")

    assert work(memory, t) == "failed: timed out after 0.1 s"
    assert told == ["left"]


def test_an_around_that_hangs_at_its_end_is_interrupted_and_the_work_is_done(
    memory: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    @memory.around
    async def hangs(job: CurrentJob) -> AsyncIterator[None]:
        yield
        await asyncio.sleep(60)

    @memory.task(timeout=0.1, max_attempts=1)
    async def t() -> None: ...

    assert work(memory, t) == "succeeded"
    assert "was interrupted at its end" in caplog.text
