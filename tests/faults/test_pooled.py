"""Behind PgBouncer in transaction mode no session is a worker's own, and none is needed."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest
from click.testing import CliRunner
from kit import PATIENCE, Fleet, Program

from accounts import account, most_at_once, starts
from bouncer import Bouncer, bouncing
from rota import Rota
from rota.cli.group import rota
from rota.errors import StoreError
from rota.model import State
from servers import PostgresServer
from working import eventually, working

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LIMITED = json.dumps({"lease": 10, "poll": 0.5, "concurrency": 8})


@pytest.fixture
def statements() -> int:
    """How many prepared statements the pooler keeps track of: 200 by default, and older ones none."""
    return 0


@pytest.fixture
def bouncer(postgres_server: PostgresServer, statements: int) -> Iterator[Bouncer]:
    """With two connections to the server, for all."""
    with bouncing(postgres_server.directory, default_pool_size=2, max_prepared_statements=statements) as bouncer:
        yield bouncer


@pytest.fixture
def schema(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.schema() as direct:
        yield parse_qs(urlsplit(direct).query)["schema"][0]


@pytest.fixture
def url(bouncer: Bouncer, schema: str) -> str:
    return bouncer.url(schema=schema, pooler="true")


def stop(*workers: Program) -> None:
    for worker in workers:
        worker.send(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0] * len(workers)


def left_behind(server: PostgresServer) -> list[tuple[object, ...]]:
    """Transactions that stay open and locks that a session keeps."""
    with server.connect() as admin:
        return [
            *admin.execute("select pid from pg_stat_activity where state like 'idle in transaction%'").fetchall(),
            *admin.execute("select pid from pg_locks where locktype = 'advisory'").fetchall(),
        ]


@pytest.mark.parametrize("statements", [0, 200])
def test_workers_share_two_connections_under_limits(
    app: Rota, fleet: Fleet, bouncer: Bouncer, postgres_server: PostgresServer, ledger: Path
) -> None:
    fleet.command("migrate", app="fault_limited:app")
    workers = [fleet.program("fault_limited", LIMITED) for _ in range(4)]
    jobs = app.named("free").enqueue_many([()] * 1_000)
    jobs += [job for task in ("pair", "shared one") for job in app.named(task).enqueue_many([()] * 50)]
    jobs += app.named("tenant").enqueue_many([(name,) for name in "abcabcabc"])
    ids = [job.id for job in jobs]
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    assert {worker.pid for worker in app.workers()} == {worker.pid for worker in workers}
    stop(*workers)
    for word in ("WARNING", "ERROR", "Traceback"):
        assert word not in fleet.logs()
    assert left_behind(postgres_server) == []
    servers = [row for row in bouncer.say("show servers") if "postgres" in row]
    assert 1 <= len(servers) <= 2


def test_a_long_job_under_a_limit_of_one_runs_once(app: Rota, fleet: Fleet, ledger: Path) -> None:
    ids = [job.id for job in app.named("tenant").enqueue_many([("a",)] * 20)]
    workers = [fleet.program("fault_limited", LIMITED) for _ in range(2)]
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    assert most_at_once(ledger) == 1
    assert account(app, ids, ledger).repeated == {}
    stop(*workers)


@pytest.mark.parametrize("statements", [200])
def test_a_pooler_that_nobody_told_of_is_found(
    bouncer: Bouncer, schema: str, fleet: Fleet, postgres_server: PostgresServer
) -> None:
    url = bouncer.url(schema=schema)
    with Rota(url) as app:
        job = app.named("free").enqueue()
        worker = fleet.program("fault_limited", LIMITED, url=url)
        assert job.wait(PATIENCE).status is State.SUCCEEDED
        stop(worker)
        app.check()
        [line] = [line for line in worker.log.splitlines() if "WARNING" in line]
        assert "a pooler is between this worker and Postgres" in line
        assert "pooler=true" in line
        with psycopg.connect(bouncer.url()) as other:
            for name, value in (("enable_seqscan", "on"), ("plan_cache_mode", "auto")):
                assert other.execute(f"show {name}".encode()).fetchone() == (value,)
            assert other.execute("select * from pg_listening_channels()").fetchall() == []
            assert other.execute("select name from pg_prepared_statements where name like 'rota%'").fetchall() == []


def test_a_pooler_of_sessions_needs_only_be_told_of(postgres_server: PostgresServer, schema: str) -> None:
    """A worker is woken through it as on a direct connection."""
    ran = threading.Event()
    with bouncing(postgres_server.directory, pool_mode="session") as bouncer:
        url = bouncer.url(schema=schema, pooler="false")
        with Rota(url) as app, Rota(url) as other:
            app.task(ran.set, name="ring")
            with working(app, poll=60):
                eventually(lambda: [worker.asleep for worker in other.workers()] == [True])
                other.send("ring")
                assert ran.wait(20)


def test_what_goes_wrong_without_the_option_names_it(bouncer: Bouncer, schema: str) -> None:
    told = pytest.raises(StoreError, match=r"prepared statement.*say pooler=True, or \?pooler=true in the URL")
    with Rota(bouncer.url(schema=schema, pooler="false")) as app, told:
        app.send("x")
        with psycopg.connect(bouncer.url()) as other:
            other.execute("select 1")  # which takes the connection that knows the statement
            app.send("x")
    with Rota(bouncer.url(options="-csearch_path=x")) as app, pytest.raises(StoreError, match="refuses a parameter"):
        app.migrate()


def test_every_way_to_enqueue_goes_through(app: Rota, postgres_server: PostgresServer) -> None:
    async def many() -> None:
        jobs = await asyncio.gather(*(app.named("free").aenqueue() for _ in range(50)))
        assert len({job.id for job in jobs}) == 50

    asyncio.run(many())
    app.named("free").enqueue_many([()] * 3_000)
    keyed = app.named("free").using(key="one")
    assert keyed.enqueue().id == keyed.enqueue().id
    assert len({job.id for job in app.named("free").using(key="two").enqueue_many([()] * 300)}) == 1
    assert app.stats().states[State.QUEUED] == 3_052
    assert left_behind(postgres_server) == []


def test_the_commands_go_through(url: str, app: Rota, postgres_server: PostgresServer) -> None:
    def run(line: str, *more: str) -> str:
        said = CliRunner().invoke(rota, [*line.split(), *more, "--url", url], prog_name="rota")
        assert said.exit_code == 0, f"{line}: {said.output}\n{said.exception!r}"
        return said.stdout

    run("migrate")
    assert "nothing is to be done" in run("migrate --check")
    run("send free")
    [job] = app.jobs()
    for line in (
        f"jobs show {job.id}",
        f"jobs explain {job.id}",
        f"jobs cancel {job.id}",
        f"jobs retry {job.id}",
        "jobs",
        "stats",
    ):
        run(line)
    run(f"jobs edit {job.id} --priority 5")
    run("queues pause default --for 1h")
    run("queues resume default")
    run("queues")
    run("workers")
    run("jobs cancel --yes --queue default")
    run("purge --cancelled 0 --yes")
    run("limits")
    run("limits set pair 3")
    run("check --max-wait 1h")
    assert left_behind(postgres_server) == []


def test_who_is_frozen_within_a_claim_keeps_the_others_waiting_for_a_while_only(app: Rota, fleet: Fleet, ledger: Path) -> None:
    ids = [job.id for job in app.named("pair").enqueue_many([()] * 30)]
    frozen = fleet.program("fault_frozen", LIMITED)
    eventually(lambda: psutil.Process(frozen.pid).status() == psutil.STATUS_STOPPED, within=PATIENCE)
    worker = fleet.program("fault_limited", LIMITED)
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    frozen.send(signal.SIGCONT)
    more = app.named("free").enqueue()
    stop(worker)
    assert more.wait(PATIENCE).status is State.SUCCEEDED
    stop(frozen)
    assert "the store is away" in frozen.log  # its transaction was over
    assert account(app, [*ids, more.id], ledger).repeated == {}


def test_a_pooler_that_is_restarted_under_load_costs_nothing(app: Rota, fleet: Fleet, bouncer: Bouncer, ledger: Path) -> None:
    ids = [job.id for task in ("pair", "shared one", "free") for job in app.named(task).enqueue_many([()] * 200)]
    workers = [fleet.program("fault_limited", LIMITED) for _ in range(2)]
    for step in range(4):
        begun = starts(ledger)
        eventually(lambda begun=begun: starts(ledger) > begun + 40, within=PATIENCE)
        if step % 2:
            bouncer.kill()
            bouncer.start()
        else:
            bouncer.say("reconnect")
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(ids), within=PATIENCE)
    done = account(app, ids, ledger)
    assert (done.states, done.repeated) == ({State.SUCCEEDED: len(ids)}, {})
    stop(*workers)
    assert "Traceback" not in fleet.logs()


def test_a_connection_lost_as_a_body_returns_does_not_lose_its_outcome(
    app: Rota, fleet: Fleet, postgres_server: PostgresServer, ledger: Path
) -> None:
    jobs = app.named("cut").enqueue_many([(postgres_server.url(),)] * 5)
    worker = fleet.worker(lease=30, concurrency=1)
    eventually(lambda: app.stats().states[State.SUCCEEDED] == len(jobs), within=PATIENCE)  # this app is cut off as well
    assert account(app, [job.id for job in jobs], ledger).repeated == {}
    stop(worker)
