"""A worker counts the places itself that its claims took unnoted: the store never has fewer than run, nor more for long."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import unquote

import psycopg
import pytest
from psycopg import sql

from rota import Limit, Retry, Rota, current_job
from rota.clock import SECOND
from rota.model import Ample, Ask, Claimed, Ended, Places, State, Succeeded, Tally, Turn
from rota.rules.instances import Instance
from rota.rules.sizes import Concurrency
from rota.stores import open_store
from rota.stores.base import Line, Store
from rota.stores.postgres_line import PostgresLine
from rota.stores.sql_line import SqlLine
from rota.testing.contract.limits import MAIL, admit, close, mail, running_and_held, settled, worker_of
from rota.testing.contract.limits import job as mail_job
from rota.testing.contract.lines import answered
from rota.testing.contract.scene import LEASE, NOW, put
from rota.testing.limits import Declares
from servers import PostgresServer
from working import eventually, working

PATIENCE = 30.0
ROOM = (MAIL, "")
POST = ("concurrency of post", "")
CUT = """
select pg_terminate_backend(pid)
from pg_stat_activity
where application_name = 'rota' and query like '%rota_tallies%' and pid <> pg_backend_pid()
"""
"""Ends the connections over which workers count."""
BOTH = Declares({"mail": {"concurrency": 1_000}, "post": {"concurrency": 1_000}})


@pytest.fixture
def store_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The one store whose claims are ample."""
    with postgres_server.tables() as url:
        yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url)) as store:
        store.open()
        yield store


# -- over a line --------------------------------------------------------------------------------


class Teller:
    """A worker's line, and what the worker knows of what goes over it. Its rooms are those of `mail`, or of these tasks."""

    def __init__(self, store: Store, worker: str, tasks: Mapping[str, Places] | None = None) -> None:
        self.worker = worker
        self.tasks = {"mail": (ROOM,)} if tasks is None else tasks
        self.line: Line = store.line()

    def claim(
        self, many: int, enough: int = 900, ended: Sequence[Ended] = (), tally: Tally | None = None, now: int = NOW
    ) -> list[Claimed]:
        """Claim amply up to so many along with what ended, once no more than `enough` places are taken."""
        return self.turn(ended, tally or gave(ended), self.ask(many, enough), now).claimed

    def first(self, many: int, enough: int = 900) -> list[Claimed]:
        """The first claim, with which all that the worker has is told."""
        return self.claim(many, enough, tally=whole(dict.fromkeys(self.rooms, 0)))

    def ask(self, many: int, enough: int = 900) -> Ask:
        return Ask(self.worker, ("default",), many, ample=Ample(tuple((*room, enough) for room in self.rooms), self.tasks))

    def turn(self, ended: Sequence[Ended] = (), tally: Tally | None = None, ask: Ask | None = None, now: int = NOW) -> Turn:
        self.line.post(self.worker, ended, ask, now, tally)
        return answered(self.line)

    @property
    def rooms(self) -> list[tuple[str, str]]:
        return sorted({room for places in self.tasks.values() for room in places})


def whole(rooms: Mapping[tuple[str, str], int]) -> Tally:
    return Tally(rooms, whole=True)


def gave(ends: Sequence[Ended]) -> Tally:
    """What changes as these end."""
    rooms = [room for end in ends for room in end.places]
    return Tally({room: -rooms.count(room) for room in rooms})


def over(claims: Sequence[Claimed], places: Places = (ROOM,)) -> list[Ended]:
    return [Ended(claimed.id, claimed.claim, Succeeded(), places=places) for claimed in claims]


@pytest.fixture
def tellers(store: Store) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def teller(store: Store, tellers: ExitStack, worker: str = "", tasks: Mapping[str, Places] | None = None) -> Teller:
    told = Teller(store, worker or worker_of(store), tasks)
    tellers.callback(told.line.close)
    return told


def test_places_that_a_worker_counts_are_taken_for_everybody(store: Store, tellers: ExitStack) -> None:
    first, other = teller(store, tellers), worker_of(store)
    put(store, *(mail_job() for _ in range(100)))
    claims = first.first(30)
    assert (len(claims), running_and_held(store, *ROOM)) == (30, (30, 0))
    assert len(settled(store, other, mail(concurrency=40))) == 10
    first.claim(0, ended=over(claims[:25]))
    assert running_and_held(store, *ROOM)[0] == 15
    assert len(settled(store, other, mail(concurrency=40))) == 25


def test_no_place_is_taken_amply_once_more_are_taken_than_enough(store: Store, tellers: ExitStack) -> None:
    first, other = teller(store, tellers), teller(store, tellers)
    put(store, *(mail_job() for _ in range(100)))
    assert len(admit(store, worker_of(store), mail(concurrency=1_000), slots=5).claimed) == 5
    assert len(first.first(20, enough=20)) == 20
    assert other.first(20, enough=24) == []
    assert len(other.claim(20, enough=25)) == 20
    assert first.claim(1, enough=44) == []


def test_a_room_without_enough_keeps_only_those_out_that_need_it(store: Store, tellers: ExitStack) -> None:
    both = teller(store, tellers, tasks={"mail": (ROOM,), "post": (POST,), "pair": (ROOM, POST)})
    put(store, *(mail_job(task) for task in ("mail", "post", "pair", "other") for _ in range(3)))
    store.set_limit(MAIL, Concurrency(2_000), now=NOW)  # what it is now, only a claim that counts looks up
    assert sorted(claimed.task for claimed in both.first(12)) == ["other"] * 3 + ["post"] * 3
    assert running_and_held(store, *POST)[0] == 3
    assert len(settled(store, both.worker, BOTH)) == 6


def test_a_closed_room_lets_nobody_in_until_it_opens(store: Store, tellers: ExitStack) -> None:
    first = teller(store, tellers)
    put(store, *(mail_job() for _ in range(9)))
    assert len(first.first(3)) == 3
    close(store, [Instance(*ROOM)], 20 * SECOND, NOW)
    assert first.claim(3) == []
    assert len(first.claim(3, now=NOW + 21 * SECOND)) == 3


def test_an_attempt_that_closes_a_room_does_so_before_the_claim_along_with_its_end(store: Store, tellers: ExitStack) -> None:
    first = teller(store, tellers)
    put(store, *(mail_job() for _ in range(9)))
    [claimed] = first.first(1)
    end = Ended(claimed.id, claimed.claim, Succeeded(), places=(ROOM,), closes=(ROOM,), closes_for=20 * SECOND)
    assert first.claim(3, ended=[end]) == []


def test_what_a_limit_holds_goes_first(store: Store, tellers: ExitStack) -> None:
    first, other = teller(store, tellers), worker_of(store)
    put(store, *(mail_job() for _ in range(4)))
    claims = admit(store, other, mail(concurrency=2)).claimed
    put(store, mail_job())
    assert (first.first(3), running_and_held(store, *ROOM)) == ([], (2, 2))
    store.finish(other, over(claims), now=NOW)
    assert first.claim(3) == []
    assert len(settled(store, other, mail(concurrency=2))) == 2


@pytest.mark.parametrize("late", ["what ended", "what ended, and a claim", "all it had", "all it had, and a claim"])
def test_what_the_server_does_late_for_a_line_that_was_given_up_counts_for_nothing(
    store: Store, tellers: ExitStack, late: str
) -> None:
    """The worker wrote the ends again over another line, and told all that it has: they are not to be subtracted twice."""
    lost = teller(store, tellers)
    put(store, *(mail_job() for _ in range(100)))
    claims = lost.first(50)
    line = teller(store, tellers, lost.worker)
    assert len(line.claim(10, ended=over(claims[:40]), tally=whole({ROOM: 10}))) == 10
    assert running_and_held(store, *ROOM)[0] == 20
    tally = gave(over(claims[:40])) if late.startswith("what ended") else whole({ROOM: 10})
    assert lost.turn(over(claims[:40]), tally, lost.ask(30) if late.endswith("claim") else None) == Turn(frozenset(), [])
    assert running_and_held(store, *ROOM)[0] == 20
    assert len(line.claim(10)) == 10
    assert running_and_held(store, *ROOM)[0] == 30


def test_what_it_did_before_all_was_told_anew_is_forgotten(store: Store, tellers: ExitStack) -> None:
    lost = teller(store, tellers)
    put(store, *(mail_job() for _ in range(100)))
    claims = lost.first(50)
    lost.claim(20)  # of which the worker hears nothing
    assert store.reconcile(lost.worker, [claimed.id for claimed in claims], now=NOW) == 20
    line = teller(store, tellers, lost.worker)
    line.turn(tally=whole({ROOM: 50}))
    assert running_and_held(store, *ROOM)[0] == 50


def test_a_claim_that_nothing_was_told_before_lets_nobody_in(store: Store, tellers: ExitStack) -> None:
    first = teller(store, tellers)
    put(store, *(mail_job() for _ in range(9)))
    assert first.claim(3) == []
    assert running_and_held(store, *ROOM) == (0, 0)
    assert len(first.first(3)) == 3


@pytest.mark.parametrize("end", ["leave", "lose the lease"])
def test_what_a_worker_counts_goes_with_it(store: Store, tellers: ExitStack, end: str) -> None:
    first, other = teller(store, tellers), worker_of(store, now=NOW + LEASE)
    put(store, *(mail_job() for _ in range(40)))
    assert len(first.first(20)) == 20
    assert settled(store, other, mail(concurrency=20)) == []
    if end == "leave":
        store.leave(first.worker, now=NOW)
    else:
        assert len(store.lost(100, now=NOW + LEASE).lost) == 20
    assert len(settled(store, other, mail(concurrency=20), now=NOW + LEASE)) == 20
    assert (first.claim(3), first.turn(tally=whole({ROOM: 20}))) == ([], Turn(frozenset(), []))
    assert running_and_held(store, *ROOM)[0] == 20


def test_of_a_dead_worker_only_the_job_that_an_open_transaction_finishes_keeps_its_place(
    store: Store, store_url: str, tellers: ExitStack
) -> None:
    dead, other = teller(store, tellers), worker_of(store, now=NOW + LEASE)
    put(store, *(mail_job() for _ in range(40)))
    claims = dead.first(20)
    with table(store_url, "rota_jobs") as (postgres, jobs):
        postgres.execute(sql.SQL("select 1 from {} where id = %s for update").format(jobs), [claims[0].id])
        assert len(store.lost(100, now=NOW + LEASE).lost) == 19
        assert running_and_held(store, *ROOM)[0] == 1
        assert len(settled(store, other, mail(concurrency=20), now=NOW + LEASE)) == 19
        # The worker was only held up, and goes on with what it knew: nothing is counted by that.
        assert store.beat(dead.worker, [], now=NOW + LEASE).alive
        assert dead.claim(10, ended=over(claims[1:]), now=NOW + LEASE) == []
        assert running_and_held(store, *ROOM)[0] == 20
    store.finish(dead.worker, over(claims[:1]), now=NOW + LEASE)
    assert len(settled(store, other, mail(concurrency=20), now=NOW + LEASE)) == 1


def test_rooms_are_locked_in_one_order_also_where_some_places_were_noted_and_others_told(
    store: Store, store_url: str, tellers: ExitStack
) -> None:
    """A worker that has locked the second and waits for the first would be in each other's way with all others."""
    both = teller(store, tellers, tasks={"post": (POST,)})
    put(store, mail_job("mail"))
    [noted] = admit(store, both.worker, BOTH, slots=1).claimed
    put(store, mail_job("post"))
    told = both.first(1)
    ends = [*over([noted], (ROOM,)), *over(told, (POST,))]
    with table(store_url, "rota_rooms") as (holder, rooms), table(store_url, "rota_rooms") as (looker, _):
        holder.execute(sql.SQL("select 1 from {} where (name, key) = (%s, %s) for update").format(rooms), ROOM)
        both.line.post(both.worker, ends, None, NOW, gave(over(told, (POST,))))
        eventually(lambda: holder.execute("select 1 from pg_locks where not granted").fetchall())
        free = looker.execute(sql.SQL("select name from {} for update skip locked").format(rooms)).fetchall()
        assert (POST[0],) in free
        looker.rollback()
        holder.rollback()
        assert answered(both.line).counted == {end.id for end in ends}


class table:  # reads as a function
    """A transaction on a connection beside the store's, which is undone, and a table of the store's."""

    def __init__(self, url: str, name: str) -> None:
        database, _, schema = url.partition("?schema=") if "?schema=" in url else url.partition("&schema=")
        self._postgres = psycopg.connect(database)
        self._table = sql.SQL("{}.{}").format(sql.Identifier(unquote(schema)), sql.Identifier(name))

    def __enter__(self) -> tuple[psycopg.Connection[tuple[object, ...]], sql.Composed]:
        return self._postgres, self._table

    def __exit__(self, *_: object) -> None:
        self._postgres.rollback()
        self._postgres.close()


# -- by workers ---------------------------------------------------------------------------------


class Crowd:
    """Counts who is inside."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    @contextmanager
    def inside(self) -> Iterator[None]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._lock:
                self.now -= 1


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    with Rota(store_url) as app:
        yield app


def counted(app: Rota) -> int:
    """How many places workers count."""
    with table(app.url, "rota_tallies") as (postgres, tallies):
        [[taken]] = postgres.execute(sql.SQL("select coalesce(sum(taken), 0) from {}").format(tallies)).fetchall()
    return int(str(taken))


def tellers_of(app: Rota) -> set[str]:
    """The workers that count some, or did."""
    with table(app.url, "rota_tallies") as (postgres, tallies):
        rows = postgres.execute(sql.SQL("select worker from {}").format(tallies)).fetchall()
    return {str(worker).partition("/")[0] for (worker,) in rows}


def all_free(app: Rota) -> bool:
    return counted(app) == 0 and all(room.running == 0 for room in app.store.rooms())


def test_a_worker_counts_its_places_while_it_lives(app: Rota) -> None:
    @app.task(concurrency=400)
    def wide() -> None: ...

    jobs = wide.enqueue_many([()] * 3_000)
    with working(app, concurrency=8) as worker:
        eventually(lambda: tellers_of(app) == {worker.id})
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))
    assert tellers_of(app) == set()


def test_workers_that_count_and_slow_bodies_together_keep_to_the_limit(app: Rota) -> None:
    crowd = Crowd()
    shared = Limit(40, name="shared")

    @app.task(concurrency=shared)
    def quick() -> None:
        with crowd.inside():
            pass

    @app.task(concurrency=shared)
    async def slow() -> None:
        import asyncio

        with crowd.inside():
            await asyncio.sleep(0.05)

    jobs = [*quick.enqueue_many([()] * 1_500), *slow.enqueue_many([()] * 200), *quick.enqueue_many([()] * 1_500)]
    with working(app, concurrency=4), working(app, concurrency=50):
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))
    assert 30 <= crowd.most <= 40


def test_a_smaller_size_that_is_set_holds_at_once_for_workers_that_count(app: Rota) -> None:
    crowd = Crowd()
    go = threading.Event()

    @app.task(concurrency=Limit(400, name="wide"))
    def wide(waits: bool) -> None:
        with crowd.inside():
            if waits:
                go.wait(PATIENCE)

    quick = wide.enqueue_many([(False,)] * 800)
    with working(app, concurrency=8):
        eventually(lambda: tellers_of(app))
        app.set_limit("wide", 3)
        jobs = [*quick, *wide.enqueue_many([(True,)] * 10)]
        eventually(lambda: (crowd.now, app.stats().states[State.HELD]) == (3, 7), within=PATIENCE)
        assert crowd.now == 3
        go.set()
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}


def test_a_job_that_reports_somebody_elses_limit_closes_the_room_for_workers_that_count(app: Rota) -> None:
    told = threading.Event()

    @app.task(concurrency=400, retry=0)
    def call(reports: bool) -> None:
        if reports and not told.is_set():
            told.set()
            raise Retry(after=2.0, limit=True)

    jobs = call.enqueue_many([(number == 1_000,) for number in range(6_000)])
    with working(app, concurrency=2):
        for job in (jobs[1_000], *jobs[-50:]):
            assert job.wait(PATIENCE).status is State.SUCCEEDED
        eventually(lambda: all_free(app))
    closed_at = app.store.attempts(jobs[1_000].id)[0].ended_at
    rows = [row for step in range(0, 6_000, 500) for row in app.store.get([job.id for job in jobs[step : step + 500]])]
    later = sorted(after for row in rows if (after := (row.claimed_at or 0) - closed_at) > SECOND // 2)  # no claim overlaps it
    assert later
    assert later[0] >= 2 * SECOND


@pytest.mark.parametrize("committed", [True, False])
def test_a_job_that_is_finished_within_its_bodys_transaction_gives_its_place_back(app: Rota, committed: bool) -> None:
    @app.task(concurrency=400)
    def wide() -> None: ...

    @app.task(concurrency=400, max_attempts=1)
    def within() -> None:
        with table(app.url, "rota_jobs") as (postgres, _):
            current_job().finish_within(postgres)
            if committed:
                postgres.commit()

    jobs = [*wide.enqueue_many([()] * 1_000), *within.enqueue_many([()] * 30), *wide.enqueue_many([()] * 1_000)]
    with working(app, concurrency=4):
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))


def test_what_a_worker_counted_under_an_id_that_it_lost_is_forgotten(app: Rota) -> None:
    @app.task(concurrency=400, max_attempts=50)
    def wide() -> None:
        time.sleep(0.0005)

    jobs = wide.enqueue_many([()] * 3_000)
    with working(app, concurrency=8, lease=3) as worker:
        eventually(lambda: tellers_of(app) == {worker.id})
        former = worker.id
        app.store.leave(former)  # as one that takes it for dead does
        eventually(lambda: worker.id != former)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))
        assert tellers_of(app) <= {worker.id}


def test_cut_connections_leave_no_place_taken(app: Rota, postgres_server: PostgresServer) -> None:
    crowd = Crowd()
    shared = Limit(40, name="shared")

    @app.task(concurrency=shared)
    def quick() -> None:
        with crowd.inside():
            pass

    jobs = quick.enqueue_many([()] * 3_000)
    with working(app, concurrency=8), working(app, concurrency=8):
        for job in jobs[::300]:
            job.wait(PATIENCE)
            with postgres_server.connect() as admin:
                admin.execute(CUT)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))
    assert crowd.most <= 40


def freeze_idle(server: PostgresServer, pid: int) -> bool:
    """Freeze a process of the server between two transactions: within one it may hold locks for which all others wait."""
    os.kill(pid, signal.SIGSTOP)
    with server.connect() as admin:
        [[idle]] = admin.execute("select state = 'idle' from pg_stat_activity where pid = %s", [pid]).fetchall()
    if not idle:
        os.kill(pid, signal.SIGCONT)
    return bool(idle)


def test_what_a_frozen_server_process_commits_after_its_line_was_cut_leaves_no_place_taken(
    app: Rota, postgres_server: PostgresServer
) -> None:
    """The worker has given the line up by then, and has written all again over another."""

    @app.task(concurrency=400)
    def wide() -> None:
        time.sleep(0.0002)

    jobs = wide.enqueue_many([()] * 4_000)
    with working(app, concurrency=8) as worker:
        eventually(lambda: tellers_of(app) == {worker.id})
        ledger = worker._ledger
        assert ledger is not None
        line = ledger._line
        assert isinstance(line, SqlLine)
        assert isinstance(line._link, PostgresLine)
        wire = line._link._wire
        pid = wire._libpq.backend_pid
        eventually(lambda: freeze_idle(postgres_server, pid))
        try:
            eventually(lambda: ledger._posted)
            with socket.socket(fileno=os.dup(wire.socket)) as cut:
                cut.shutdown(socket.SHUT_RD)
            eventually(lambda: ledger._line not in (None, line))
            eventually(lambda: tellers_of(app) and not ledger._doubt.there)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert {job.wait(PATIENCE).status for job in jobs} == {State.SUCCEEDED}
        eventually(lambda: all_free(app))
