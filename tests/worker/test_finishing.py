"""Jobs that their bodies finish in the transaction that holds their effects."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import finishing_bodies
import psycopg
import pytest

from effects import Connection, connect, conninfo_of, effects, note_effect, prepare, ready, transaction
from rota import LeaseLost, MoveRefused, Retry, Rota, Snooze, State, current_job
from rota.clock import SECOND
from rota.handle import Job
from servers import PostgresServer
from working import eventually, working


@pytest.fixture
def store_url(shared_url: str) -> str:
    """Of a store to which a body can have a connection of its own; there is a table for its effects."""
    return ready(shared_url)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.schema() as url:
        yield ready(url)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def said(caplog: pytest.LogCaptureFixture, line: str) -> int:
    return sum(record.getMessage() == line for record in caplog.records)


def test_effects_and_the_success_come_together(app: Rota, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    @app.task(name="pay", keep_result=True)
    def pay() -> int:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own, result=7)
        return 8

    with working(app):
        job = pay.enqueue()
        assert job.wait(10).result() == 7
        eventually(lambda: said(caplog, "ran pay") == 1)
    assert effects(store_url) == [job.id]
    assert (job.attempt, job.attempts(), warnings_in(caplog)) == (1, [], [])


def test_who_waits_sees_the_success_at_the_commit_and_not_before(app: Rota, store_url: str) -> None:
    committed, go = threading.Event(), threading.Event()
    seen = []

    @app.task
    def pay() -> None:
        with transaction(store_url) as own:
            current_job().finish_within(own)
            seen.append(app.get(current_job().id).status)
        committed.set()
        go.wait(10)

    with working(app):
        job = pay.enqueue()
        assert committed.wait(10)
        assert job.refresh().status is State.SUCCEEDED
        go.set()
    assert seen == [State.RUNNING]


def test_a_rollback_leaves_the_job_to_its_retries(app: Rota, store_url: str) -> None:
    @app.task(retry=0)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)
            if current_job().attempt == 1:
                raise ValueError("the first try broke")

    with working(app):
        job = pay.enqueue()
        assert job.wait(10).status is State.SUCCEEDED
    assert effects(store_url) == [job.id]
    assert [attempt.outcome for attempt in job.attempts()] == ["again"]


def test_a_body_that_rolls_back_and_returns_has_succeeded_as_any_other(app: Rota, store_url: str) -> None:
    @app.task(keep_result=True)
    def pay() -> str:
        own = connect(store_url)
        current_job().finish_within(own)
        own.rollback()
        own.close()
        return "nothing to pay"

    with working(app):
        assert pay.enqueue().wait(10).result() == "nothing to pay"


def test_a_body_may_try_again_itself_after_a_rollback(app: Rota, store_url: str) -> None:
    @app.task
    def pay() -> None:
        for attempt in (1, 2):
            own = connect(store_url)
            note_effect(own, current_job().id)
            current_job().finish_within(own)
            if attempt == 1:
                own.rollback()
            else:
                own.commit()
            own.close()

    with working(app):
        job = pay.enqueue()
        assert job.wait(10).status is State.SUCCEEDED
    assert effects(store_url) == [job.id]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("late"), "pay failed after it had finished job {id} in a transaction that was committed"),
        (Retry(after=60), "pay failed after it had finished job {id} in a transaction that was committed"),
        (Snooze(60), "pay asked to be snoozed after it had finished job {id}, which stays so"),
    ],
    ids=["error", "retry", "snooze"],
)
def test_what_a_body_raises_after_the_commit_is_told_and_changes_nothing(
    app: Rota, store_url: str, caplog: pytest.LogCaptureFixture, error: Exception, told: str
) -> None:
    @app.task(name="pay", retry=0)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)
        raise error

    with working(app):
        job = pay.enqueue()
        eventually(lambda: warnings_in(caplog))
    assert job.refresh().status is State.SUCCEEDED
    assert (effects(store_url), job.attempts()) == ([job.id], [])
    [line] = warnings_in(caplog)
    assert line.startswith(told.format(id=job.id))


def test_a_second_finish_is_refused_and_its_effects_are_rolled_back(app: Rota, store_url: str) -> None:
    errors: list[BaseException] = []

    @app.task(max_attempts=1)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)
        try:
            with transaction(store_url) as own:
                note_effect(own, "twice")
                current_job().finish_within(own)
        except MoveRefused as error:
            errors.append(error)

    with working(app):
        job = pay.enqueue()
        eventually(lambda: errors)
        assert job.wait(10).status is State.SUCCEEDED
    assert effects(store_url) == [job.id]
    assert str(errors[0]) == (
        f"job {job.id} has been finished by this attempt already, in this transaction or in one that was committed: "
        "roll back what was done a second time"
    )


@pytest.mark.parametrize("kept", [None, 0])
def test_two_finishes_in_one_transaction_are_refused(store_url: str, kept: int | None) -> None:
    with Rota(store_url, keep_succeeded=kept) as app:

        @app.task(max_attempts=1)
        def pay() -> None:
            with transaction(store_url) as own:
                note_effect(own, current_job().id)
                current_job().finish_within(own)
                current_job().finish_within(own)

        with working(app):
            job = pay.enqueue()
            assert "finished by this attempt already" in str(job.wait(10).reason)
        assert (job.status, effects(store_url)) == (State.FAILED, [])


def test_a_body_whose_lease_was_lost_cannot_finish_its_job(app: Rota, store_url: str) -> None:
    begun, lost = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    @app.task(max_attempts=5)
    def pay() -> None:
        if current_job().attempt == 1:
            begun.set()
            lost.wait(10)
        try:
            with transaction(store_url) as own:
                note_effect(own, current_job().id)
                current_job().finish_within(own)
        except LeaseLost as error:
            raised.append(error)
            raise

    with working(app):
        job = pay.enqueue()
        assert begun.wait(10)
        app.store.lost(10, now=app.store.vitals().now + 3600 * SECOND)
        eventually(lambda: job.refresh().attempt == 2)
        lost.set()
        eventually(lambda: raised)
        assert job.wait(10).status is State.SUCCEEDED
    assert effects(store_url) == [job.id]
    assert "its lease was lost" in str(raised[0])


def test_a_cancel_after_the_commit_comes_too_late_and_the_body_goes_on(
    app: Rota, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    committed, go = threading.Event(), threading.Event()
    beats: list[bool] = []

    @app.task(name="pay")
    def pay() -> None:
        with transaction(store_url) as own:
            current_job().finish_within(own)
        committed.set()
        current_job().progress(1, 2)
        go.wait(10)
        beats.append(current_job().should_stop)

    with working(app, lease=1.5) as worker:
        job = pay.enqueue()
        assert committed.wait(10)
        assert job.cancel() is State.SUCCEEDED
        before = eventually(lambda: [each for each in app.workers() if each.id == worker.id])[0].lease_until
        # Two beats have heard that the store has no such running job.
        eventually(lambda: app.workers()[0].lease_until > before + SECOND)
        go.set()
        eventually(lambda: beats)
    assert (beats, job.refresh().status, warnings_in(caplog)) == ([False], State.SUCCEEDED, [])


def test_places_of_limits_and_keys_are_given_back(app: Rota, store_url: str) -> None:
    @app.task(concurrency=1)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)

    with working(app, poll=5.0, concurrency=4):
        jobs = [pay.using(key="k").enqueue(), *pay.enqueue_many([()] * 8)]
        eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in jobs))
        assert not pay.using(key="k").enqueue().existed
        eventually(lambda: len(effects(store_url)) == 10)
        eventually(lambda: [room.running for room in app.limits()] in ([], [0]))


def test_a_success_that_is_not_kept_goes_with_the_next_purge(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Rota(store_url, keep_succeeded=0) as app:

        @app.task(name="pay")
        def pay() -> None:
            with transaction(store_url) as own:
                note_effect(own, current_job().id)
                current_job().finish_within(own)

        with working(app):
            job = pay.enqueue()
            eventually(lambda: said(caplog, "ran pay") == 1)
        assert job.refresh().status is State.SUCCEEDED
        app.purge()
        assert app.store.get([job.id]) == []
    assert (effects(store_url), warnings_in(caplog)) == ([job.id], [])


def test_a_plain_body_whose_time_is_up_after_the_commit_has_succeeded(
    app: Rota, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    go = threading.Event()

    @app.task(name="pay", timeout=0.2, max_attempts=1)
    def pay() -> None:
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            current_job().finish_within(own)
        go.wait(10)

    with working(app):
        job = pay.enqueue()
        eventually(lambda: [line for line in warnings_in(caplog) if "the job stays succeeded: timed out after" in line])
        go.set()
    assert (job.refresh().status, effects(store_url)) == (State.SUCCEEDED, [job.id])


def test_a_body_that_was_given_up_cannot_finish_its_job(app: Rota, store_url: str) -> None:
    over = threading.Event()
    raised: list[BaseException] = []

    @app.task(timeout=0.2, max_attempts=1)
    def pay() -> None:
        over.wait(10)
        with transaction(store_url) as own:
            note_effect(own, current_job().id)
            try:
                current_job().finish_within(own)
            except LeaseLost as error:
                raised.append(error)
                raise

    with working(app):
        job = pay.enqueue()
        assert job.wait(10).status is State.FAILED
        over.set()
        eventually(lambda: raised)
    assert (effects(store_url), "its attempt has ended without it" in str(raised[0])) == ([], True)


def test_another_database_is_refused(app: Rota, store_url: str, tmp_path: Path) -> None:
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    prepare(elsewhere)

    @app.task(max_attempts=1)
    def pay() -> None:
        with transaction(elsewhere) as own:
            note_effect(own, "x")
            current_job().finish_within(own)

    with working(app):
        job = pay.enqueue().wait(10)
    assert (job.status, job.attempts()[0].failure.type) == (State.FAILED, "rota.stores.foreign.Elsewhere")  # type: ignore[union-attr]
    assert effects(elsewhere) == []


def test_a_result_that_the_task_does_not_keep_is_refused(app: Rota, store_url: str) -> None:
    @app.task(max_attempts=1)
    def pay() -> None:
        with transaction(store_url) as own:
            current_job().finish_within(own, result=1)

    with working(app):
        job = pay.enqueue().wait(10)
    assert "keeps none: declare it with @app.task(keep_result=True)" in str(job.reason)


@pytest.mark.parametrize("task", ["pay", "pay_and_fail", "pay_and_leave", "pay_and_hang"])
def test_a_body_in_a_process_of_its_own_finishes_its_job(store_url: str, task: str) -> None:
    finishing_bodies.app.url = store_url
    with finishing_bodies.app as app, working(app):
        job: Job[int] = app.named(task).enqueue(store_url)
        assert job.wait(30).status is State.SUCCEEDED
        assert job.result() == 7
        # The worker has heard how the body ended.
        eventually(lambda: app.named("pay").enqueue(store_url).wait(30))
    assert effects(store_url).count(job.id) == 1


# -- transactions that stay open, on Postgres: a SQLite file has but one writer ------------------


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_worker_waits_for_no_transaction_that_a_body_left_open(postgres_url: str, end: str) -> None:
    kept = {}
    with Rota(postgres_url) as app:

        @app.task(retry=0)
        def forget() -> None:
            if current_job().attempt == 1:
                own = kept[current_job().id] = connect(postgres_url)
                note_effect(own, current_job().id)
                current_job().finish_within(own)
                raise ValueError("and never committed")

        @app.task
        def other() -> None:
            pass

        with working(app, lease=1.5):
            jobs = [forget.enqueue(), forget.enqueue()]
            eventually(lambda: len(kept) == 2)
            for _ in range(3):
                assert other.enqueue().wait(10).status is State.SUCCEEDED
            assert {job.refresh().status for job in jobs} == {State.RUNNING}
            for own in kept.values():
                getattr(own, end)()
                own.close()
            for job in jobs:
                assert job.wait(10).status is State.SUCCEEDED
                assert job.attempt == (1 if end == "commit" else 2)
    assert sorted(effects(postgres_url)) == (sorted(job.id for job in jobs) if end == "commit" else [])


def test_a_worker_ends_although_bodies_left_their_transactions_open(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept: dict[str, Connection] = {}
    with Rota(postgres_url) as app:

        @app.task
        def forget() -> None:
            own = connect(postgres_url)
            note_effect(own, current_job().id)
            current_job().finish_within(own)
            kept[current_job().id] = own

        with working(app, shutdown_timeout=0.1):
            paid, undone = forget.enqueue(), forget.enqueue()
            eventually(lambda: len(kept) == 2)
        lines = [line for line in warnings_in(caplog) if "a transaction that is still open, and the worker ends" in line]
        assert len(lines) == 2
        assert (paid.refresh().status, undone.refresh().status) == (State.RUNNING, State.RUNNING)
        kept[paid.id].commit()
        kept[undone.id].rollback()
        for own in kept.values():
            own.close()
        assert eventually(lambda: app.store.lost(10).lost)[0].id == undone.id
        assert (paid.refresh().status, undone.refresh().status) == (State.SUCCEEDED, State.QUEUED)
        assert (effects(postgres_url), app.workers()) == ([paid.id], [])


@pytest.mark.parametrize("lost", ["before the commit", "after the commit"])
def test_a_connection_that_breaks_around_the_commit_leaves_it_to_the_store_what_is_so(postgres_url: str, lost: str) -> None:
    with Rota(postgres_url) as app:

        @app.task(retry=0)
        def pay() -> None:
            first = current_job().attempt == 1
            with transaction(postgres_url) as own:
                note_effect(own, current_job().id)
                current_job().finish_within(own)
                if lost == "after the commit":
                    own.commit()
                if first:
                    with transaction(postgres_url) as other:
                        other.execute("select pg_terminate_backend(%s)", [own.info.backend_pid])
                    own.execute("select 1")

        with working(app):
            job = pay.enqueue()
            assert job.wait(10).status is State.SUCCEEDED
        assert job.refresh().attempt == (2 if lost == "before the commit" else 1)
    assert effects(postgres_url) == [job.id]


def test_nobody_who_reaps_waits_for_an_open_transaction(postgres_url: str) -> None:
    with Rota(postgres_url) as app:
        kept = []

        @app.task
        def forget() -> None:
            own = connect(postgres_url)
            current_job().finish_within(own)
            kept.append(own)

        with working(app) as worker:
            job = forget.enqueue()
            eventually(lambda: kept)
            later = app.store.vitals().now + 3600 * SECOND
            assert app.store.lost(10, now=later).lost == []
            assert [each.id for each in app.workers()] == [worker.id]
            kept[0].commit()
            kept[0].close()
            assert job.wait(10).status is State.SUCCEEDED


def test_a_coroutine_finishes_its_job_unless_it_is_cancelled_before_the_commit(postgres_url: str) -> None:
    with Rota(postgres_url) as app:

        @app.task(max_attempts=1, timeout=0.5)
        async def pay(lingers: bool) -> None:
            async with await psycopg.AsyncConnection.connect(conninfo_of(postgres_url)) as own:
                await own.execute(b"insert into effects (job) values (%s)", [current_job().id])
                await current_job().afinish_within(own)
                if lingers:
                    await asyncio.Event().wait()

        with working(app):
            paid, late = pay.enqueue(False), pay.enqueue(True)
            assert (paid.wait(10).status, late.wait(10).status) == (State.SUCCEEDED, State.FAILED)
        assert "timed out" in str(late.reason)
    assert effects(postgres_url) == [paid.id]
