"""What is SQLite's alone: the file, its locks, its log, and the processes that share it."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import Rota
from rota.clock import SECOND
from rota.errors import ConfigError, SchemaMismatch, StoreError, StoreUnavailable
from rota.ids import new_id
from rota.model import Ask, Ended, NewJob, State, Succeeded, WorkerRow
from rota.stores import mounts, open_store, queries
from rota.stores.base import Store
from rota.stores.sql import SqlStore
from rota.stores.sqlite import SqliteDatabase
from rota.stores.sqlite_engine import FileEngine
from rota.testing.contract.lines import rung
from working import eventually, working

spawn = multiprocessing.get_context("spawn")


def job(**fields: object) -> NewJob:
    return NewJob(new_id(), "t", "q", "[]", **fields)  # type: ignore[arg-type]


def worker(store: Store) -> str:
    row = WorkerRow(new_id(), "w", "h", 1, None, [], 1, 60 * SECOND, "1")
    store.join(row)
    return row.id


def engine_of(store: Store) -> FileEngine:
    assert isinstance(store, SqlStore)
    assert isinstance(store._database, SqliteDatabase)
    assert isinstance(store._database._engine, FileEngine)
    return store._database._engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url)
    store.open()
    yield store
    store.close()


# -- the file -----------------------------------------------------------------------------------


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no directory .*nowhere"):
        open_store(f"sqlite:///{tmp_path}/nowhere/jobs.db")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_named(path: Path, url: str) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    store = open_store(url)
    with pytest.raises(StoreError, match=r"jobs\.db is damaged or no SQLite file"):
        store.open()
    assert path.read_bytes().startswith(b"not a database")


def test_tables_of_a_newer_rota_are_refused(path: Path, url: str, store: Store) -> None:
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("insert into rota_migrations values (999, 'later', 1, 999)")
    connection.commit()
    connection.close()
    with pytest.raises(SchemaMismatch, match="version 999"):
        open_store(url).open()


@pytest.mark.parametrize(
    ("mount", "kind"),
    [("/mnt/share nfs4 rw", "nfs4"), ("/mnt fuse.sshfs rw", "fuse.sshfs"), ("/mnt ext4 rw", "ext4"), ("/ ext4 rw", "ext4")],
)
def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path, mount: str, kind: str) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"rootfs / rootfs rw 0 0\nhost {mount} 0 0\nother /mnt/shared xfs rw 0 0\n")
    assert mounts.file_system(Path("/mnt/share/jobs.db"), table) == kind


@pytest.mark.parametrize("name", ["my share", "Übung", "back\\slash", "\udcff"])
def test_a_mount_point_of_any_name_is_understood(tmp_path: Path, name: str) -> None:
    table = tmp_path / "mounts"
    escaped = name.replace("\\", "\\134").replace(" ", "\\040")
    table.write_bytes(os.fsencode(f"rootfs / ext4 rw 0 0\nhost /{escaped} cifs rw 0 0\n"))
    assert mounts.file_system(Path(f"/{name}/jobs.db"), table) == "cifs"


def test_a_file_on_a_network_file_system_is_warned_of_or_refused(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mounts, "file_system", lambda path: "nfs4")
    with pytest.raises(ConfigError, match=r"jobs\.db lies on a network or shared file system \(nfs4\).*move it"):
        open_store(url, network="refuse")
    with Rota(url) as app:
        [warned] = [problem.text for problem in app.check()]
        assert "(nfs4)" in warned
        with working(app):
            eventually(lambda: warned in caplog.text)


def test_it_works_without_a_write_ahead_log(path: Path, url: str) -> None:
    store = open_store(url, journal="delete")
    [added] = store.insert([job()])
    assert [claimed.id for claimed in store.claim(Ask(worker(store), ("q",), 1))] == [added.id]
    assert store.vitals().facts["journal"] == "delete"
    assert not Path(f"{path}-wal").exists()
    store.close()


# -- locks --------------------------------------------------------------------------------------


def _create(url: str, barrier: threading.Barrier) -> None:
    barrier.wait()
    store = open_store(url)
    store.insert([job()])
    store.close()


def test_ten_processes_may_make_the_file_at_once(url: str, store: Store) -> None:
    store.close()
    path = Path(url.removeprefix("sqlite:///"))
    for file in path.parent.glob("jobs.db*"):
        file.unlink()
    barrier = spawn.Barrier(10)
    makers = [spawn.Process(target=_create, args=(url, barrier)) for _ in range(10)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [maker.exitcode for maker in makers] == [0] * 10
    assert [count.jobs for count in store.counts()] == [10]


def test_a_lock_held_for_too_long_is_reported(path: Path, url: str, store: Store) -> None:
    hurried = open_store(url, patience=0.05)
    hurried.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreUnavailable, match=r"locked by another connection for 0\.05 s: .*enqueue over its connection"):
        hurried.insert([job()])
    assert hurried.claim(Ask("w", ("q",), 1)) == []  # looking takes no lock
    other.close()
    hurried.insert([job()])
    hurried.close()


def test_an_idle_claim_and_promotion_write_nothing(store: Store) -> None:
    me = worker(store)
    line = store.line()
    rung(line, 0)
    assert store.claim(Ask(me, ("q",), 10)) == []
    assert store.promote(10).count == 0
    assert store.lost(10).lost == []
    store.rest(me, True)
    assert not rung(line, 0)
    line.close()


# -- a full disk --------------------------------------------------------------------------------


def test_a_full_disk_refuses_clearly_and_loses_nothing(store: Store) -> None:
    me = worker(store)
    store.insert([job() for _ in range(10)])
    claimed = store.claim(Ask(me, ("q",), 10))
    writer = engine_of(store)._writer
    assert writer is not None
    [pages] = writer.execute("pragma page_count").fetchone()
    writer.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(StoreUnavailable, match=r"the disk is full.*jobs\.db"):
        store.insert([job(), NewJob(new_id(), "t", "q", "[" + "1," * 500_000 + "1]")])
    assert [count.state for count in store.counts()] == [State.RUNNING]
    writer.execute("pragma max_page_count = 1000000")
    ends = [Ended(each.id, each.claim, Succeeded()) for each in claimed]
    assert len(store.finish(me, ends).counted) == 10


def test_the_log_shrinks_again_after_a_reader_that_held_it(path: Path, store: Store) -> None:
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from rota_jobs").fetchone()
    store.insert(NewJob(new_id(), "t", "q", "x" * 1000) for _ in range(120_000))
    log = Path(f"{path}-wal")
    assert log.stat().st_size > 100 << 20
    reader.close()
    for _ in range(3):
        store.insert([job()])
    assert log.stat().st_size <= 64 << 20


def test_heavy_jobs_are_claimed_beside_light_ones(store: Store) -> None:
    me = worker(store)
    sizes = [10, 70_000, 65_530, 2_000_000, 5]
    store.insert([NewJob(new_id(), "t", "q", '"' + "é" * size + '"') for size in sizes])
    assert [len(claimed.args) - 2 for claimed in store.claim(Ask(me, ("q",), 10))] == sizes


# -- forks --------------------------------------------------------------------------------------


def test_a_forked_child_opens_anew(url: str) -> None:
    code = f"""if True:
        import os
        from rota.ids import new_id
        from rota.model import NewJob
        from rota.stores import open_store
        store = open_store({url!r})
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        child = os.fork()
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.insert([NewJob(new_id(), "t", "q", "[]")])
        print([count.jobs for count in store.counts()])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[4]", done.stderr


# -- twins --------------------------------------------------------------------------------------


def test_a_twin_outlives_its_store(url: str) -> None:
    store = open_store(url)
    twin = store.twin()
    twin.open()
    store.close()
    twin.insert([job()])
    twin.close()
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if os.path.realpath(fd).startswith(url.removeprefix("sqlite:///"))]


def test_the_printed_schema_makes_tables_that_need_nothing_more(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        for _name, text in store.schema():
            connection.executescript(text)
    assert store.migrate() == []
    store.close()


def test_a_migration_tells_what_it_ran_also_where_opening_ran_it(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    assert store.migrate() == [name for _, name, _ in queries.migrations("sqlite")]
    assert store.migrate() == []
    store.close()


def test_asking_whether_the_file_is_there_makes_none(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    assert not store.there()
    assert not path.exists()
    store.open()
    assert store.there()
    store.close()
