"""`rota queues`, and what other commands say of a paused queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Call, Shop, environment, on_terminal
from rota import State
from working import eventually, working

QUEUE = {"name", "states", "jobs", "oldest_run_at", "paused", "paused_at", "paused_until", "paused_by"}


def queue(call: Call, name: str) -> dict[str, Any]:
    [found] = [each for each in call.json("queues")["queues"] if each["name"] == name]
    assert set(found) == QUEUE
    return dict(found)


def test_queues_are_listed_with_their_jobs(shop: Shop, call: Call) -> None:
    heads, mail = [line.split() for line in call("queues").splitlines()]
    assert heads == ["QUEUE", "SCHEDULED", "QUEUED", "RUNNING", "OLDEST", "PAUSED"]
    assert mail[:4] == ["mail", "1", "1", "-"]
    assert mail[5] == "-"
    told = queue(call, "mail")
    assert (told["states"], told["jobs"]) == ({"scheduled": 1, "queued": 1, "held": 0, "running": 0}, 2)
    assert datetime.fromisoformat(told["oldest_run_at"]) == shop.waiting.run_at


def test_where_there_are_no_queues_that_is_said(call: Call) -> None:
    assert call("queues") == "no queues\n"
    assert call.json("queues") == {"queues": []}


def test_a_queue_is_paused_until_it_is_resumed(shop: Shop, call: Call) -> None:
    assert call("queues", "pause", "mail", "--by", "Ada") == "mail is paused until it is resumed; 1 due job waits there\n"
    told = queue(call, "mail")
    assert (told["paused"], told["paused_until"], told["paused_by"]) == (True, None, "Ada")
    assert " by Ada" in call("queues")
    assert shop.app.drain() == []
    assert call("queues", "resume", "mail") == "mail goes on; 1 due job waits there\n"
    assert call("queues", "resume", "mail") == "mail was not paused\n"
    assert len(shop.app.drain()) == 1


def test_a_queue_is_paused_for_a_while_and_until_a_moment(shop: Shop, call: Call) -> None:
    call("queues", "pause", "mail", "--for", "10m")
    told = queue(call, "mail")
    length = datetime.fromisoformat(told["paused_until"]) - datetime.fromisoformat(told["paused_at"])
    assert length == timedelta(minutes=10)
    assert told["paused_by"]
    assert " left" in call("queues")
    said = call("queues", "pause", "mail", "--until", "2100-01-31T09:00+01:00")
    assert said.startswith("mail is paused until 2100-01-31 08:00:00+00:00; ")
    assert queue(call, "mail")["paused_until"] == "2100-01-31T08:00:00+00:00"


def test_a_pause_that_is_over_already_is_told_as_such(shop: Shop, call: Call) -> None:
    said = call("queues", "pause", "mail", "--for", "0.000001")
    assert said == "mail was paused, and goes on already; 1 due job waits there\n"
    assert call.json("queues", "pause", "mail", "--for", "0.000001")["paused"] is False


def test_json_tells_the_queue_after_a_pause_and_a_resume(shop: Shop, call: Call) -> None:
    told = call.json("queues", "pause", "mail")
    assert (set(told), told["paused"], told["jobs"]) == (QUEUE, True, 2)
    assert call.json("queues", "resume", "mail")["paused"] is False


def test_a_queue_that_nobody_knows_is_paused_and_that_is_said(shop: Shop, call: Call) -> None:
    result = call.result("queues", "pause", "mial")
    assert result.exit_code == 0
    assert result.stdout == "mial is paused until it is resumed; no due job waits there\n"
    assert "no unfinished job is on queue 'mial'" in result.stderr
    assert "the queues that are known are: mail" in result.stderr
    assert shop.app.store.paused().queues == {"mial"}


def test_what_is_no_end_is_refused(shop: Shop, call: Call) -> None:
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    result = call.result("queues", "pause", "mail", "--until", past)
    assert (result.exit_code, "that moment is past" in result.stderr) == (1, True)
    for options in (["--for", "soon"], ["--until", "2030-01-31T09:00"], ["--for", "5m", "--until", "2100-01-01T00:00Z"]):
        assert call.result("queues", "pause", "mail", *options).exit_code == 2
    assert call.result("queues", "pause", "mail", "--for", "0").exit_code == 1
    assert shop.app.store.pauses() == []


def test_check_tells_of_a_pause_and_is_content(shop: Shop, call: Call) -> None:
    assert "unserved-queue" in call("check", status=1)
    call("queues", "pause", "mail", "--by", "Ada")
    said = call("check", "--max-wait", "0")
    assert said.startswith("all is well\npaused: queue 'mail' has been paused by Ada for ")
    assert said.endswith(" (2 jobs)\n")
    told = call.json("check")
    assert (told["ok"], [each["name"] for each in told["paused"]]) == (True, ["mail"])


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_on_a_terminal_what_is_said_is_broken_between_words(shop: Shop, url: str, tmp_path: Path) -> None:
    for number in range(30):
        shop.greet.using(queue=f"a-queue-with-a-long-name-{number:02}").enqueue("Ada")
    shop.app.pause("mail", by="Ada")
    with working(shop.app, queues=["mail"]):
        eventually(shop.app.workers)
    on = {"cwd": tmp_path, "env": environment(ROTA_URL=url, NO_COLOR="1"), "columns": 80}
    said = on_terminal("check", **on, status=1).replace("\r", "").splitlines()
    assert said[0].startswith("unserved-queue: no worker is alive, and jobs wait on")
    assert all(line.startswith("  ") for line in said[1:-1])
    assert said[-1].startswith("paused: queue 'mail' has been paused by Ada for ")
    text = " ".join(line.strip() for line in said[:-1])
    assert text.endswith("'a-queue-with-a-long-name-09' and 20 others: start one with rota worker (30 jobs)")
    assert max(len(line) for line in said) <= 80
    said = on_terminal("jobs", "explain", shop.waiting.id, **on).replace("\r", "").splitlines()
    assert all(line.startswith("  ") and len(line) <= 80 for line in said[1:])


def test_check_finds_a_pause_that_was_forgotten(shop: Shop, call: Call) -> None:
    call("queues", "pause", "mail")
    [problem] = call.json("check", "--max-pause", "0", status=1)["problems"]
    assert problem["kind"] == "paused"
    call("check", "--max-pause", "1h")


def test_explain_names_the_pause(shop: Shop, call: Call) -> None:
    call("queues", "pause", "mail", "--for", "10m", "--by", "Ada")
    assert "Queue 'mail' has been paused by Ada for " in call("jobs", "explain", shop.waiting.id)
    told = call.json("jobs", "explain", shop.waiting.id)
    assert told["paused"] is True
    assert datetime.fromisoformat(told["paused_until"]) > datetime.now(UTC)
    assert call.json("jobs", "explain", shop.greeted.id)["paused"] is False
    assert shop.waiting.refresh().status is State.QUEUED
