"""What follows a time-out is the retry policy's to say; a function of the user's that blocks there holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rota import Rota
from rota.model import State
from working import eventually, working

PATIENCE = 30.0
TOLD = "timed out after 0.1 s (the retry function did not answer within 0.3 s; the default policy's wait is taken)"


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """What blocked bodies and functions wait for; in the end it is set."""
    go = threading.Event()
    yield go
    go.set()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.worker.overtime._PATIENCE", 0.3)


def test_the_ledger_does_not_wait_for_the_retry_function(app: Rota, go: threading.Event) -> None:
    asked, answer = threading.Event(), threading.Event()
    threads = []

    def ask(attempt: int, error: BaseException) -> float:
        threads.append(threading.current_thread().name)
        asked.set()
        answer.wait(PATIENCE)
        return 100

    @app.task(timeout=0.1, retry=ask)
    def stuck() -> None:
        go.wait(PATIENCE)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=2):
        job = stuck.enqueue()
        assert asked.wait(PATIENCE)
        assert quick.enqueue().wait(4).status is State.SUCCEEDED  # sooner than it is given up
        assert job.refresh().status is State.RUNNING
        answer.set()
        eventually(lambda: job.refresh().status is State.SCHEDULED)
        go.set()
    [attempt] = job.attempts()
    assert (job.reason, threads) == ("timed out after 0.1 s", ["rota-overtime"])
    assert (job.row.due - attempt.ended_at) == 100_000_000


@pytest.mark.usefixtures("hasty")
def test_where_the_retry_function_blocks_the_job_waits_as_by_default_and_its_slot_goes_on(
    app: Rota, go: threading.Event
) -> None:
    @app.task(timeout=0.1, retry=lambda attempt, error: go.wait(PATIENCE) and 100)
    def stuck() -> None:
        go.wait(PATIENCE)

    @app.task
    def quick() -> None: ...

    with working(app, concurrency=1):
        job = stuck.enqueue()
        assert quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
        [attempt] = eventually(job.attempts)
        assert (job.refresh().reason, job.row.due - attempt.ended_at) == (TOLD, 3_000_000)
        assert attempt.took < 300_000
        go.set()


@pytest.mark.usefixtures("hasty")
def test_a_retry_function_that_does_not_answer_is_not_asked_again_until_it_does(app: Rota, go: threading.Event) -> None:
    asked = []

    def ask(attempt: int, error: BaseException) -> float:
        asked.append(attempt)
        go.wait(PATIENCE)
        return 100

    @app.task(timeout=0.1, retry=ask)
    def stuck(number: int) -> None:
        go.wait(PATIENCE) if number < 3 else threading.Event().wait(1.0)

    with working(app, concurrency=3, shutdown_timeout=0.1):
        for number in (1, 2):
            job = stuck.enqueue(number)
            eventually(lambda job=job: job.refresh().status is State.SCHEDULED)
            assert job.reason == TOLD
        assert len(asked) == 1
        go.set()
        eventually(lambda: not any(thread.name == "rota-overtime" for thread in threading.enumerate()))
        job = stuck.enqueue(3)
        eventually(lambda: job.refresh().status is State.SCHEDULED)
        assert job.reason == "timed out after 0.1 s"


@pytest.mark.usefixtures("hasty")
def test_the_last_attempt_fails_without_a_word_about_waits(app: Rota, go: threading.Event) -> None:
    @app.task(timeout=0.1, max_attempts=1, retry=lambda attempt, error: go.wait(PATIENCE) and 100)
    def stuck() -> None:
        go.wait(PATIENCE)

    with working(app, concurrency=1):
        blocked = stuck.using(max_attempts=2).enqueue()
        eventually(lambda: blocked.refresh().status is State.SCHEDULED)
        job = stuck.enqueue().wait(PATIENCE)
        go.set()
    assert (job.status, job.reason) == (State.FAILED, "timed out after 0.1 s")


def test_a_retry_function_that_blocks_does_not_keep_the_worker_from_its_end(app: Rota, go: threading.Event) -> None:
    asked, answered = threading.Event(), threading.Event()

    def ask(attempt: int, error: BaseException) -> float:
        asked.set()
        go.wait(PATIENCE)
        answered.set()
        return 100

    @app.task(timeout=0.1, retry=ask)
    def stuck() -> None:
        go.wait(PATIENCE)

    with working(app, shutdown_timeout=0.1):
        job = stuck.enqueue()
        assert asked.wait(PATIENCE)
    assert not answered.is_set()
    assert job.refresh().status is not State.RUNNING
