"""All that one store has is moved to another: whole, once, whatever comes between, and never behind anybody's back."""

from __future__ import annotations

import asyncio
import random
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired, run
from threading import Event
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from msgspec.structs import replace

from bouncer import bouncing
from fresh import fresh_database, fresh_url
from moves import contents, digest, fill, opened, shop
from newer import END, migrated
from rota import ConfigError, FailedAttempt, Job, Rota, SchemaMismatch, State, StoreError
from rota.ids import new_id
from rota.model import Filter, NewJob, Seal, WorkerRow
from rota.moving import Moved, Stage, left, look, move, reopen
from rota.moving import sides as moving_sides
from rota.worker import Worker
from servers import PostgresServer

PAIRS = (("sqlite", "postgres"), ("postgres", "redis"), ("redis", "sqlite"))
FEW = 7
"""Jobs of a page, where there are to be many."""


@pytest.fixture(params=PAIRS, ids="-".join)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where jobs are, and where they are to go: two empty places that several processes can reach."""
    with ExitStack() as stack:
        found = []
        for name, kind in zip(("old", "new"), request.param, strict=True):
            (tmp_path / name).mkdir()
            found.append(stack.enter_context(fresh_url(kind, request, tmp_path / name)))
        yield found[0], found[1]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving_sides, "PAGE", FEW)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The URLs of two files that are not there."""
    return f"sqlite:///{tmp_path / 'old.db'}", f"sqlite:///{tmp_path / 'new.db'}"


def some(url: str, many: int = 40) -> list[str]:
    """The ids of so many new jobs."""
    with Rota(url) as app:
        return [job.id for job in app.named("shop.some").enqueue_many([(n,) for n in range(many)])]


def ids(url: str) -> list[str]:
    with opened(url) as store:
        return [row.id for row in store.find(Filter(), 1_000_000)][::-1]


# -- what arrives -------------------------------------------------------------------------------


def test_everything_arrives_and_the_source_keeps_it(urls: tuple[str, str], small_pages: None) -> None:
    source, target = urls
    fill(source)
    before = contents(source)
    moved = move(source, target)
    assert moved.differences == []
    assert contents(target) == before == contents(source)
    assert moved.total == moved.loaded == len(ids(source))
    assert {state for state, number in moved.states.items() if number} == set(State)
    with opened(target) as store:
        assert store.sealed() is None
        assert [worker.name for worker in store.workers()] == ["lost one"]


def test_a_digest_is_the_same_there_and_back(request: pytest.FixtureRequest, tmp_path: Path, files: tuple[str, str]) -> None:
    source, last = files
    fill(source)
    with fresh_url("postgres", request, tmp_path) as second, fresh_url("redis", request, tmp_path) as third:
        moves = [move(source, second), move(second, third), move(third, last)]
    assert {moved.digest for moved in moves} == {digest(source), digest(last)}
    assert moves[0].states == moves[1].states == moves[2].states
    assert contents(source) == contents(last)


def test_a_digest_tells_any_change(files: tuple[str, str]) -> None:
    source, _ = files
    some(source, 3)
    told = {digest(source)}
    for statement in (
        "update rota_jobs set priority = 1 where rowid = 1",
        "update rota_jobs set priority = 0, args = '{}' where rowid = 1",
        "insert into rota_attempts select id, 1, 1, null, 1, 'again', 1, null, 'm', null from rota_jobs where rowid = 2",
        "update rota_attempts set error_trace = 't'",
        "update rota_jobs set looks = 1 where rowid = 3",
        "delete from rota_jobs where rowid = 3",
    ):
        with closing(sqlite3.connect(source.removeprefix("sqlite:///"))) as there, there:
            there.execute(statement)
        told.add(digest(source))
    assert len(told) == 7


def test_jobs_go_on_where_they_arrived(urls: tuple[str, str]) -> None:
    source, target = urls
    fill(source, 3)
    move(source, target)
    heard: list[tuple[str, str, bool]] = []
    with shop(target) as app:

        @app.on_failure
        def note(job: Job[object], failure: FailedAttempt) -> None:
            heard.append((job.task, failure.reason, failure.final))

        app.resume("mail")
        ran = [str(event) for event in app.drain()]
        assert ran.count("ran shop.receipt") == 3
        assert ran.count("ran shop.export") == 1
        assert "ran shop.call" not in ran  # its rate has room in an hour, wherever the last one started
        [lost] = app.jobs(task="shop.export", status="failed")
        assert "worker lost: the lease of lost one" in str(lost.row.reason)
        assert heard == [("shop.export", str(lost.row.reason), True)]
        assert app.store.workers() == []


def test_pauses_and_keys_hold_where_they_arrived(urls: tuple[str, str]) -> None:
    source, target = urls
    fill(source, 3)
    move(source, target)
    with shop(target) as app:
        [there] = app.jobs(key="k0")
        assert app.tasks["shop.receipt"].using(key="k0").enqueue(0).id == there.id
        assert {queue.name for queue in app.queues() if queue.paused} == {"mail", "bills"}
        assert not [event for event in app.drain() if "receipt" in str(event)]


def test_an_empty_store_is_moved_too(urls: tuple[str, str]) -> None:
    source, target = urls
    with shop(source) as app:
        app.declare()
    moved = move(source, target)
    assert (moved.total, moved.loaded, moved.differences, moved.digest) == (0, 0, [], "0" * 32)
    with opened(target) as store:
        assert "shop.charge" in [task.name for task in store.declarations()]


def test_what_the_target_declared_before_stays(files: tuple[str, str]) -> None:
    source, target = files
    some(source)
    with Rota(target) as app:
        app.task(name="shop.new")(lambda: None)
        app.declare()
        app.pause("slow")
    assert move(source, target).differences == []
    with opened(target) as store:
        assert [task.name for task in store.declarations()] == ["shop.new"]
        assert [pause.queue for pause in store.pauses()] == ["slow"]


def test_memory_stays_bounded(urls: tuple[str, str], tmp_path: Path) -> None:
    source, target = urls
    some(source, 1)
    little = _peak(source, f"sqlite:///{tmp_path / 'little.db'}")
    reopen(source)
    heavy = '{"a":"' + "ü" * 1_000_000 + '"}'
    with opened(source) as store:
        for _ in range(75):
            store.insert([NewJob(new_id(), "shop.heavy", "default", heavy) for _ in range(2)])
    assert _peak(source, target) - little < 150  # of 300 in each of the two


def _peak(source: str, target: str) -> float:
    """The megabytes that a process takes which moves."""
    program = (
        "import resource, sys; from rota.moving import move; assert not move(*sys.argv[1:]).differences; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    ended = run([sys.executable, "-c", program, source, target], stdout=PIPE, text=True, timeout=100, check=True)
    return float(ended.stdout)


# -- nothing behind anybody's back --------------------------------------------------------------


def test_whoever_enqueues_to_the_old_store_is_told_where_the_jobs_went(urls: tuple[str, str]) -> None:
    source, target = urls
    [id, *_] = some(source)
    with Rota(source) as app:
        task = app.named("shop.some")
        app.get(id)  # opened before
        moved = move(source, target)
        for attempt in (
            lambda: task.enqueue(1),
            lambda: task.enqueue_many([(n,) for n in range(3_000)]),
            lambda: task.using(key="k").enqueue(1),
            lambda: app.cancel(id),
            lambda: app.edit(id, priority=1),
            lambda: app.pause("default"),
            app.drain,
        ):
            with pytest.raises(StoreError) as refused:
                attempt()
            assert f"the jobs of this store were moved to {moved.target}" in str(refused.value)
        assert app.get(id).status is State.QUEUED
        assert [problem.text for problem in app.check() if moved.target in problem.text]
    assert ids(source) == ids(target)


async def _aenqueue(url: str) -> None:
    async with Rota(url) as app:
        await app.asend("shop.some", 1)


def test_coroutines_are_told_too(files: tuple[str, str]) -> None:
    source, target = files
    some(source)
    move(source, target)
    with pytest.raises(StoreError, match="were moved to"):
        asyncio.run(_aenqueue(source))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_transaction_of_ones_own_is_told_too(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with fresh_database(kind, request, tmp_path) as source:
        some(source)
        move(source, f"sqlite:///{tmp_path / 'new.db'}")
        connection = sqlite3.connect(source.removeprefix("sqlite:///")) if kind == "sqlite" else psycopg.connect(source)
        with closing(connection), Rota(source) as app:
            with pytest.raises(StoreError, match="were moved to sqlite:///"):
                app.named("shop.some").using(connection=connection).enqueue(1)
            connection.rollback()


def test_a_worker_that_starts_on_the_old_store_ends_and_says_why(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    moved = move(source, target)
    with shop(source) as app, pytest.raises(StoreError) as refused:
        Worker(app).run()
    assert moved.target in str(refused.value)


def test_neither_store_takes_jobs_while_they_are_on_their_way(urls: tuple[str, str], small_pages: None) -> None:
    source, target = urls
    some(source)
    told: list[str] = []

    def try_to_enqueue(stage: Stage) -> None:
        for url in urls:
            with Rota(url) as app, pytest.raises(StoreError) as refused:
                app.send("shop.some", 1)
            told.append(str(refused.value))

    moved = move(source, target, try_to_enqueue)
    assert moved.differences == []
    assert all("being moved" in each for each in told)
    assert {"being moved into this store" in each for each in told} == {True, False}
    assert len(ids(target)) == 40


def test_every_job_that_was_taken_in_while_a_move_began_is_moved(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    going = Event()

    def enqueue() -> list[str]:
        accepted: list[str] = []
        with Rota(source) as app:
            while True:
                try:
                    accepted.append(app.send("shop.some", 1).id)
                except StoreError as error:
                    assert "moved" in str(error)  # noqa: PT017  # which ends this
                    return accepted
                if len(accepted) == 20:
                    going.set()

    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(enqueue) for _ in range(3)]
        going.wait(60)
        assert move(source, target).differences == []
        accepted = [id for other in others for id in other.result()]
    assert set(accepted) <= set(ids(target))
    assert len(ids(target)) == 40 + len(accepted)


def test_a_worker_that_was_frozen_cannot_finish_its_job_in_the_old_store(urls: tuple[str, str]) -> None:
    source, target = urls
    fill(source, 1)
    move(source, target)
    with opened(source) as store:
        [running] = store.find(Filter((State.RUNNING,)), 10)
        assert running.worker is not None
        with pytest.raises(StoreError, match="were moved to"):
            store.beat(running.worker, [])
        with pytest.raises(StoreError, match="were moved to"):
            store.leave(running.worker)


def test_a_transaction_that_is_open_is_waited_for_or_named(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with fresh_database("postgres", request, tmp_path) as source:
        some(source)
        with closing(psycopg.connect(source)) as connection, Rota(source) as app:
            app.named("shop.some").using(connection=connection).enqueue(1)
            with pytest.raises(StoreError, match=r"transactions that write to rota_jobs .*process \d+ has it"):
                move(source, f"sqlite:///{tmp_path / 'new.db'}")
            connection.commit()
            assert app.store.sealed() is None
            assert move(source, f"sqlite:///{tmp_path / 'new.db'}").total == 41


# -- what is refused ----------------------------------------------------------------------------


def refused(source: str, target: str, words: str) -> str:
    """What is said of a move that is refused; the source is as open as it was, and a look is refused likewise."""
    with opened(source) as store:
        before = store.sealed()
    with pytest.raises((StoreError, ConfigError), match=words):
        look(source, target)
    with pytest.raises((StoreError, ConfigError), match=words) as said:
        move(source, target)
    with opened(source) as store:
        assert store.sealed() == before
    return str(said.value)


def _alive(url: str) -> str:
    worker = WorkerRow(new_id(), "mailer", "web-1", 4711, None, [], 1, 60_000_000, "1")
    with opened(url) as store:
        store.join(worker)
    return worker.id


def test_workers_that_run_on_the_source_are_in_the_way(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    worker = _alive(source)
    said = refused(source, target, r"workers run on .*: mailer \(process 4711 on web-1\)\. Stop them first")
    assert "until its lease is over, in " in said
    with opened(source) as store:
        store.leave(worker)
    assert move(source, target).differences == []


def test_workers_that_run_on_the_target_are_in_the_way(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    _alive(target)
    assert "workers run on" in refused(source, target, "mailer")


def test_a_target_that_has_jobs_is_refused(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    [own] = some(target, 1)
    refused(source, target, r"has jobs of its own \(1\): move to a store that has none")
    assert ids(target) == [own]


@pytest.mark.parametrize("how", ["the same", "a relative path", "a symbolic link", "a hard link"])
def test_a_file_is_not_moved_to_itself(
    how: str, files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = files
    some(source)
    monkeypatch.chdir(tmp_path)
    match how:
        case "the same":
            target = source
        case "a relative path":
            target = "sqlite:///old.db"
        case "a symbolic link":
            (tmp_path / "new.db").symlink_to("old.db")
        case "a hard link":
            (tmp_path / "new.db").hardlink_to("old.db")
    refused(source, target, "source and target are both")


def test_a_database_is_not_moved_to_itself_under_another_name(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with fresh_database("postgres", request, tmp_path) as source:
        some(source)
        refused(source, source, "source and target are both")
        also = f"{source}{'&' if '?' in source else '?'}application_name=other"
        with pytest.raises((ConfigError, StoreError), match=r"the same store|source and target are both|has jobs of its own"):
            move(source, also)
        some(source, 1)


def test_an_empty_database_is_not_moved_to_itself_under_another_name(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with fresh_database("postgres", request, tmp_path) as source:
        with opened(source):
            pass
        also = f"{source}{'&' if '?' in source else '?'}application_name=other"
        with pytest.raises(ConfigError, match="the same store"):
            move(source, also)
        some(source, 1)


def test_a_source_that_is_not_there_is_not_made(files: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is nothing of Rota's in sqlite:///"):
        move(*files)
    assert list(tmp_path.iterdir()) == []


def test_memory_is_no_place_to_move_from_or_to(files: tuple[str, str]) -> None:
    source, _ = files
    some(source)
    refused(source, "memory://", "in the memory of one process")
    with pytest.raises(ConfigError, match="in the memory of one process"):
        move("memory://", source)


@pytest.mark.parametrize("which", [0, 1])
def test_tables_of_a_newer_rota_are_refused(which: int, files: tuple[str, str]) -> None:
    some(files[0])
    migrated(files[which], END)
    with pytest.raises(SchemaMismatch, match="install a newer Rota"):
        move(*files)


def test_a_store_that_is_part_of_another_move_is_refused(files: tuple[str, str], tmp_path: Path) -> None:
    source, target = files
    third = f"sqlite:///{tmp_path / 'third.db'}"
    some(source)
    some(third)
    _interrupted(source, target, after=1)
    refused(third, target, r"nothing else can be moved to .*new\.db: the jobs of .*old\.db are being moved into this store")
    refused(source, f"sqlite:///{tmp_path / 'fourth.db'}", r"being moved to .*new\.db .*give it up with `rota move --from")
    refused(target, f"sqlite:///{tmp_path / 'fourth.db'}", "nothing can be moved from .* yet")
    refused(third, source, "nothing else can be moved to")
    assert move(source, target).differences == []
    refused(source, f"sqlite:///{tmp_path / 'fourth.db'}", r"were moved to .*new\.db")


@pytest.mark.parametrize("leaving", [True, False])
def test_a_role_that_does_not_own_the_tables_may_not_seal_them(
    leaving: bool, files: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with fresh_database("postgres", request, tmp_path) as url, psycopg.connect(url, autocommit=True) as owner:
        if leaving:
            some(url)
        else:
            some(files[0])
            with opened(url):
                pass
        owner.execute("create role mover login")
        try:
            owner.execute("grant select, insert, update, delete on all tables in schema public to mover")
            owner.execute("grant usage on schema public to mover")
            theirs = url.replace("postgres@", "mover@")
            assert theirs != url
            with pytest.raises(StoreError, match=r"may not seal the tables .*run `rota move` as the user who owns them"):
                move(*((theirs, files[1]) if leaving else (files[0], theirs)))
            for each in (url, files[0]):
                assert len(some(each, 1)) == 1  # neither is sealed
        finally:
            owner.execute("drop owned by mover cascade")
            owner.execute("drop role mover")


def test_jobs_are_moved_through_a_pooler(files: tuple[str, str], postgres_server: PostgresServer, small_pages: None) -> None:
    fill(files[0], 5)
    with postgres_server.schema() as direct, bouncing(postgres_server.directory, default_pool_size=1) as bouncer:
        [schema] = parse_qs(urlsplit(direct).query)["schema"]
        pooled = bouncer.url(schema=schema)
        assert move(files[0], pooled).differences == []
        assert move(pooled, files[1]).differences == []
        with Rota(direct) as app, pytest.raises(StoreError, match=r"were moved to .*new\.db"):
            app.send("shop.some", 1)
    assert contents(files[1]) == contents(files[0])


def test_damaged_text_is_told_with_its_job_and_what_to_do(files: tuple[str, str]) -> None:
    source, target = files
    jobs = some(source)
    with closing(sqlite3.connect(source.removeprefix("sqlite:///"))) as there, there:
        there.execute("update rota_jobs set args = cast(x'ff' as text) where id = ?", [jobs[3]])
    with pytest.raises(StoreError, match=f"the job {jobs[3]} has damaged text"):
        move(source, target)
    assert reopen(source).done is False
    with Rota(source) as app:
        app.delete(jobs[3])
    Path(target.removeprefix("sqlite:///")).unlink()
    assert move(source, target).total == 39


# -- interrupted --------------------------------------------------------------------------------


class Stopped(BaseException):
    """What interrupts a move here."""


def _interrupted(source: str, target: str, after: int) -> bool:
    """Whether the move was interrupted, after so many steps, rather than done."""
    steps = iter(range(after))

    def stop(stage: Stage) -> None:
        if next(steps, None) is None:
            raise Stopped

    try:
        move(source, target, stop)
    except Stopped:
        return True
    return False


def test_a_move_goes_on_from_wherever_it_was_interrupted(urls: tuple[str, str], small_pages: None) -> None:
    source, target = urls
    fill(source, 12)
    before = contents(source)
    after = 0
    while _interrupted(source, target, after):
        after += 3
    assert after > 20
    assert contents(target) == before


def test_what_is_there_is_not_written_again(urls: tuple[str, str], small_pages: None) -> None:
    source, target = urls
    some(source, 5 * FEW)
    assert _interrupted(source, target, after=2)
    assert len(ids(target)) == 3 * FEW
    moved = move(source, target)
    assert (moved.total, moved.loaded) == (5 * FEW, 2 * FEW)
    assert ids(target) == ids(source)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_move_that_is_killed_at_any_moment_ends_with_the_same(urls: tuple[str, str]) -> None:
    source, target = urls
    fill(source, 5)
    some(source, 6_000)
    before = contents(source)
    for seconds in (0.0, *(random.uniform(0.1, 1.5) for _ in range(15))):
        _killed_after(source, target, seconds)
    moved = move(source, target)
    assert moved.differences == []
    assert contents(target) == before
    assert ids(target) == ids(source)


def _killed_after(source: str, target: str, seconds: float) -> None:
    """Have a process move, and kill it so many seconds after its start, unless it is done."""
    command = [sys.executable, "-m", "rota", "move", "--from", source, "--to", target]
    with Popen(command, stdout=DEVNULL, stderr=DEVNULL) as process:
        try:
            process.wait(seconds)
        except TimeoutExpired:
            process.kill()


def test_a_move_that_was_killed_before_it_opened_the_target_opens_it(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    move(source, target)
    seal = left(source)
    with opened(target) as store:
        store.seal(replace(seal, leaving=False))
    moved = move(source, target)
    assert (moved.total, moved.loaded, moved.differences) == (40, 0, [])
    with opened(target) as store:
        assert store.sealed() is None


def test_a_move_that_was_killed_before_it_sealed_the_target_goes_on(urls: tuple[str, str]) -> None:
    source, target = urls
    some(source)
    with opened(source) as store:
        store.seal(Seal(new_id(), _place(source), _place(target), 1, leaving=True))
    assert move(source, target).loaded == 40


def _place(url: str) -> str:
    with opened(url) as store:
        return moving_sides.Side(store).place


def test_a_move_that_is_done_is_not_done_again(urls: tuple[str, str]) -> None:
    source, target = urls
    jobs = some(source)
    move(source, target)
    with Rota(target) as app:
        app.delete(jobs[0])
        app.cancel(jobs[1])
        new = app.send("shop.some", 1)
    moved = move(source, target)
    assert (moved.total, moved.loaded, moved.digest, moved.differences) == (40, 0, "", [])
    assert ids(target) == [*jobs[1:], new.id]


def test_two_that_move_at_once_move_each_job_once(urls: tuple[str, str], small_pages: None) -> None:
    source, target = urls
    fill(source, 5)
    before = contents(source)

    def try_to_move() -> bool:
        try:
            return move(source, target).differences == []
        except StoreError:
            return False

    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(try_to_move) for _ in range(3)]
        ended = [each.result() for each in done]
    if not any(ended):
        assert move(source, target).differences == []
    assert contents(target) == before


# -- compared -----------------------------------------------------------------------------------


def _meddling(target: str, *statements: str) -> Callable[[Stage], None]:
    """Has the target changed behind the seal once all has arrived."""
    meddled: list[Stage] = []

    def meddle(stage: Stage) -> None:
        if stage.jobs == stage.total and not meddled:
            meddled.append(stage)
            with closing(sqlite3.connect(target.removeprefix("sqlite:///"))) as there, there:
                there.execute("update rota_seal set lifted = true")
                for statement in statements:
                    there.execute(statement)
                there.execute("update rota_seal set lifted = false")

    return meddle


TOO_MANY = """
insert into rota_jobs (id, task, queue, args, priority, due, state, max_attempts, created_at)
values ('ffffffff-0000-7000-8000-000000000000', 't', 'q', '{}', 0, 0, 'queued', 5, 0)
"""


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("delete from rota_jobs where rowid = 3", r"the target lacks the job \S+$"),
        ("update rota_jobs set priority = 7, due = 1 where rowid = 3", r"the job \S+ differs in priority, due$"),
        ("update rota_jobs set looks = 7 where rowid = 3", r"the job \S+ differs in looks$"),
        (
            "insert into rota_attempts select id, 9, 9, null, 1, 'lost', 1, null, null, null from rota_jobs where rowid = 3",
            r"the job \S+ differs in attempt 1$",
        ),
        (
            TOO_MANY,
            r"the target has a job ffffffff-\S+ too many$",
        ),
        ("delete from rota_queues", "the target lacks the pause of slow"),
        ("delete from rota_limits", "the target lacks the size of partners"),
        ("delete from rota_tasks", "the target lacks the task shop.call"),
    ],
)
def test_a_difference_is_told_and_both_stay_sealed(statement: str, words: str, files: tuple[str, str]) -> None:
    source, target = files
    some(source)
    with shop(source) as app:
        app.declare()
        app.pause("slow")
        app.set_limit("partners", 3)
    moved: Moved = move(source, target, _meddling(target, statement))
    assert [each for each in moved.differences if re.search(words, each)], moved.differences
    for url in files:
        with opened(url) as store:
            assert store.sealed() is not None
    assert reopen(source).done is False
    assert len(some(source, 1)) == 1


def test_many_differences_are_cut_short(files: tuple[str, str]) -> None:
    source, target = files
    some(source)
    moved = move(source, target, _meddling(target, "update rota_jobs set priority = 7"))
    assert len([each for each in moved.differences if "differs in priority" in each]) == 10
    assert moved.differences[10] == "and more"


# -- given up -----------------------------------------------------------------------------------


def test_a_move_is_given_up_and_begun_again_elsewhere(urls: tuple[str, str], tmp_path: Path) -> None:
    source, target = urls
    some(source)
    assert _interrupted(source, target, after=0)
    with pytest.raises(StoreError, match="being moved into this store"):
        reopen(target)
    assert left(source) == reopen(source)
    [new] = some(source, 1)
    refused(source, target, "nothing else can be moved to")
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert move(source, elsewhere).total == 41
    assert new in ids(elsewhere)


def test_a_store_that_was_not_moved_is_not_opened_again(files: tuple[str, str]) -> None:
    source, _ = files
    some(source)
    for ask in (left, reopen):
        with pytest.raises(StoreError, match="takes jobs"):
            ask(source)


def test_a_store_that_was_moved_to_can_be_moved_on(files: tuple[str, str], tmp_path: Path) -> None:
    source, target = files
    fill(source, 2)
    move(source, target)
    third = f"sqlite:///{tmp_path / 'third.db'}"
    assert move(target, third).digest == digest(source)
