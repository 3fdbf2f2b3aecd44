"""Errors, payloads and results that are hard to store: the one job says so, and its neighbours run."""

from __future__ import annotations

import logging

import pytest

from rota import Kind, ResultNotKept, Rota, State
from rota.ids import new_id
from rota.model import NewJob


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Picky(Exception):
    def __init__(self, one: str, two: object) -> None:
        super().__init__(one)
        self.add_note("a note with \0 in it")


ERRORS: list[BaseException] = [
    ValueError("a\0b"),
    ValueError("\ud800"),
    RuntimeError("x" * 5_000_000),
    Mute(),
    Picky("\x1b[31m", object()),
    ValueError("ÄÖÜ 🎉 \u202e"),
    ValueError("%s %(name)s {x} :now ? $1"),
    type("N\x1bame", (Exception,), {})("odd name"),
]


def test_whatever_an_error_says_its_job_fails_and_the_others_run(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="hard", max_attempts=1)
    def hard(number: int) -> None:
        raise ERRORS[number]

    app.task(name="easy")(lambda: None)
    jobs = []
    for number in range(len(ERRORS)):
        jobs.append(hard.enqueue(number))
        app.send("easy")
    with caplog.at_level(logging.INFO, "rota"):
        kinds = [event.kind for event in app.drain()]
    assert kinds == [Kind.FAILED, Kind.SUCCEEDED] * len(ERRORS)
    for job in jobs:
        assert (job.refresh().status, job.attempt) == (State.FAILED, 1)
        [attempt] = job.attempts()
        assert attempt.failure is not None
        assert 0 < len(job.reason or "") <= 2_100
        assert "\0" not in (told := f"{job.reason}{attempt.failure}")
        assert told.encode()
    assert "a\\x00b" in (jobs[0].reason or "")
    for record in caplog.records:
        assert record.getMessage().encode()


BROKEN = ("", "{", '{"number":', "null", "[]", "7", '{"number":"seven"}', '{"*":7}', '{"*":[1,2,3]}', '{"wrong":1}')


def test_a_payload_that_cannot_be_read_fails_its_own_job(app: Rota) -> None:
    @app.task(name="t", max_attempts=1)
    def take(number: int) -> None: ...

    ids = [new_id() for _ in BROKEN]
    app.store.insert([NewJob(id, "t", "default", args, max_attempts=1) for id, args in zip(ids, BROKEN, strict=True)])
    good = take.enqueue(1)
    assert len(app.jobs()) == len(BROKEN) + 1
    kinds = [event.kind for event in app.drain()]
    assert kinds == [Kind.FAILED] * len(BROKEN) + [Kind.SUCCEEDED]
    assert good.refresh().status is State.SUCCEEDED
    for job in app.jobs(status="failed"):
        assert job.reason
        assert job.retry().status is State.QUEUED
        job.delete()


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_result_that_is_no_number_is_never_lost_in_silence(app: Rota, number: str, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="t", keep_result=True)
    def compute() -> dict[str, list[float]]:
        return {"a": [1.0, float(number)]}

    job = compute.enqueue()
    assert str(app.run_one()) == "ran t"
    with pytest.raises(ResultNotKept):
        job.result()
    assert f"['a'][1] is {number}" in caplog.text
