"""Attempts that ended after a finish of their own, where the store or the job is not as it mostly is."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from effects import connect, ready, transaction
from rota import CurrentJob, Move, Rota, State, current_job
from rota.attempt import Run
from rota.clock import SECOND
from rota.model import Succeeded
from rota.testing.contract.scene import LEASE, NOW, OUTCOMES, change, claim, finish, join, running
from rota.worker.hooks import HookThread
from rota.worker.recorder import Recorder
from rota.worker.within import Within
from working import eventually, working


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_attempts_of_a_job_that_end_at_once_each_is_told_for_itself(
    app: Rota, first: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It was retried by hand while a body that had finished it went on."""
    caplog.set_level(logging.INFO)
    pay = app.task(lambda: None, name="pay")
    store, worker = app.store, join(app.store)
    attempts = []
    for _ in range(2):
        attempts.append(running(store, worker, task="pay") if not attempts else claimed_again(app, worker, attempts[0].id))
        assert finish(store, worker, attempts[-1], Succeeded())
    within = Within(app, store, Recorder(app, store, HookThread(app, store, lambda: None)))
    for claimed in (attempts[first], attempts[1 - first]):
        within.add(Run(claimed, pay, worker), Succeeded())
    assert within.look()
    assert within.runs == []
    assert [record.getMessage() for record in caplog.records].count("ran pay") == 2


def test_a_retry_by_hand_leaves_a_body_alone_that_had_finished_its_job(
    shared_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    committed, go = threading.Event(), threading.Event()
    stopped: list[bool] = []
    told: list[str] = []
    with Rota(ready(shared_url)) as app:

        @app.task(name="pay", keep_result=True)
        def pay() -> str:
            if committed.is_set():
                return "the second"
            with transaction(shared_url) as own:
                current_job().finish_within(own, result="the first")
            committed.set()
            go.wait(10)
            stopped.append(current_job().should_stop)
            return "not this"

        @app.on_success
        def succeeded(job: CurrentJob, result: str) -> None:
            told.append(result)

        with working(app, lease=1.5) as worker:
            job = pay.enqueue()
            assert committed.wait(10)
            job.retry()
            before = next(each for each in app.workers() if each.id == worker.id).lease_until
            # Two beats have heard that the store has no such running job.
            eventually(lambda: app.workers()[0].lease_until > before + SECOND)
            go.set()
            eventually(lambda: sorted(told) == ["the first", "the second"])
    assert stopped == [False]
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_success_that_is_not_kept_is_told_by_one_attempt_alone(shared_url: str) -> None:
    """Of two that began, the first rolled its own back and had lost its lease by then."""
    begun, lost, over = threading.Event(), threading.Event(), threading.Event()
    told: list[int] = []
    with Rota(ready(shared_url), keep_succeeded=0) as app:

        @app.task(name="pay")
        def pay() -> None:
            if current_job().attempt > 1:
                return
            own = connect(shared_url)
            current_job().finish_within(own)
            own.rollback()
            own.close()
            begun.set()
            lost.wait(10)
            over.set()

        @app.task(name="last")
        def last() -> None: ...

        @app.on_success
        def succeeded(job: CurrentJob, result: object) -> None:
            told.append(job.attempt if job.task == "pay" else 0)

        with working(app):
            job = pay.enqueue()
            assert begun.wait(10)
            app.store.lost(10, now=app.store.vitals().now + 3600 * SECOND)
            eventually(lambda: not app.store.get([job.id]))
            lost.set()
            assert over.wait(10)
            last.enqueue()
            eventually(lambda: 0 in told)
    assert told == [2, 0]


def test_a_success_that_is_not_kept_stays_until_its_worker_has_seen_it(
    shared_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.worker.pulse._PRUNE", 0.01)
    committed, go = threading.Event(), threading.Event()
    told: list[str] = []
    with Rota(ready(shared_url), keep_succeeded=0, keep_failed=0.001) as app:

        @app.task(name="pay", keep_result=True)
        def pay() -> str:
            with transaction(shared_url) as own:
                current_job().finish_within(own, result="paid")
            committed.set()
            go.wait(10)
            return "not this"

        @app.task(name="fails", max_attempts=1)
        def fails() -> None:
            raise ValueError

        app.on_success(lambda job, result: told.append(result))
        with working(app):
            pay.enqueue()
            assert committed.wait(10)
            failed = fails.enqueue()
            eventually(lambda: not app.store.get([failed.id]))
            go.set()
            eventually(lambda: told == ["paid"])
    assert [line for line in caplog.messages if "lease" in line] == []


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("became", ["written", "lost", "written and retried"])
def test_an_outcome_whose_answer_was_lost_is_told_where_it_was_written(
    app: Rota, outcome: str, became: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = app.task(lambda: None, name="pay")
    store, worker = app.store, join(app.store)
    claimed = running(store, worker, task="pay")
    if became == "lost":
        store.lost(10, now=NOW + LEASE)
    else:
        assert finish(store, worker, claimed, OUTCOMES[outcome])
    if became == "written and retried":
        change(store, Move.RETRY, claimed.id)
    recorder = Recorder(app, store, HookThread(app, store, lambda: None))
    recorder.resent = True
    handed = [(Run(claimed, task, worker), OUTCOMES[outcome])]
    recorder.write_singly(worker, handed)
    assert any("its outcome is not recorded" in line for line in caplog.messages) == (became == "lost")


def claimed_again(app: Rota, worker: str, id: str) -> Any:
    change(app.store, Move.RETRY, id)
    [claimed] = claim(app.store, worker)
    return claimed


class Older:
    """A store of others that was made before stores took part in transactions of others."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.url = "etcd://here"

    def __getattr__(self, name: str) -> Any:
        if name in {"dialect", "finish_after"}:
            raise AttributeError(name)
        return getattr(self._inner, name)

    def twin(self) -> Older:
        return Older(self._inner.twin())


@pytest.mark.parametrize("way", ["a worker", "inline"])
def test_a_store_of_others_refuses_and_its_worker_goes_on(
    app: Rota, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(app.holding, "_store", Older(app.store))

    @app.task(name="pay", retry=0, max_attempts=2)
    def pay() -> None:
        with closing(sqlite3.connect(tmp_path / "other.db")) as own:
            current_job().finish_within(own)

    @app.task(name="other")
    def other() -> None: ...

    jobs = [pay.enqueue(), other.enqueue()]
    if way == "inline":
        app.drain()
    else:
        with working(app):
            eventually(lambda: all(job.refresh().status in {State.FAILED, State.SUCCEEDED} for job in jobs))
    assert [job.refresh().status for job in jobs] == [State.FAILED, State.SUCCEEDED]
    assert "the store etcd://here cannot take part in a transaction of yours" in str(jobs[0].reason)
