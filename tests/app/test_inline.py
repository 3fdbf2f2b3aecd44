"""Working jobs right here: `run_one` and `drain`, at chosen moments, from plain code and from coroutines."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import never_imported
import slowly_imported
from app import isolated
from app.conftest import Clock
from app.words import NOT_AWAITED, careless, claimed, nothing
from rota import ConfigError, Kind, Rota, State, current_job
from rota.clock import SECOND
from rota.inline import LEASE


def test_one_job_is_run_and_told(app: Rota) -> None:
    @app.task(name="add", keep_result=True)
    def add(a: int, b: int) -> int:
        return a + b

    job, other = add.enqueue(1, 2), add.enqueue(3, 4)
    event = app.run_one()
    assert event is not None
    assert (str(event), event.kind, event.id, event.attempt, event.max_attempts) == ("ran add", Kind.SUCCEEDED, job.id, 1, 5)
    assert (job.result(), other.refresh().status) == (3, State.QUEUED)


def test_nothing_is_run_when_nothing_is_due(app: Rota) -> None:
    app.named("t").using(delay=3600).enqueue()
    assert app.run_one() is None
    assert app.drain() == []


def test_only_the_queues_asked_for_are_worked(app: Rota) -> None:
    for queue in ("mail", "goods", "default"):
        app.named("t").using(queue=queue).enqueue()
    assert [event.queue for event in app.drain(["goods", "mail"])] == ["mail", "goods"]
    assert app.run_one([]) is None
    assert app.run_one(["no such queue"]) is None
    assert [event.queue for event in app.drain()] == ["default"]


@pytest.mark.parametrize("work", [Rota.run_one, Rota.drain])
def test_queues_are_a_list_of_names(app: Rota, work: Any) -> None:
    app.named("t").using(queue="m").enqueue()
    with pytest.raises(ConfigError, match=r"^queues='mail': pass a list of names, for example \['mail'\]$"):
        work(app, "mail")
    with pytest.raises(ConfigError, match=r"^queue=7: "):
        work(app, [7])
    assert app.stats().states[State.QUEUED] == 1


def test_coroutine_functions_are_run_to_their_end(app: Rota) -> None:
    @app.task(name="add", keep_result=True)
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    job = add.enqueue(1, 2)
    assert str(app.run_one()) == "ran add"
    assert job.result() == 3


def test_inside_a_running_loop_too(app: Rota) -> None:
    @app.task(name="add", keep_result=True)
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    async def main() -> None:
        jobs = [await add.aenqueue(number, 1) for number in range(3)]
        assert str(app.run_one()) == "ran add"
        assert str(await app.arun_one()) == "ran add"
        assert [str(event) for event in await app.adrain()] == ["ran add"]
        assert [await job.aresult() for job in jobs] == [1, 2, 3]

    asyncio.run(main())


def test_bodies_that_use_the_app_themselves_do_not_lock_up(app: Rota) -> None:
    """More drains at once than the app has threads, each of whose bodies needs one in turn."""

    @app.task(name="inner")
    def inner() -> None: ...

    @app.task(name="outer")
    def outer() -> None:
        asyncio.run(_enqueue_inside(app))

    async def main() -> None:
        outer.enqueue_many(() for _ in range(12))
        await asyncio.wait_for(asyncio.gather(*(app.adrain() for _ in range(8))), 60)
        await app.adrain()

    asyncio.run(main())
    assert app.stats().states == dict.fromkeys(State, 0) | {State.SUCCEEDED: 24}


async def _enqueue_inside(app: Rota) -> None:
    job = await app.tasks["inner"].aenqueue()
    await job.arefresh()


def test_a_drain_works_what_its_jobs_enqueue(app: Rota) -> None:
    @app.task(name="count")
    def count(down: int) -> None:
        if down:
            count.enqueue(down - 1)

    count.enqueue(3)
    assert [str(event) for event in app.drain()] == ["ran count"] * 4


@pytest.mark.parametrize("store_url", ["memory"], indirect=True)
def test_a_drain_takes_all_that_became_due_at_once_in_their_order(clocked: Rota, clock: Clock) -> None:
    ran: list[int] = []
    task = clocked.task(name="t")(ran.append).using(delay=60)
    task.enqueue_many((number,) for number in range(700))
    task.using(priority=1).enqueue(-1)
    clock.forward(60)
    clocked.drain()
    assert ran == [-1, *range(700)]


def test_a_job_whose_task_nobody_registers_fails_in_the_guides_words(app: Rota) -> None:
    job = app.send("missing")
    event = app.run_one()
    assert str(event) == "failed missing on attempt 1: no performer is named missing"
    assert (job.refresh().status, job.reason) == (State.SCHEDULED, "no performer is named missing")


def test_a_job_whose_arguments_no_longer_fit_fails_readably(app: Rota) -> None:
    job = app.named("add").using(max_attempts=1).enqueue("one", 2)
    app.task(name="add")(lambda a, b, c: None)
    broken = app.named("add").using(max_attempts=1).enqueue(1)
    assert [event.kind for event in app.drain()] == [Kind.FAILED] * 2
    assert "cannot be called like this" in (job.refresh().reason or "")
    assert (broken.refresh().status, len(app.jobs())) == (State.FAILED, 2)


def test_the_store_has_no_worker_left_afterwards(app: Rota) -> None:
    app.send("t")
    app.run_one()
    app.drain()
    assert app.workers() == []


def test_jobs_of_lost_workers_are_taken_back(clocked: Rota, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    app = clocked
    app.task(name="t")(lambda: None)
    job = app.send("t")
    claimed(app, seconds=30)
    assert app.run_one() is None
    clock.forward(30)
    event = app.run_one()
    assert (str(event), event and event.attempt) == ("ran t", 2)
    assert [row.outcome for row in job.attempts()] == ["lost"]
    assert "lost t on attempt 1" in caplog.text


def test_the_claim_holds_for_five_minutes(clocked: Rota) -> None:
    leases = []
    clocked.task(name="t")(lambda: leases.extend(clocked.workers()))
    clocked.send("t")
    clocked.run_one()
    assert [worker.lease for worker in leases] == [LEASE] == [300 * SECOND]


@pytest.mark.parametrize("body", ["plain", "coroutine"])
def test_ctrl_c_stops_a_drain_and_costs_the_job_no_attempt(app: Rota, body: str) -> None:
    def plain() -> None:
        raise KeyboardInterrupt

    async def coroutine() -> None:
        os.kill(os.getpid(), 2)
        await asyncio.sleep(60)

    app.task(name="t")(plain if body == "plain" else coroutine)
    job = app.send("t")
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    assert (job.refresh().status, job.attempt, job.reason) == (State.QUEUED, 0, "interrupted from the keyboard")
    assert app.workers() == []


@pytest.mark.parametrize(
    "error", [SystemExit(0), SystemExit("x"), GeneratorExit(), asyncio.CancelledError("stop"), BaseException("odd")]
)
@pytest.mark.parametrize("coroutine", [False, True], ids=["plain", "coroutine"])
def test_whatever_a_body_raises_is_a_failure(app: Rota, error: BaseException, coroutine: bool) -> None:
    def plain() -> None:
        raise error

    async def awaited() -> None:
        raise error

    app.task(name="t", max_attempts=1)(awaited if coroutine else plain)
    job = app.send("t")
    event = app.run_one()
    assert event is not None
    assert (event.kind, job.refresh().status) == (Kind.FAILED, State.FAILED)


@pytest.mark.parametrize("work", [Rota.run_one, Rota.drain])
def test_a_coroutine_function_behind_a_careless_decorator_fails_and_says_what_to_do(app: Rota, work: Any) -> None:
    app.task(name="t", max_attempts=1)(careless(nothing))
    job = app.send("t")
    work(app)
    assert (job.refresh().status, job.reason) == (State.FAILED, NOT_AWAITED.format(task="t"))


def test_an_awaitable_of_any_kind_is_no_result_of_a_plain_function(app: Rota) -> None:
    class Later:
        def __await__(self) -> Iterator[None]:
            yield

    app.task(name="t", max_attempts=1)(Later)
    job = app.send("t")
    app.run_one()
    assert "returned something to be awaited (Later)" in (job.refresh().reason or "")


def test_a_coroutine_function_that_forgets_to_await_fails(app: Rota) -> None:
    async def forgetful() -> object:
        return nothing()

    app.task(name="t", max_attempts=1)(forgetful)
    job = app.send("t")
    app.run_one()
    assert job.refresh().reason == "t returned something that it did not await (coroutine): write `return await …`"


def test_a_coroutine_function_may_leave_a_task_on_its_loop(app: Rota) -> None:
    async def starts() -> object:
        return asyncio.create_task(nothing())

    app.task(name="t")(starts)
    app.send("t")
    assert str(app.run_one()) == "ran t"


def test_a_coroutine_is_ended_at_its_timeout(app: Rota) -> None:
    @app.task(name="slow", timeout=0.05, max_attempts=1)
    async def slow() -> None:
        await asyncio.sleep(60)

    slow.enqueue()
    assert str(app.run_one()) == "failed slow on attempt 1: timed out after 0.05 s"


def test_a_body_sees_a_context_of_its_own(app: Rota) -> None:
    seen: ContextVar[str] = ContextVar("seen", default="nothing")
    heard = []

    def body() -> None:
        heard.append(seen.get())
        seen.set("something")

    app.task(name="t")(body)
    app.named("t").enqueue_many([(), ()])
    app.drain()
    assert heard == ["nothing"] * 2
    with pytest.raises(LookupError, match="no job is running here"):
        current_job()


def test_what_happened_is_logged_with_its_facts(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    app.task(name="good")(lambda: None)
    app.send("good")
    app.named("bad").using(max_attempts=1).enqueue()
    app.send("worse")
    with caplog.at_level(logging.INFO, "rota"):
        events = app.drain()
    told = [record for record in caplog.records if hasattr(record, "rota")]
    assert [record.rota for record in told] == events
    assert [(record.levelname, record.message) for record in told] == [
        ("INFO", "ran good"),
        ("ERROR", "failed bad on attempt 1: no performer is named bad"),
        ("WARNING", "failed worse on attempt 1: no performer is named worse"),
    ]


# -- chosen moments -----------------------------------------------------------------------------


def test_a_chosen_moment_takes_the_place_of_the_clock(app: Rota) -> None:
    job = app.named("t").using(delay=3600).enqueue()
    assert app.run_one(now=job.run_at - timedelta(microseconds=1)) is None
    assert app.run_one(now=job.run_at) is not None


def test_a_moment_in_the_past_runs_what_was_due_then(clocked: Rota, clock: Clock) -> None:
    old = clocked.named("old").using(run_at=clock.now - timedelta(hours=2)).enqueue()
    new = clocked.named("new").using(priority=9).enqueue()
    then = clock.now - timedelta(hours=1)
    assert [event.task for event in clocked.drain(now=then)] == ["old"]
    assert (old.refresh().attempt, new.refresh().status, new.attempt) == (1, State.SCHEDULED, 0)
    assert new.run_at == clock.now
    assert str(clocked.run_one()) == "failed new on attempt 1: no performer is named new"


@pytest.mark.parametrize("work", [Rota.run_one, Rota.drain])
def test_a_later_moment_takes_no_job_from_a_live_worker(app: Rota, work: Any) -> None:
    job = app.named("t").enqueue()
    worker, _ = claimed(app, seconds=60)
    assert not work(app, now=job.run_at + timedelta(days=1))
    assert (job.refresh().status, job.row.worker, job.attempts()) == (State.RUNNING, worker, [])
    assert [row.id for row in app.workers()] == [worker]


@pytest.mark.parametrize("work", [Rota.run_one, Rota.drain])
def test_the_apps_clock_says_who_is_alive_whatever_the_moment(clocked: Rota, clock: Clock, work: Any) -> None:
    clocked.task(name="t")(lambda: None)
    job = clocked.send("t")
    claimed(clocked, seconds=60)
    assert not work(clocked, now=clock.now + timedelta(days=1))
    clock.forward(60)
    assert work(clocked, now=clock.now - timedelta(seconds=60))  # when it was alive
    assert (job.refresh().status, [row.outcome for row in job.attempts()]) == (State.SUCCEEDED, ["lost"])


@pytest.mark.parametrize("days", [-1, 1])
def test_the_claims_own_lease_goes_by_the_stores_clock_too(app: Rota, days: int) -> None:
    """Or it would be lost to the first worker that looks, or hold the job for a day if this process were killed."""
    left = []
    reaped = []

    def body() -> None:
        left.extend(worker.lease_until - app.store.vitals().now for worker in app.workers())
        reaped.extend(app.store.lost(10).lost)

    app.task(name="t")(body)
    moment = datetime.now(UTC) + timedelta(days=days)
    app.named("t").using(run_at=moment).enqueue_many([(), ()])
    assert [str(event) for event in app.drain(now=moment)] == ["ran t"] * 2
    assert all(LEASE - 60 * SECOND < lease <= LEASE for lease in left)
    assert (len(left), reaped) == (2, [])


def test_a_drain_goes_along_with_a_clock_that_goes_on(store_url: str) -> None:
    with Rota(store_url, clock=lambda: datetime.now(UTC)) as app:

        @app.task(name="count")
        def count(down: int) -> None:
            if down:
                count.enqueue(down - 1)

        count.enqueue(2)
        assert [str(event) for event in app.drain()] == ["ran count"] * 3


def test_a_moment_has_a_zone(app: Rota, clock: Clock) -> None:
    for work in (app.run_one, app.drain):
        with pytest.raises(ConfigError, match=r"^now=.* has no time zone"):
            work(now=clock.now.replace(tzinfo=None))


def test_the_apps_clock_is_used_everywhere(clocked: Rota, clock: Clock) -> None:
    app = clocked
    app.task(name="bad", max_attempts=2, retry=60)(lambda: 1 / 0)
    job = app.send("bad")
    assert job.created_at == clock.now
    clock.forward(10)
    app.run_one()
    [attempt] = job.attempts()
    assert job.refresh().run_at == clock.now + timedelta(seconds=60)
    assert attempt.ended_at == int(clock.now.timestamp()) * SECOND
    clock.forward(60)
    app.run_one()
    assert job.refresh().finished_at == clock.now
    clock.forward(5)
    job.retry()
    assert job.run_at == clock.now
    job.cancel()
    assert job.finished_at == clock.now


def test_a_clock_without_a_zone_is_refused_at_its_first_use(store_url: str, clock: Clock) -> None:
    with (
        Rota(store_url, clock=lambda: clock.now.replace(tzinfo=None)) as app,
        pytest.raises(ConfigError, match=r"^clock=.* has no time zone"),
    ):
        app.send("t")


# -- isolated bodies ----------------------------------------------------------------------------


@pytest.fixture
def apart() -> Iterator[Rota]:
    with isolated.app as app:
        yield app


def test_an_isolated_body_runs_in_another_process(apart: Rota) -> None:
    jobs = [isolated.process.enqueue(), isolated.process_of_a_coroutine.enqueue()]
    assert [event.kind for event in apart.drain()] == [Kind.SUCCEEDED] * 2
    assert os.getpid() not in {job.result() for job in jobs}
    assert jobs[0].row.progress == '{"done":1,"total":2,"note":"half"}'


def test_an_isolated_body_can_run_inside_a_running_loop(apart: Rota) -> None:
    async def main() -> None:
        await isolated.process.aenqueue()
        assert str(apart.run_one()) == "ran app.isolated.process"

    asyncio.run(main())


def test_an_isolated_body_that_ends_its_process_fails(apart: Rota) -> None:
    isolated.die.enqueue()
    said = "failed app.isolated.die on attempt 1: worker lost: the process of the body exited with status 3"
    assert str(apart.run_one()) == said


def test_an_isolated_body_that_returns_a_coroutine_fails_and_says_what_to_do(apart: Rota) -> None:
    job = isolated.unawaited.enqueue()
    apart.run_one()
    assert (job.refresh().status, job.reason) == (State.FAILED, NOT_AWAITED.format(task="app.isolated.unawaited"))


def test_the_imports_of_an_isolated_body_are_not_its_time() -> None:
    with slowly_imported.app as app:
        slowly_imported.quick.enqueue()
        assert str(app.run_one()) == "ran slowly_imported.quick"


def test_an_isolated_body_that_is_never_begun_fails_at_the_start_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.isolation.START", 0.5)
    with never_imported.app as app:
        never_imported.never_begun.enqueue()
        assert str(app.run_one()) == (
            "failed never_imported.never_begun on attempt 1: timed out before it began: "
            "its process did not start and import never_imported within 0.5 s"
        )


def test_an_isolated_body_is_killed_at_its_timeout(apart: Rota) -> None:
    isolated.sleep.enqueue()
    assert str(apart.run_one()) == "failed app.isolated.sleep on attempt 1: timed out after 0.3 s"
