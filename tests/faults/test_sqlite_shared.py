"""One SQLite file, many processes, other writers, and a disk that fills up."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kit import PATIENCE, Fleet

from accounts import account, starts
from rota import Rota
from rota.errors import StoreUnavailable
from rota.model import State
from working import eventually

MAY_MOUNT = os.geteuid() == 0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'jobs.db'}"


@pytest.fixture
def fleet(tmp_path: Path, url: str, ledger: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url, ledger)
    try:
        yield fleet
    finally:
        fleet.close()


def test_many_processes_and_a_slow_writer_share_a_file_without_an_error(app: Rota, fleet: Fleet, ledger: Path) -> None:
    app.store.open()
    writer = fleet.program("fault_writer", "2.0")
    enqueuers = [fleet.program("fault_enqueuer", "5.0") for _ in range(4)]
    for _ in range(8):
        fleet.worker(lease=30)
    for enqueuer in enqueuers:
        assert enqueuer.wait(60) == 0, enqueuer.log
    told = [json.loads(enqueuer.log.splitlines()[-1]) for enqueuer in enqueuers]
    ids = [job for each in told for job in each["ids"]]
    assert writer.alive, writer.log
    writer.kill()
    eventually(lambda: app.stats().states[State.SUCCEEDED] >= len(ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    assert len(ids) > 40
    assert max(each["longest"] for each in told) < 15
    assert "Traceback" not in fleet.logs()
    assert "the store is away" not in fleet.logs()


def test_ten_processes_may_make_a_new_file_at_once(app: Rota, fleet: Fleet) -> None:
    together = time.time() + 3.0
    openers = [fleet.program("fault_enqueuer", "0", str(together)) for _ in range(10)]
    for opener in openers:
        assert opener.wait(60) == 0, opener.log
    assert app.stats().states[State.QUEUED] == 10


@pytest.mark.parametrize("lock", ["immediate", "exclusive", "deferred"])
def test_who_makes_the_tables_beside_anothers_waits_for_what_holds_the_file(folder: Path, url: str, lock: str) -> None:
    """The first connection changes the journal's mode, for which SQLite itself does not wait."""
    with closing(sqlite3.connect(folder / "jobs.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("create table own (x integer)")
        other.execute(f"begin {lock}")
        other.execute("select * from own" if lock == "deferred" else "insert into own values (1)").fetchall()
        ending = threading.Timer(0.3, lambda: other.execute("commit"))
        ending.start()
        with Rota(url) as app:
            assert app.send("quick").refresh().status is State.QUEUED
            assert app.stats().facts["journal"] == "wal"
        ending.join()


class TestFullDisk:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[Path]:
        """A file system of 20 MB, where there is the right to mount one."""
        if not MAY_MOUNT:
            yield tmp_path
            return
        place = tmp_path / "small"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)

    def test_outcomes_wait_for_room_and_few_lines_are_said(
        self, app: Rota, fleet: Fleet, ledger: Path, folder: Path, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        jobs = app.named("until").enqueue_many([(str(go),)] * 4)
        waiting = app.named("quick").enqueue_many([()] * 50)
        worker = fleet.worker(lease=60)
        eventually(lambda: starts(ledger) == 4)

        with filled(folder) if MAY_MOUNT else limited([0, worker.pid]):
            said = worker.log.count("\n")
            with pytest.raises(StoreUnavailable, match="disk is full"):
                for _ in range(1_000):
                    app.named("until").enqueue("x" * 10_000)
            go.touch()
            eventually(lambda: "disk is full" in worker.log)
            threading.Event().wait(4.0)
            assert worker.alive
            assert worker.log.count("\n") - said < 50, worker.log
            assert "Traceback" not in worker.log
        eventually(lambda: all(job.refresh().status is State.SUCCEEDED for job in [*jobs, *waiting]), within=PATIENCE)
        assert account(app, [job.id for job in [*jobs, *waiting]], ledger).repeated == {}


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """A file system without room, until the end of the block."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    yield
    ballast.unlink()


@contextmanager
def limited(processes: Sequence[int]) -> Iterator[None]:
    """Processes whose files may not grow, until the end of the block: what is nearest to a full disk without special rights."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    for process in processes:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (1 << 16, former[1]))
    yield
    for process in processes:
        resource.prlimit(process, resource.RLIMIT_FSIZE, former)
