"""Finding jobs: by id, by filter, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from app.conftest import Clock
from app.words import claimed
from rota import ConfigError, JobNotFound, Rota, State
from rota.ids import new_id

STRANGE = ("nonsense", "", "0", "a" * 500, "\0", "\ud800", "%", "'; drop table rota_jobs; --", "null", "{}", 7, None)
"""What can be no id."""


def test_a_job_is_found_by_its_id(app: Rota) -> None:
    job = app.send("t", 1)
    found = app.get(job.id)
    assert (found.id, found.task, found.status, found.existed) == (job.id, "t", State.QUEUED, False)


def test_what_can_be_no_id_is_not_found(app: Rota) -> None:
    for id in STRANGE:
        for look in (app.get, app.cancel, app.retry, app.delete):
            with pytest.raises(JobNotFound, match=r"^no job "):
                look(id)  # type: ignore[arg-type]


def test_only_the_very_id_finds_a_job(app: Rota) -> None:
    id = app.send("t").id
    for other in (id.upper(), id.replace("-", ""), f"{{{id}}}", f" {id}", f"{id}\n"):
        with pytest.raises(JobNotFound):
            app.get(other)


def test_an_id_that_nobody_has_is_not_found(app: Rota) -> None:
    unknown = new_id()
    for look in (app.get, app.cancel, app.retry, app.delete):
        with pytest.raises(JobNotFound, match=rf"^no job {unknown}.*: it .*deleted, or .* \(see the keep_ settings\)"):
            look(unknown)


def test_facts_are_those_of_the_last_refresh(app: Rota) -> None:
    job = app.send("t")
    assert job.status is State.QUEUED
    app.get(job.id).cancel()
    assert job.status is State.QUEUED
    assert job.refresh().status is State.CANCELLED


def test_a_job_that_is_gone_cannot_be_refreshed(app: Rota) -> None:
    job = app.send("t")
    app.delete(job.id)
    with pytest.raises(JobNotFound):
        job.refresh()


def test_every_fact_can_be_read(clocked: Rota, clock: Clock) -> None:
    @clocked.task(name="fail", max_attempts=1)
    def fail() -> None:
        raise ValueError("no")

    begun = clock.now
    job = fail.using(queue="q", priority=2, key="k", delay=10).enqueue()
    clock.forward(20)
    clocked.run_one()
    job.refresh()
    assert (job.task, job.queue, job.priority, job.key, job.attempt, job.max_attempts) == ("fail", "q", 2, "k", 1, 1)
    assert (job.status, job.reason, job.created_at, job.finished_at) == (State.FAILED, "no", begun, clock.now)
    assert (job.run_at - begun).total_seconds() == 10
    assert repr(job) == f"<Job {job.id} fail failed>"


# -- many ---------------------------------------------------------------------------------------


def test_pages_go_through_every_job_once_the_newest_first(app: Rota) -> None:
    ids = [job.id for job in app.named("t").enqueue_many((number,) for number in range(523))]
    seen: list[str] = []
    while page := app.jobs(limit=100, before=seen[-1] if seen else None):
        assert len(page) == min(100, 523 - len(seen))
        seen += [job.id for job in page]
    assert seen == sorted(ids, reverse=True)


def test_a_page_stays_where_it_is_when_jobs_come_and_go(app: Rota) -> None:
    ids = sorted(job.id for job in app.named("t").enqueue_many((number,) for number in range(20)))
    first = app.jobs(limit=10)
    app.send("newer")
    app.delete(first[-1].id)
    assert [job.id for job in app.jobs(limit=100, before=first[-1].id)] == ids[9::-1]


def test_each_filter_narrows_the_choice(app: Rota) -> None:
    for queue in ("mail", "goods"):
        for task in ("pack", "ship"):
            app.named(task).using(queue=queue, key=f"{task} by {queue}").enqueue()
    app.cancel(app.jobs(queue="mail", task="ship")[0].id)

    def found(**which: Any) -> set[tuple[str, str]]:
        return {(job.task, job.queue) for job in app.jobs(**which)}

    assert found(queue="mail") == {("pack", "mail"), ("ship", "mail")}
    assert found(task="pack") == {("pack", "mail"), ("pack", "goods")}
    assert found(key="ship by goods") == {("ship", "goods")}
    assert found(status="cancelled") == {("ship", "mail")}
    assert found(status=["cancelled", State.QUEUED]) == {
        (task, queue) for task in ("pack", "ship") for queue in ("mail", "goods")
    }
    assert found(status="queued", queue="mail", task="ship") == set()
    assert found(task="unknown") == found(key="unknown") == set()


@pytest.mark.parametrize("state", [state for state in State if state is not State.HELD])
def test_jobs_are_found_in_each_state(app: Rota, state: State) -> None:
    job = app.named("t").using(delay=3600 if state is State.SCHEDULED else 0, max_attempts=1).enqueue()
    match state:
        case State.RUNNING:
            claimed(app)
        case State.SUCCEEDED:
            app.task(name="t")(lambda: None)
            app.run_one()
        case State.FAILED:
            app.run_one()
        case State.CANCELLED:
            job.cancel()
    assert [found.id for found in app.jobs(status=state.value)] == [job.id]
    assert app.jobs(status=[other for other in State if other is not state]) == []


def test_an_unknown_status_names_those_that_exist(app: Rota) -> None:
    for status in ("done", ["queued", "done"]):
        with pytest.raises(ConfigError, match=r"^no status is named 'done': the statuses are scheduled, queued, held, "):
            app.jobs(status=status)


def test_an_unknown_queue_names_those_that_exist(app: Rota) -> None:
    with pytest.raises(ConfigError, match=r"^no queue is named 'mial': .*; the queues are none yet$"):
        app.jobs(queue="mial")
    app.named("t").using(queue="mail").enqueue()
    app.task(name="ship", queue="goods")(print)
    with pytest.raises(ConfigError, match=r"the queues are 'goods', 'mail'$"):
        app.jobs(queue="mial")


def test_a_known_queue_may_have_no_such_job(app: Rota) -> None:
    app.named("t").using(queue="mail").enqueue()
    app.task(name="ship", queue="goods")(print)
    assert app.jobs(queue="mail", status="failed") == []
    assert app.jobs(queue="goods") == []


def test_a_limit_is_a_number_of_jobs(app: Rota) -> None:
    limits: list[Any] = [0, -1, True, 1.5, "all", None, 2**63]
    for limit in limits:
        with pytest.raises(ConfigError, match=r"^limit=.*: ask for one job or more"):
            app.jobs(limit=limit)


def test_a_page_begins_at_an_id(app: Rota) -> None:
    for before in STRANGE[:-1]:
        with pytest.raises(ConfigError, match=r"^before=.*: pass the id of the last job of the page before"):
            app.jobs(before=before)  # type: ignore[arg-type]
