"""Attempts that ended after a finish of their own, where the store or the job is not as it mostly is."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rota import Move, Rota, State, current_job
from rota.attempt import Run
from rota.model import Succeeded
from rota.testing.contract.scene import change, claim, finish, join, running
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
    assert [record.getMessage() for record in caplog.records].count("ran pay") == 1


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
    monkeypatch.setattr(app, "_store", Older(app.store))

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
