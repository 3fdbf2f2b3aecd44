"""Each call to the store fails once in turn, before it was done or after: the worker goes on and no job is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accounts import account, noted
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import State
from rota.stores.base import Store
from rota.worker import Worker
from working import working

PATIENCE = 30.0
ONCE = ["declare", "join", "twin", "line", "rest", "reconcile", "leave"]
"""Operations that a worker calls once, or not again in a short life: their first call fails; of the others, the second."""
OPERATIONS = ["post", "answered", "wait", "beat", "promote", "queues", "paused", "lost", *ONCE]
CASES = [
    # What fails before it reaches the store is the same on each. What was done there is not.
    pytest.param(kind, operation, error, after, id=f"{kind}-{operation}-{error.__name__}-{'after' if after else 'before'}")
    for after in (False, True)
    for kind in (("sqlite", "memory", "postgres") if after else ("memory",))
    for error in (StoreUnavailable, RuntimeError)
    for operation in OPERATIONS
    # What keeps a worker from starting for another reason than the store's absence ends it.
    if not (operation in ("declare", "join", "twin") and error is RuntimeError)
    # Nobody would be left to close what was made.
    if not (operation in ("line", "twin") and after)
]
"""A kind of store, an operation, the error that it meets, and whether only when it was done."""


class Faulty:
    """The store, except that the n-th call of one operation raises, having done its work or not."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._plan = plan

    def twin(self) -> Faulty:
        return Faulty(self._plan.call("twin", self._store.twin)(), self._plan)

    def line(self) -> Faulty:
        return Faulty(self._plan.call("line", self._store.line)(), self._plan)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._plan.call(name, found) if callable(found) else found


class Plan:
    def __init__(self, operation: str, on: int, error: Exception, after: bool) -> None:
        self.operation = operation
        self.left = on
        self.error = error
        self.after = after
        self.happened = threading.Event()
        self._lock = threading.Lock()

    def call(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        if name != self.operation:
            return operation

        def failing(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.left -= 1
                now = self.left == 0
            if now and self.after:
                operation(*args, **kwargs)
            if now:
                self.happened.set()
                raise self.error
            return operation(*args, **kwargs)

        return failing


@pytest.mark.parametrize(("store_url", "operation", "error", "after"), CASES, indirect=["store_url"])
def test_a_call_that_fails_once_loses_nothing(
    app: Rota, ledger: Path, operation: str, error: type[Exception], after: bool
) -> None:
    plan = Plan(operation, 1 if operation in ONCE else 2, error("for once"), after)

    @app.task
    def quick() -> None:
        with noted(ledger):
            pass

    jobs = [*quick.enqueue_many([()] * 30), quick.using(delay=0.1).enqueue()]
    true = app.store
    app.holding._store = Faulty(true, plan)  # type: ignore[assignment]
    try:
        with working(app, concurrency=2, lease=1.5, poll=0.2):
            for job in jobs[:10]:
                job.wait(PATIENCE)
            jobs += quick.enqueue_many([()] * 10)
            for job in jobs:
                assert job.wait(PATIENCE).status is State.SUCCEEDED
            assert operation in ("leave", "reconcile") or plan.happened.wait(PATIENCE)
    finally:
        app.holding._store = true
    done = account(app, [job.id for job in jobs], ledger)
    assert done.states == {State.SUCCEEDED: 41}
    assert done.repeated == {}
    assert operation in ("leave", "join") or app.workers() == []


def test_an_outcome_that_no_store_can_take_does_not_end_the_worker(app: Rota) -> None:
    """The store refuses one job's outcome for good; the others' are written."""

    @app.task(keep_result=True)
    def quick(number: int) -> int:
        return number

    class Picky(Faulty):
        def twin(self) -> Picky:
            return Picky(self._store.twin(), self._plan)

        def line(self) -> Picky:
            return Picky(self._store.line(), self._plan)  # type: ignore[arg-type]

        def post(self, worker: str, ends: Any, *rest: Any) -> Any:
            self._bad = any(getattr(end.outcome, "result", None) == "7" for end in ends)
            return None if self._bad else self._store.post(worker, ends, *rest)  # type: ignore[attr-defined]

        def answered(self) -> Any:
            if self._bad:
                raise RuntimeError("not these")
            return self._store.answered()  # type: ignore[attr-defined]

        def finish(self, worker: str, ends: Any, *rest: Any) -> Any:
            if any(getattr(end.outcome, "result", None) == "7" for end in ends):
                raise RuntimeError("not this one")
            return self._store.finish(worker, ends, *rest)

    jobs = quick.enqueue_many([(number,) for number in range(20)])
    true = app.store
    app.holding._store = Picky(true, Plan("none", 0, RuntimeError(), False))  # type: ignore[assignment]
    try:
        with working(app, concurrency=4):
            for job in jobs:
                job.wait(PATIENCE)
    finally:
        app.holding._store = true
    assert [job.refresh().status for job in jobs] == [State.SUCCEEDED] * 20
    assert jobs[8].result() == 8
    assert jobs[7].row.result is None


class Away(Faulty):
    """The store, which cannot be reached as long as `gone` is set."""

    def __init__(self, store: Store, gone: threading.Event) -> None:
        self._store = store
        self._gone = gone

    def twin(self) -> Away:
        return Away(self._store.twin(), self._gone)

    def line(self) -> Away:
        if self._gone.is_set():
            raise StoreUnavailable("gone")
        return Away(self._store.line(), self._gone)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name == "close":
            return found

        def reach(*args: Any, **kwargs: Any) -> Any:
            if self._gone.is_set():
                raise StoreUnavailable("gone")
            return found(*args, **kwargs)

        return reach


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_stop_while_the_store_is_away_waits_for_it_as_long_as_for_a_body(
    app: Rota, comes_back: bool, caplog: pytest.LogCaptureFixture
) -> None:
    gone, begun, go = threading.Event(), threading.Event(), threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        go.wait(PATIENCE)

    true = app.store
    app.holding._store = Away(true, gone)  # type: ignore[assignment]
    worker = Worker(app, shutdown_timeout=1.5)
    try:
        worker.start()
        job = slow.enqueue()
        assert begun.wait(PATIENCE)
        gone.set()
        go.set()
        before = time.monotonic()
        if comes_back:
            threading.Timer(0.5, gone.clear).start()
        worker.stop()
        assert time.monotonic() - before < 8
    finally:
        app.holding._store = true
    assert len(caplog.records) < 40, caplog.text
    assert job.refresh().status is (State.SUCCEEDED if comes_back else State.RUNNING)
