"""`rota jobs retry`, `cancel`, `delete` and `edit`."""

from __future__ import annotations

from typing import Any

import pytest

from cli.conftest import Call, Shop
from rota import JobNotFound, Rota, State, operate
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


# -- edit ---------------------------------------------------------------------------------------


def test_jobs_named_by_id_are_edited(shop: Shop, call: Call) -> None:
    said = call("jobs", "edit", shop.waiting.id, "--priority", "5", "--queue", "post", "--run-at", "2100-01-31T09:00+01:00")
    assert said == f"{shop.waiting.id}  edited (was queued, is scheduled)\n"
    row = shop.waiting.refresh().row
    assert (row.priority, row.queue, row.state) == (5, "post", State.SCHEDULED)
    assert shop.waiting.run_at.isoformat() == "2100-01-31T08:00:00+00:00"
    told = call.json("jobs", "edit", shop.waiting.id, "--delay", "0")
    assert told == {"changed": [{"id": shop.waiting.id, "before": "scheduled", "after": "queued"}], "next": None}


def test_an_edit_that_lacks_something_says_with_which_options_of_its_own(shop: Shop, call: Call) -> None:
    result = call.result("jobs", "edit", shop.waiting.id)
    assert (result.exit_code, "say what to change: --priority, --queue, --delay or --run-at" in result.stderr) == (2, True)
    result = call.result("jobs", "edit", "--priority", "5")
    assert (result.exit_code, "such as --status queued --from-queue mail" in result.stderr) == (2, True)


def test_a_job_that_is_finished_or_unknown_is_not_edited(shop: Shop, call: Call) -> None:
    result = call.result("jobs", "edit", shop.greeted.id, shop.waiting.id, NOWHERE, "--priority", "1")
    assert result.exit_code == 1
    assert "is succeeded, so it cannot be edited: retry it first" in result.stderr
    assert "there is no such job" in result.stderr
    assert shop.waiting.refresh().priority == 1


def test_a_filter_names_what_waits_by_the_queue_that_it_is_on(shop: Shop, call: Call) -> None:
    assert "edited 2 of 2 jobs" in call("jobs", "edit", "--from-queue", "mail", "--queue", "post", "--yes")
    assert {shop.waiting.refresh().queue, shop.later.refresh().queue} == {"post"}
    assert "edited 1 of 1 job" in call("jobs", "--queue", "post", "--status", "queued", "edit", "--priority", "2", "--yes")
    assert (shop.waiting.refresh().priority, shop.later.refresh().priority) == (2, 0)


@pytest.mark.parametrize(
    ("options", "status"), [([], 2), (["--delay", "1", "--run-at", "2100-01-01T00:00Z"], 1), (["--run-at", "soon"], 2)]
)
def test_what_no_job_can_be_edited_to_is_refused(shop: Shop, call: Call, options: list[str], status: int) -> None:
    call("jobs", "edit", shop.waiting.id, *options, status=status)


# -- many at a time -----------------------------------------------------------------------------


def test_a_dry_run_only_counts(shop: Shop, call: Call) -> None:
    assert call("jobs", "retry", "--queue", "bills", "--dry-run") == "would retry 2 jobs (2 failed)\n"
    told = call.json("jobs", "cancel", "--queue", "mail", "--dry-run")
    assert (told["dry_run"], told["total"], told["jobs"]["queued"], told["jobs"]["scheduled"]) == (True, 2, 1, 1)
    assert "no such jobs" in call("jobs", "delete", "--task", "nothing", "--dry-run")
    assert shop.refused[0].refresh().status is State.FAILED


def test_a_dry_run_by_ids_says_what_would_become_of_each(shop: Shop, call: Call) -> None:
    said = call("jobs", "edit", shop.waiting.id, shop.greeted.id, NOWHERE, "--priority", "1", "--dry-run").splitlines()
    assert said[0] == f"{shop.waiting.id}  would be edited (is queued)"
    assert said[1] == f"{shop.greeted.id}  would stay (is succeeded)"
    assert said[2] == f"{NOWHERE}  would stay (there is no such job)"
    assert shop.waiting.refresh().priority == 0
    assert call.json("jobs", "cancel", shop.waiting.id, "--dry-run")["total"] == 1


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(shop: Shop, call: Call) -> None:
    shop.greet.enqueue_many((str(number),) for number in range(10_100))
    result = call.result("jobs", "edit", "--status", "queued", "--priority", "3", "--yes")
    assert result.stderr.splitlines() == ["edit: 5000 of 10101 looked at", "edit: 10000 of 10101 looked at"]
    assert result.stdout == "edited 10101 of 10101 jobs\n"


def test_an_interrupted_change_says_how_to_go_on(shop: Shop, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = shop.greet.enqueue_many((str(number),) for number in range(1_200))
    real, calls = operate.edit, []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(operate, "edit", interrupted)
        result = call.result("jobs", "edit", "--status", "queued", "--priority", "3", "--yes")
    assert result.exit_code == 130
    assert result.stderr == f"edited 1000 of 1201 jobs; --before {jobs[200].id} goes on from there\n"
    said = call("jobs", "edit", "--status", "queued", "--priority", "3", "--yes", "--before", jobs[200].id)
    assert said == "edited 201 of 201 jobs\n"
    assert {job.priority for job in shop.app.jobs(status="queued", limit=2_000)} == {3}


@pytest.mark.parametrize("filter", [("--status", "queued"), ("--key", "one", "--status", "queued"), ("--task", "shop.greet")])
def test_what_goes_on_counts_and_asks_about_what_is_left_alone(shop: Shop, call: Call, filter: tuple[str, ...]) -> None:
    shop.waiting.cancel()
    shop.later.cancel()
    jobs = [shop.greet.using(key="one", key_until="started").enqueue(str(number)) for number in range(1)]
    jobs += shop.greet.enqueue_many((str(number),) for number in range(3))
    jobs += [shop.greet.using(key="two").enqueue("Eve")]
    left = 1 if "--key" in filter else 3
    said = call("jobs", "cancel", *filter, "--before", jobs[3].id, "--dry-run")
    assert said == f"would cancel {left} job{'s' if left > 1 else ''} ({left} queued)\n"
    result = call.result("jobs", "cancel", *filter, "--before", jobs[3].id, input="y\n")
    assert f"Cancel {left} job" in result.stdout
    assert result.stdout.endswith(f"cancelled {left} of {left} job{'s' if left > 1 else ''}\n")
    assert [job.refresh().status for job in jobs[3:]] == [State.QUEUED] * 2
    assert call("jobs", "cancel", *filter, "--before", jobs[0].id, "--yes") == "no such jobs\n"
    assert "no queue is named 'mial'" in call.result("jobs", "cancel", "--queue", "mial", "--before", jobs[0].id).stderr


def test_only_what_was_looked_at_and_not_changed_is_said_to_have_stayed(
    shop: Shop, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = [bill.retry() for bill in shop.refused] and shop.app.drain() and shop.greet.using(key="later").enqueue("Eve")
    assert again.id == shop.later.id
    shop.later.cancel()
    shop.greet.using(key="later").enqueue("Eve")

    def answer(*_: Any, **__: Any) -> bool:
        shop.refused[0].delete()
        return True

    monkeypatch.setattr("click.confirm", answer)
    said = call("jobs", "retry", "--status", "failed", "--status", "cancelled")
    assert said.splitlines() == [
        "retried 2 of 3 jobs",
        "  1 stayed: they changed meanwhile, run, or another unfinished job has their key",
        "  1 fewer than were counted: they changed, or came in, meanwhile",
    ]


def test_jobs_that_come_in_while_the_question_is_answered_stay(shop: Shop, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    new = []

    def answer(*_: Any, **__: Any) -> bool:
        new.append(shop.greet.enqueue("Eve"))
        return True

    monkeypatch.setattr("click.confirm", answer)
    assert "cancelled 1 of 1 job" in call("jobs", "cancel", "--status", "queued")
    assert (shop.waiting.refresh().status, new[0].status) == (State.CANCELLED, State.QUEUED)
