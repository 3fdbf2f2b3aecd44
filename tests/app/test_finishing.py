"""Jobs that run in the caller and are finished in transactions of their bodies."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from effects import Connection, connect, effects, note_effect, prepare, ready, transaction
from rota import LeaseLost, NotSupported, Rota, State, current_job
from rota.context import CurrentJob
from rota.model import Progress
from servers import PostgresServer


@pytest.fixture
def store_url(shared_url: str) -> str:
    """Of a store to which a body can have a connection of its own; there is a table for its effects."""
    return ready(shared_url)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.schema() as url:
        yield ready(url)


def test_drain_tells_of_a_job_that_its_body_finished(app: Rota, store_url: str) -> None:
    @app.task(name="pay", keep_result=True)
    def pay() -> int:
        current_job().progress(1, 3, "paid")
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own, result=7)
        current_job().progress(2, 3, "too late")
        return 8

    job = pay.enqueue()
    assert [str(event) for event in app.drain()] == ["ran pay"]
    assert (job.refresh().status, job.result(), effects(store_url)) == (State.SUCCEEDED, 7, [job.id])
    assert job.progress == Progress(1, 3, "paid")
    assert app.workers() == []


def test_a_rollback_and_an_error_are_a_failed_attempt(app: Rota, store_url: str) -> None:
    @app.task(name="pay", retry=0, max_attempts=2)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)
            raise ValueError("no money")

    job = pay.enqueue()
    assert [str(event) for event in app.drain()] == [f"failed pay on attempt {n}: no money" for n in (1, 2)]
    assert (job.refresh().status, effects(store_url)) == (State.FAILED, [])


def test_an_error_after_the_commit_is_told(app: Rota, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    @app.task(name="pay")
    def pay() -> None:
        with transaction(store_url) as own:
            current_job().finish_within(own)
        raise ValueError("late")

    job = pay.enqueue()
    assert [str(event) for event in app.drain()] == ["ran pay"]
    assert job.refresh().status is State.SUCCEEDED
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith(f"pay failed after it had finished job {job.id} in a transaction that was committed")


def test_hooks_hear_of_the_success(app: Rota, store_url: str) -> None:
    heard: list[object] = []

    @app.on_success
    def hear(job: CurrentJob, result: object) -> None:
        heard.append((job.id, result))
        with transaction(store_url) as own, pytest.raises(LeaseLost, match="has ended: only its body can finish it"):
            job.finish_within(own)

    @app.task(keep_result=True)
    def pay() -> int:
        with transaction(store_url) as own:
            current_job().finish_within(own, result=7)
        return 8

    job = pay.enqueue()
    app.drain()
    assert heard == [(job.id, 7)]


def test_a_transaction_of_the_callers_own_may_be_committed_after_the_run(postgres_url: str) -> None:
    with Rota(postgres_url) as app:
        own: Connection = connect(postgres_url)

        @app.task(name="pay")
        def pay() -> None:
            note_effect(own, current_job().id)
            current_job().finish_within(own)

        paid, undone = pay.enqueue(), pay.enqueue()
        assert str(app.run_one()) == "ran pay"
        assert paid.refresh().status is State.RUNNING
        own.commit()
        assert paid.refresh().status is State.SUCCEEDED
        assert str(app.run_one()) == "ran pay"
        own.rollback()
        own.close()
        assert effects(postgres_url) == [paid.id]
        worker = app.workers()[-1]  # it left, and is looked at once more for the job that it left behind
        assert app.store.lost(10, now=worker.lease_until).lost[0].id == undone.id


def test_memory_has_no_connection_to_it() -> None:
    with Rota("memory://") as app:

        @app.task(max_attempts=1)
        def pay() -> None:
            with closing(sqlite3.connect(":memory:")) as own:
                current_job().finish_within(own)

        job = pay.enqueue()
        app.drain()
        [attempt] = job.attempts()
    assert attempt.failure is not None
    assert attempt.failure.type.endswith((NotSupported.__name__, "Elsewhere"))


def test_in_eager_mode_the_body_runs_and_nothing_is_recorded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    prepare(url)
    with Rota(url, eager=True) as app:

        @app.task(keep_result=True)
        def pay() -> int:
            with transaction(url) as own:
                note_effect(own, current_job().id)
                current_job().finish_within(own, result=7)
            return 8

        @app.task
        def wrong() -> None:
            current_job().finish_within(object())

        job = pay.enqueue()
        assert (job.status, job.result(), effects(url)) == (State.SUCCEEDED, 7, [job.id])
        assert "is none that Rota knows" in str(wrong.enqueue().reason)
