"""`rota jobs retry`, `cancel` and `delete`."""

from __future__ import annotations

import pytest

from cli.conftest import Call, Shop
from rota import JobNotFound, Rota, State
from rota.clock import SECOND, machine_now
from rota.ids import new_id
from rota.model import Ask, WorkerRow

NOWHERE = "0198c0de-0000-7000-8000-000000000000"


def test_jobs_are_changed_by_their_ids(shop: Shop, call: Call) -> None:
    first, second = shop.refused
    call("jobs", "retry", first.id, second.id)
    assert first.refresh().status is second.refresh().status is State.QUEUED
    call("jobs", "cancel", first.id[-10:])
    assert first.refresh().status is State.CANCELLED
    call("jobs", "delete", second.id)
    with pytest.raises(JobNotFound):
        second.refresh()


def test_a_retry_gives_a_job_that_lost_all_its_workers_its_attempts_again(url: str, call: Call) -> None:
    with Rota(url) as app:
        app.task(name="t", max_attempts=2)(lambda: None)
        by_id, by_filter = app.send("t"), app.named("t").using(queue="other").enqueue()
        for job in (by_id, by_filter, by_id, by_filter):
            worker = WorkerRow(new_id(), "w", "here", 1, None, ["t"], 1, SECOND, "1")
            long_ago = machine_now() - 3600 * SECOND
            app.store.join(worker, long_ago)
            assert len(app.store.claim(Ask(worker.id, (job.queue,), 1), long_ago)) == 1
            assert len(app.store.lost(10).lost) == 1
        for job in (by_id, by_filter):
            assert (job.refresh().status, job.attempt) == (State.FAILED, 2)
            assert (job.reason or "").startswith("worker lost")
        call("jobs", "retry", by_id.id)
        call("jobs", "retry", "--status", "failed", "--yes")
        for job in (by_id, by_filter):
            assert (job.refresh().status, job.attempt) == (State.QUEUED, 0)
        app.drain()
        for job in (by_id, by_filter):
            assert (job.refresh().status, job.attempt) == (State.SUCCEEDED, 1)


def test_json_tells_each_jobs_state_before_and_after(shop: Shop, call: Call) -> None:
    told = call.json("jobs", "delete", shop.greeted.id, NOWHERE, status=1)
    assert told == {
        "changed": [
            {"id": shop.greeted.id, "before": "succeeded", "after": None},
            {"id": NOWHERE, "before": None, "after": None},
        ],
        "next": None,
    }


def test_an_unknown_job_and_a_refusal_end_with_status_1(shop: Shop, call: Call) -> None:
    result = call.result("jobs", "cancel", shop.greeted.id, shop.waiting.id)
    assert result.exit_code == 1
    assert "was succeeded already" in result.stderr
    assert shop.waiting.refresh().status is State.CANCELLED
    assert "no such job" in call.result("jobs", "retry", NOWHERE).stderr


def test_a_retry_is_refused_while_another_has_the_key(shop: Shop, call: Call) -> None:
    shop.later.cancel()
    again = shop.greet.using(key="later", delay=60).enqueue("Eve")
    result = call.result("jobs", "retry", shop.later.id)
    assert result.exit_code == 1
    assert "another unfinished job has its key" in result.stderr
    again.cancel()
    call("jobs", "retry", shop.later.id)


def test_a_filter_counts_and_asks(shop: Shop, call: Call) -> None:
    told = call("jobs", "retry", "--queue", "bills", input="n\n", status=1)
    assert "Retry 2 jobs (2 failed)" in told
    assert "nothing was changed" in told
    assert shop.refused[0].refresh().status is State.FAILED
    assert "retried 2 of 2 jobs" in call("jobs", "retry", "--queue", "bills", input="y\n")
    assert shop.refused[0].refresh().status is State.QUEUED


def test_yes_does_not_ask(shop: Shop, call: Call) -> None:
    told = call.json("jobs", "cancel", "--status", "queued", "--status", "scheduled", "--yes")
    assert {each["id"] for each in told["changed"]} == {shop.waiting.id, shop.later.id}


def test_nobody_to_ask_changes_nothing(shop: Shop, call: Call) -> None:
    result = call.result("jobs", "delete", "--status", "failed", input="")
    assert result.exit_code == 1
    assert "pass --yes" in result.stderr
    assert shop.refused[0].refresh().status is State.FAILED


@pytest.mark.parametrize("verb", ["retry", "cancel", "delete"])
def test_neither_ids_nor_a_filter_is_wrong_usage(shop: Shop, call: Call, verb: str) -> None:
    assert f"say which jobs to {verb}" in call.result("jobs", verb, "--yes").stderr
    call("jobs", verb, "--yes", status=2)
    call("jobs", verb, shop.waiting.id, "--queue", "mail", status=2)


def test_without_a_status_a_retry_takes_failed_jobs_alone(shop: Shop, call: Call) -> None:
    assert "no such jobs" in call("jobs", "retry", "--queue", "mail", "--yes")
    assert shop.greeted.refresh().status is State.SUCCEEDED


def test_without_a_status_a_cancel_takes_what_is_not_finished(shop: Shop, call: Call) -> None:
    assert "cancelled 2 of 2 jobs" in call("jobs", "cancel", "--queue", "mail", "--yes")
    assert shop.greeted.refresh().status is State.SUCCEEDED


def test_filters_may_stand_before_the_verb(shop: Shop, call: Call) -> None:
    call("jobs", "--queue", "bills", "--status", "failed", "delete", "--yes")
    assert {job["queue"] for job in call.json("jobs")["jobs"]} == {"mail"}


def test_a_key_is_a_filter(shop: Shop, call: Call) -> None:
    assert "cancelled 1 of 1 job" in call("jobs", "cancel", "--key", "later", "--yes")


def test_many_jobs_are_changed_in_steps(shop: Shop, call: Call) -> None:
    shop.greet.enqueue_many((str(number),) for number in range(1_200))
    assert "deleted 1201 of 1201 jobs" in call("jobs", "delete", "--status", "queued", "--yes")
