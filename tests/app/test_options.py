"""What `using` sets for a call, what it refuses, and names that other systems trip over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from app.conftest import Clock
from app.words import NO_NAMES, WORDS
from rota import ConfigError, NamedTask, PayloadTooLarge, Rota, State, Task

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def quiet() -> Iterator[Rota]:
    with Rota("memory://") as app:
        yield app


@pytest.fixture(params=["declared", "named"])
def task(request: pytest.FixtureRequest, quiet: Rota) -> Task[[], None, None] | NamedTask:
    """A task that is declared here, and one that is known by its name alone: both take the same options."""

    @quiet.task(name="noop")
    def noop() -> None: ...

    return noop if request.param == "declared" else quiet.named("elsewhere")


def refused(task: Any, **options: Any) -> str:
    """What `using` says to these options."""
    with pytest.raises(ConfigError) as said:
        task.using(**options)
    return str(said.value)


@pytest.mark.parametrize("delay", [-1, float("nan"), "soon", True, timedelta(seconds=-1)])
def test_a_delay_that_is_no_span_is_refused(task: Any, delay: Any) -> None:
    assert refused(task, delay=delay).startswith(f"delay={delay!r} is ")


def test_a_moment_without_a_zone_is_refused(task: Any) -> None:
    said = refused(task, run_at=datetime(2030, 1, 1))  # noqa: DTZ001
    assert said.startswith("run_at=")
    assert "has no time zone" in said
    assert said.endswith("datetime.now(timezone.utc)")


@pytest.mark.parametrize("moment", ["tomorrow", 1_900_000_000, NOON.date()])
def test_what_is_no_moment_is_refused(task: Any, moment: Any) -> None:
    assert refused(task, run_at=moment).startswith(f"run_at={moment!r} is no moment: pass an aware datetime")


def test_a_moment_beyond_the_calendar_is_refused(task: Any) -> None:
    assert "lies outside of the years 1 to 9999" in refused(
        task, run_at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    )


def test_a_delay_and_a_moment_together_are_refused(task: Any) -> None:
    assert refused(task, delay=1, run_at=NOON) == "delay and run_at are both given: pass one of them"


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("option", ["queue", "key"])
def test_what_can_be_no_name_is_refused_before_anything_is_stored(task: Any, option: str, name: Any) -> None:
    assert refused(task, **{option: name}).startswith(f"{option}=")


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_task_is_not_called_what_can_be_no_name(quiet: Rota, name: Any) -> None:
    with pytest.raises(ConfigError, match=r"^task="):
        quiet.send(name)


@pytest.mark.parametrize(
    ("option", "value"), [("priority", True), ("priority", 0.5), ("max_attempts", 0), ("max_attempts", False)]
)
def test_numbers_are_whole_numbers(task: Any, option: str, value: Any) -> None:
    assert refused(task, **{option: value}).startswith(f"{option}={value!r}: ")


def test_a_key_lasts_until_the_job_is_finished_or_started(task: Any) -> None:
    assert refused(task, key="k", key_until="forever") == "key_until='forever': say 'finished' (the default) or 'started'"


def test_a_refused_option_leaves_the_bound_task_as_it_was(quiet: Rota) -> None:
    bound = quiet.named("elsewhere").using(queue="mail", priority=3)
    refused(bound, queue="", priority=4)
    job = bound.enqueue()
    assert (job.queue, job.priority) == ("mail", 3)


def test_what_is_left_out_stays_as_it_was(task: Any) -> None:
    job = task.using(queue="mail", priority=3).using(max_attempts=2).using(priority=-7).enqueue()
    assert (job.queue, job.priority, job.max_attempts) == ("mail", -7, 2)


def test_the_latest_word_on_time_counts(task: Any) -> None:
    assert task.using(run_at=NOON).using(delay=0).enqueue().status is State.QUEUED
    assert task.using(delay=5).using(run_at=NOON).enqueue().run_at == NOON


def test_using_does_not_change_the_task_itself(quiet: Rota) -> None:
    @quiet.task
    def noop() -> None: ...

    noop.using(queue="mail", priority=9, key="k")
    job = noop.enqueue()
    assert (job.queue, job.priority, job.key) == ("default", 0, None)


# -- on each store ------------------------------------------------------------------------------


def test_unusual_names_go_the_whole_way_on_every_store(app: Rota) -> None:
    ran = []
    for name in WORDS:
        body = app.task(name=name)(ran.append)
        job = body.using(queue=name, key=name).enqueue(name)
        again = app.named(name).using(queue=name, key=name).enqueue(name)
        assert (again.id, again.existed) == (job.id, True)
        assert [found.id for found in app.jobs(queue=name, task=name, key=name)] == [job.id]
        assert str(app.run_one([name])) == f"ran {name}"
        assert (job.refresh().queue, job.key, job.status) == (name, name, State.SUCCEEDED)
    assert ran == list(WORDS)
    assert {(count.queue, count.task) for count in app.stats().counts} == {(name, name) for name in WORDS}


def test_what_can_be_no_name_is_refused_in_filters_by_the_same_rule(app: Rota) -> None:
    for name in NO_NAMES:
        for kind in ("queue", "task", "key"):
            which: dict[str, Any] = {kind: name}
            with pytest.raises(ConfigError, match=f"^{kind}="):
                app.jobs(**which)
        with pytest.raises(ConfigError, match=r"^queue="):
            app.run_one([name])  # type: ignore[list-item]


def test_a_delay_counts_from_the_clock(clocked: Rota, clock: Clock) -> None:
    job = clocked.named("later").using(delay=timedelta(minutes=1)).enqueue()
    assert (job.status, job.run_at, job.created_at) == (State.SCHEDULED, clock.now + timedelta(minutes=1), clock.now)


def test_a_moment_in_the_past_makes_a_job_due_at_once_and_ahead_of_others(clocked: Rota, clock: Clock) -> None:
    clocked.send("second")
    first = clocked.named("first").using(run_at=clock.now - timedelta(days=1)).enqueue()
    assert (first.status, first.run_at) == (State.QUEUED, clock.now - timedelta(days=1))
    assert str(clocked.run_one()).startswith("failed first")


def test_a_moment_of_another_zone_is_the_same_moment(app: Rota) -> None:
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert app.named("later").using(run_at=there).enqueue().run_at == NOON


def test_a_delay_of_a_thousand_years_is_cut_to_a_century(clocked: Rota, clock: Clock) -> None:
    job = clocked.named("later").using(delay=1e18).enqueue()
    assert job.run_at == clock.now + timedelta(days=36_500)


@pytest.mark.parametrize(
    "moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(1969, 7, 20, tzinfo=UTC)]
)
def test_every_moment_of_the_calendar_can_be_stored(app: Rota, moment: datetime) -> None:
    there = moment.replace(tzinfo=UTC)
    assert app.named("later").using(run_at=there).enqueue().run_at == there


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31 - 1)])
def test_the_largest_priorities_can_be_stored(app: Rota, priority: int) -> None:
    assert app.named("t").using(priority=priority, max_attempts=2**31 - 1).enqueue().priority == priority
    assert app.run_one() is not None


def test_a_larger_priority_runs_first(app: Rota) -> None:
    for priority in (0, 5, -5):
        app.named(f"p{priority}").using(priority=priority).enqueue()
    assert [event.task for event in app.drain()] == ["p5", "p0", "p-5"]


def test_a_payload_over_the_limit_is_refused_and_not_stored(store_url: str) -> None:
    with Rota(store_url, max_payload=100) as app:

        @app.task
        def take(text: str) -> None: ...

        take.enqueue("x" * 80)
        for task in (take, app.named("elsewhere")):
            with pytest.raises(PayloadTooLarge, match=r"weighs 1\d\d bytes and the limit is 100: .* or raise max_payload"):
                task.enqueue("x" * 110)
        assert len(app.jobs()) == 1
