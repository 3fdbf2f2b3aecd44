"""Whatever a job brings or a body throws, that job alone is concerned, and its failure can be read."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from rota import Rota
from rota.errors import ArgumentsError, ResultNotKept
from rota.ids import new_id
from rota.model import JobRow, NewJob, State
from working import working

PATIENCE = 30.0


class Unpicklable(Exception):
    def __init__(self, first: object, second: object) -> None:
        super().__init__(first)
        self.lock = threading.Lock()


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Endless(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


def deep(levels: int) -> None:
    if levels:
        deep(levels - 1)
    raise ValueError("deep down")


def noted_nul() -> None:
    error = ValueError("a\x00b")
    error.add_note("more\x00of it")
    raise error


def chained() -> None:
    try:
        raise Unpicklable(1, 2)
    except Unpicklable as error:
        raise Unpicklable(error, 3) from error


def raising(error: BaseException):
    def body() -> None:
        raise error

    return body


BODIES = {
    "nul": noted_nul,
    "huge": raising(RuntimeError("x" * 20_000_000)),
    "deep": lambda: deep(900),
    "unpicklable": chained,
    "mute": raising(Mute("x")),
    "exits when read": raising(Endless()),
    "surrogate": raising(OSError("\ud800 ā 🙂 \u202e")),
    "long name": raising(type("Nā" * 200, (Exception,), {})("x")),
    "a group": raising(ExceptionGroup("many", [ValueError(str(number)) for number in range(500)])),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_failure_of_any_kind_is_stored_and_its_neighbours_are_not_concerned(app: Rota, body: str) -> None:
    bad = app.task(name="bad", max_attempts=1)(BODIES[body])

    @app.task
    def good() -> None: ...

    jobs = good.enqueue_many([()] * 10)
    odd = bad.enqueue()
    jobs += good.enqueue_many([()] * 10)
    with working(app):
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        odd.wait(PATIENCE)
    assert (odd.status, odd.attempt) == (State.FAILED, 1)
    assert odd.reason is not None
    assert len(odd.reason) < 5_000
    assert "\x00" not in odd.reason
    (attempt,) = odd.attempts()
    assert attempt.failure is not None
    assert len(attempt.failure.trace) < 20_000


@pytest.mark.parametrize(
    "payload", ['{"number":', "[]", "", "null", '{"number": "seven"}', '{"*": 5}', '{"other": 1}', "\\x00"]
)
def test_a_payload_that_cannot_be_read_fails_its_job_readably(app: Rota, payload: str) -> None:
    @app.task
    def add(number: int) -> None: ...

    broken = NewJob(new_id(), add.name, "default", payload, max_attempts=1)
    app.store.insert([broken])
    fine = add.enqueue(1)
    with working(app):
        assert fine.wait(PATIENCE).status is State.SUCCEEDED
        job = app.get(broken.id).wait(PATIENCE)
    assert job.status is State.FAILED
    assert "add" in (job.reason or "")
    assert {each.id for each in app.jobs()} == {broken.id, fine.id}
    assert app.retry(job.id).status is State.QUEUED


class Evil:
    def __eq__(self, other: object) -> bool:
        raise SystemError("no comparison")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [object(), {1: Evil()}, {"a": threading.Lock()}, "x" * 2_000, b"\xff" * 3_000])
def test_a_result_that_cannot_be_stored_does_not_run_the_work_again(store_url: str, value: object) -> None:
    times = []
    with Rota(store_url, max_payload=1_000) as app:

        @app.task(keep_result=True)
        def work():
            times.append(1)
            return value

        with working(app):
            job = work.enqueue().wait(PATIENCE)
        assert job.status is State.SUCCEEDED
        with pytest.raises(ResultNotKept):
            job.result()
    assert times == [1]


def test_a_result_that_is_no_number_is_refused_alike_on_every_store_and_the_work_stays_done(app: Rota) -> None:
    times = []

    @app.task(keep_result=True)
    def work() -> dict[str, object]:
        times.append(1)
        return {"a": 1.0, "b": float("nan"), "c": [float("inf")]}

    @app.task(keep_result=True)
    def exact() -> dict[str, Decimal]:
        return {"a": Decimal("1.0"), "b": Decimal("NaN"), "c": Decimal("-Infinity")}

    @app.task
    def take(value: object) -> None: ...

    with working(app):
        job = work.enqueue().wait(PATIENCE)
        back = exact.enqueue().wait(PATIENCE).result()
    assert (job.status, times) == (State.SUCCEEDED, [1])
    with pytest.raises(ResultNotKept):
        job.result()
    assert {name: str(value) for name, value in back.items()} == {"a": "1.0", "b": "NaN", "c": "-Infinity"}
    for value, path in ((float("nan"), "value"), ({"c": [float("inf")]}, r"value\['c'\]\[0\]")):
        with pytest.raises(ArgumentsError, match=path):
            take.enqueue(value)


def test_nothing_is_kept_of_what_succeeded_where_that_is_wished(store_url: str) -> None:
    with Rota(store_url, keep_succeeded=0) as app:
        left = threading.Semaphore(0)

        @app.task
        def good() -> None:
            left.release()

        @app.task(max_attempts=1)
        def bad() -> None:
            raise ValueError("no")

        good.enqueue_many([()] * 50)
        job = bad.enqueue()
        with working(app):
            job.wait(PATIENCE)
            for _ in range(50):
                assert left.acquire(timeout=PATIENCE)
        rows: list[JobRow] = [each.row for each in app.jobs()]
    assert [row.state for row in rows] == [State.FAILED]
