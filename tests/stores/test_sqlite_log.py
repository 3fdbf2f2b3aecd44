"""The write-ahead log can always be emptied: nothing of Rota's stays in a transaction, and what does is told."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import Rota
from rota.clock import SECOND
from rota.ids import new_id
from rota.model import (
    Ask,
    Edit,
    Ended,
    Filter,
    Move,
    NewJob,
    Report,
    RoomRow,
    Seal,
    State,
    Succeeded,
    TaskRow,
    WorkerRow,
)
from rota.stores import open_store
from rota.stores.base import Store
from rota.testing.limits import Declares
from working import eventually, working

PATIENCE = 30.0

LOOKS: dict[str, Callable[[Store, str], object]] = {
    "get": lambda store, id: store.get([id]),
    "attempts": lambda store, id: store.attempts(id),
    "find": lambda store, id: store.find(Filter(), 1),
    "find by key": lambda store, id: store.find(Filter(key="k"), 1),
    "find failed": lambda store, id: store.find(Filter((State.FAILED,)), 1),
    "counts": lambda store, id: store.counts(),
    "queues": lambda store, id: store.queues(),
    "workers": lambda store, id: store.workers(),
    "declared": lambda store, id: store.declared("t"),
    "vitals": lambda store, id: store.vitals(),
    "prunable": lambda store, id: store.prunable({State.SUCCEEDED: 0}),
    "prune": lambda store, id: store.prune({State.FAILED: 0}, 1),
    "promote": lambda store, id: store.promote(1),
    "lost": lambda store, id: store.lost(1),
    "claim": lambda store, id: store.claim(Ask("w", ("q",), 1)),
    "finish": lambda store, id: store.finish("w", [Ended(id, 1, Succeeded())], Ask("w", ("q",), 1)),
    "change": lambda store, id: store.change(Move.RETRY, [id]),
    "insert": lambda store, id: store.insert([NewJob(new_id(), "t", "q", "[[],{}]")]),
    "edit": lambda store, id: store.edit(Edit(priority=1), [id]),
    "admit": lambda store, id: store.admit(Ask("w", ("q",), 1, 1), Declares({"t": {"concurrency": 1}})),
    "finish after": lambda store, id: store.finish_after("w", [Ended(id, 1, Succeeded())]),
    "set limit": lambda store, id: store.set_limit("concurrency of t", None),
    "overrides": lambda store, id: store.overrides(),
    "rooms": lambda store, id: store.rooms(),
    "pause": lambda store, id: store.pause("other"),
    "resume": lambda store, id: store.resume("other"),
    "paused": lambda store, id: store.paused(),
    "pauses": lambda store, id: store.pauses(),
    "unfinished": lambda store, id: store.unfinished(),
    "flow": lambda store, id: store.flow(SECOND),
    "latest": lambda store, id: store.latest(State.FAILED, 1),
    "beat": lambda store, id: store.beat("w", [Report(id, 1, "{}")]),
    "rest": lambda store, id: store.rest("w", True),
    "reconcile": lambda store, id: store.reconcile("w", []),
    "declare": lambda store, id: store.declare([TaskRow("t", "q", 0, 5)]),
    "join": lambda store, id: store.join(WorkerRow("v", "v", "h", 1, None, [], 1, SECOND, "1")),
    "expire": lambda store, id: store.expire("v"),
    "leave": lambda store, id: store.leave("v"),
    "pending": lambda store, id: store.pending(),
    "there": lambda store, id: store.there(),
    "schema": lambda store, id: store.schema(),
    "migrate": lambda store, id: store.migrate(),
    "a line": lambda store, id: store.line().close(),
    "dump": lambda store, id: store.dump(None, 1),
    "dump rooms": lambda store, id: store.dump_rooms(None, 1),
    "declarations": lambda store, id: store.declarations(),
    "sealed": lambda store, id: store.sealed(),
    "load": lambda store, id: _sealed(store, lambda: store.load("s", store.dump(None, 1))),
    "load rooms": lambda store, id: _sealed(store, lambda: store.load_rooms("s", [RoomRow("l", "", 1)])),
}
BESIDE = {"open", "close", "twin", "line", "dialect", "url", "seal", "unseal"}
"""What begins and ends the use of a file, and does nothing else with it, and what others here do as well."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{path}")
    store.join(WorkerRow("w", "w", "h", 1, None, [], 1, 60 * SECOND, "1"))
    yield store
    store.close()


def _sealed(store: Store, do: Callable[[], object]) -> None:
    store.seal(Seal("s", "here", "there", 0, leaving=False))
    do()
    assert store.unseal("s")


def test_after_each_operation_the_log_can_be_emptied(path: Path, store: Store) -> None:
    jobs = store.insert(NewJob(new_id(), "t", "q", "[[],{}]") for _ in range(1_000))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for name, look in LOOKS.items():
            look(store, jobs[-1].id)
            store.insert([NewJob(new_id(), "t", "q", "[[],{}]")])  # something that a reader from before would pin
            assert other.execute("pragma wal_checkpoint(truncate)").fetchone() == (0, 0, 0), name


def test_no_operation_is_left_out() -> None:
    promised = {name for name in {**vars(Store), **Store.__annotations__} if not name.startswith("_")}
    assert promised - {name.replace(" ", "_") for name in LOOKS} == BESIDE


def test_a_worker_that_has_nothing_to_do_lets_the_log_be_emptied(path: Path) -> None:
    with Rota(f"sqlite:///{path}") as app, closing(sqlite3.connect(path, isolation_level=None)) as other:
        app.task(name="t")(lambda: None)
        with working(app):
            for _ in range(3):
                app.send("t").wait(PATIENCE)
                app.jobs()
                eventually(lambda: other.execute("pragma wal_checkpoint(truncate)").fetchone() == (0, 0, 0))


def test_the_size_of_the_log_is_told_and_warned_of_while_someone_pins_it(path: Path, store: Store) -> None:
    log = Path(f"{path}-wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from rota_jobs").fetchone()
        store.insert(NewJob(new_id(), "t", "q", "x" * 1000) for _ in range(1_000))
        assert store.vitals().facts["wal_bytes"] == log.stat().st_size > 1_000_000
        assert store.vitals().warnings == []
        os.truncate(log, 300 << 20)  # as if it had grown to that: what follows its last transaction means nothing to SQLite
        [warning] = store.vitals().warnings
        assert f"{log} has 300 MB" in warning
    store.insert([NewJob(new_id(), "t", "q", "[[],{}]")])
    assert [count.jobs for count in store.counts()] == [1_001]
