"""`rota jobs` and `rota jobs show`."""

from __future__ import annotations

from contextvars import ContextVar, copy_context

from cli.conftest import Call, Shop
from rota import Rota

JOB = {
    "id", "task", "queue", "status", "priority", "key", "attempt", "max_attempts", "args", "kwargs", "created_at", "run_at",
    "started_at", "finished_at", "took", "reason", "result", "progress", "worker", "cancelling", "held_by",
    "context",
}  # fmt: skip


def test_jobs_are_listed_the_newest_first(shop: Shop, call: Call) -> None:
    ids = [line.split()[0] for line in call("jobs").splitlines()[1:]]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 6


def test_filters_narrow_the_list(shop: Shop, call: Call) -> None:
    def ids(*args: str) -> set[str]:
        return {job["id"] for job in call.json("jobs", *args)["jobs"]}

    assert ids("--status", "failed") == {job.id for job in shop.refused}
    assert ids("--status", "FAILED", "--status", "cancelled") == {job.id for job in shop.refused} | {shop.cancelled.id}
    assert ids("--key", "later") == {shop.later.id}
    assert ids("--queue", "mail", "--task", "shop.greet", "--status", "queued") == {shop.waiting.id}


def test_pages_follow_one_another(shop: Shop, call: Call) -> None:
    seen = []
    before: list[str] = []
    while True:
        page = call.json("jobs", "--limit", "4", *before)
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        before = ["--before", page["next"]]
    assert len(seen) == len(set(seen)) == 6


def test_a_list_of_nothing_says_so(call: Call) -> None:
    assert call("jobs") == "no jobs\n"
    assert call.json("jobs") == {"jobs": [], "next": None}
    assert call("jobs", "--status", "failed") == "no such jobs\n"


def test_a_queue_that_never_was_is_refused(shop: Shop, call: Call) -> None:
    result = call.result("jobs", "--queue", "mial")
    assert result.exit_code == 1
    assert "mial" in result.stderr
    assert "mail" in result.stderr


def test_json_has_the_documented_fields(shop: Shop, call: Call) -> None:
    (job,) = call.json("jobs", "--status", "succeeded")["jobs"]
    assert set(job) == JOB
    assert job["args"] == []
    assert job["kwargs"] == {"name": "Ada", "punctuation": "?"}
    assert job["result"] == "hello, Ada?"
    assert job["status"] == "succeeded"
    assert job["finished_at"].endswith("+00:00")
    assert 0 <= job["took"] < 5


def test_show_tells_everything(shop: Shop, call: Call) -> None:
    told = call("jobs", "show", shop.refused[0].id)
    for part in (
        shop.refused[0].id,
        "shop.bill",
        "failed",
        "bills",
        "1 of 5",
        "order 1 was refunded",
        "order = 1",
        "attempt 1: failed",
        f"rota jobs retry {shop.refused[0].id}",
    ):
        assert part in told


def test_show_tells_what_a_job_carries_along(url: str, call: Call) -> None:
    tenant: ContextVar[object] = ContextVar("tenant")
    with Rota(url, context=[tenant]) as app:
        context = copy_context()
        context.run(tenant.set, {"name": "acme"})
        job, plain = context.run(app.send, "t"), app.send("t")
    assert "  carried    tenant = {'name': 'acme'}\n" in call("jobs", "show", job.id)
    assert "carried" not in call("jobs", "show", plain.id)
    assert [call.json("jobs", "show", each.id)["context"] for each in (job, plain)] == [{"tenant": {"name": "acme"}}, None]


def test_show_as_json_has_the_attempts_with_their_errors(shop: Shop, call: Call) -> None:
    told = call.json("jobs", "show", shop.refused[0].id)
    assert set(told) == JOB | {"attempts"}
    (attempt,) = told["attempts"]
    assert set(attempt) == {"attempt", "outcome", "ended_at", "took", "worker", "error"}
    assert attempt["outcome"] == "failed"
    assert attempt["error"]["message"] == "order 1 was refunded"
    assert set(attempt["error"]) == {"type", "message", "trace"}


def test_explain_says_why_a_job_is_not_running(shop: Shop, call: Call) -> None:
    told = call("jobs", "explain", shop.later.id)
    assert told.startswith("shop.greet  scheduled\n  It is due at ")
    assert "No worker is alive" in told
    assert "order 1 was refunded" in call("jobs", "explain", shop.refused[0].id[-8:])


def test_explain_as_json_has_the_documented_fields(shop: Shop, call: Call) -> None:
    told = call.json("jobs", "explain", shop.waiting.id)
    assert set(told) == {
        "id",
        "task",
        "queue",
        "status",
        "run_at",
        "sentences",
        "limit",
        "holders",
        "ahead",
        "paused",
        "paused_until",
    }
    assert (told["status"], told["ahead"], told["limit"], told["holders"]) == ("queued", 0, None, [])
    assert told["sentences"][-1] == "No worker is alive: start one with rota worker."


def test_the_end_of_an_id_is_enough(shop: Shop, call: Call) -> None:
    assert call.json("jobs", "show", shop.greeted.id[-8:])["id"] == shop.greeted.id
    assert call.json("jobs", "show", shop.greeted.id.upper())["id"] == shop.greeted.id


def test_an_unknown_id_is_refused_in_one_line(shop: Shop, call: Call) -> None:
    for id, said in (("0198c0de-0000-7000-8000-000000000000", "no job"), ("zzzzzz", "give the whole id"), ("a", "too short")):
        result = call.result("jobs", "show", id)
        assert result.exit_code == 1
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_nothing_in_a_job_can_move_the_cursor_or_begin_a_line(shop: Shop, call: Call) -> None:
    shop.greet.using(delay=60).enqueue("\x1b[2J\nforged line \x07")
    for told in (call("jobs", "--limit", "1"), call("jobs", "show", call.json("jobs", "--limit", "1")["jobs"][0]["id"])):
        assert "\x1b" not in told
        assert "\x07" not in told
        assert not any(line.startswith("forged") for line in told.splitlines())
