"""`rota limits`, and held jobs in the other commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Call, environment, run
from rota import Job, Limit, Retry, Rota

ROOM = {
    "name", "key", "tasks", "size", "declared", "set", "running", "held", "full", "opens_at", "started_at", "closed_until",
}  # fmt: skip

LIMITED = """
from rota import Limit, Rota

app = Rota()

@app.task(name="shop.call", rate=Limit("1/h", key=lambda tenant: tenant, name="partner"))
def call(tenant: str) -> None: ...

@app.task(name="shop.build", concurrency=2)
def build() -> None: ...
"""


@pytest.fixture
def limited(url: str) -> Iterator[list[Job[Any]]]:
    """Four jobs under a rate for each tenant: two ran, two are held."""
    with Rota(url) as app:

        @app.task(name="shop.call", rate=Limit("1/h", key=lambda tenant: tenant, name="partner"))
        def call(tenant: str) -> None: ...

        jobs = call.enqueue_many([("a",), ("b",), ("a",), ("a",)])
        assert len(app.drain()) == 2
        yield jobs


@pytest.fixture
def coded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that name an app with these limits in its code."""
    (tmp_path / "limited.py").write_text(LIMITED)
    monkeypatch.delitem(sys.modules, "limited", raising=False)  # of another test, on another store
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return ["--app", "limited:app", "--app-dir", str(tmp_path)]


def test_limits_are_listed_with_who_is_in_them(limited: list[Job[Any]], call: Call) -> None:
    heads, *lines = [line.split() for line in call("limits").splitlines()]
    assert heads == ["LIMIT", "KEY", "SIZE", "SET", "RUNNING", "HELD", "ROOM", "TASKS"]
    assert lines == [["partner", '"a"', "?", "-", "0", "2", "?", "-"], ["partner", '"b"', "?", "-", "0", "-", "?", "-"]]


def test_with_the_app_their_sizes_are_known(limited: list[Job[Any]], coded: list[str], call: Call) -> None:
    lines = [line.split() for line in call("limits", *coded).splitlines()[1:]]
    assert lines[0] == ["concurrency", "of", "shop.build", "-", "2", "-", "0", "-", "yes", "shop.build"]
    assert lines[1][:6] == ["partner", '"a"', "1/h", "-", "0", "2"]
    assert lines[1][6] == "in"


def test_limits_as_json_have_the_documented_fields(limited: list[Job[Any]], coded: list[str], call: Call) -> None:
    told = call.json("limits", *coded)
    assert set(told) == {"limits", "more"}
    assert set(told["limits"][1]) == ROOM
    room = told["limits"][1]
    assert (room["name"], room["key"], room["size"], room["held"], room["full"]) == ("partner", "a", "1/h", 2, True)
    wait = datetime.fromisoformat(room["opens_at"]) - datetime.fromisoformat(room["started_at"])
    assert (wait.total_seconds(), told["more"]) == (3600, 0)
    assert datetime.fromisoformat(room["started_at"]) <= datetime.now(UTC)
    short = call.json("limits", "--limit", "1", *coded)
    assert ([each["name"] for each in short["limits"]], short["more"]) == (["concurrency of shop.build"], 2)


def test_a_list_of_no_limits_says_so(call: Call) -> None:
    assert call("limits") == "no limits\n"
    assert call.json("limits") == {"limits": [], "more": 0}


def test_a_size_is_set_and_cleared(call: Call, coded: list[str]) -> None:
    assert call("limits", "set", "partner", "1/s", *coded) == "partner is 1/s until it is cleared; its code says 1/h\n"
    assert call.json("limits")["limits"][0]["set"] == "1/s"
    assert call("limits", "clear", "partner", *coded) == "partner was 1/s and is cleared: its code says 1/h\n"
    assert call("limits", "clear", "partner") == "nothing was set for partner\n"
    assert call("limits", "set", "other", "5") == "other is 5 until it is cleared; what its code says is not known here\n"


@pytest.mark.parametrize(("name", "size", "said"), [("partner", "5", "is a rate"), ("partnr", "5/s", "no limit is named")])
def test_what_cannot_be_set_is_refused_in_one_line(call: Call, coded: list[str], name: str, size: str, said: str) -> None:
    result = call.result("limits", "set", name, size, *coded)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert said in result.stderr


def test_a_held_job_shows_its_limit(limited: list[Job[Any]], coded: list[str], call: Call) -> None:
    held = limited[3]
    assert 'by partner "a"' in call("jobs", "--status", "held")
    assert 'partner, key "a"' in call("jobs", "show", held.id)
    assert call.json("jobs", "show", held.id)["held_by"] == {"limit": "partner", "key": "a"}
    assert call.json("stats")["states"]["held"] == 2
    told = call("jobs", "explain", held.id, *coded)
    assert "Limit 'partner' has no room for key \"a\" until " in told
    assert "It holds 2 jobs." in told
    assert call.json("jobs", "explain", held.id, *coded)["limit"]["size"] == "1/h"


def test_held_jobs_count_as_waiting(limited: list[Job[Any]], call: Call) -> None:
    problems = call.json("check", "--max-wait", "0", status=1)["problems"]
    assert ["has been held for" in each["text"] for each in problems if each["kind"] == "waiting"] == [True]


def test_a_held_job_is_cancelled_like_a_queued_one(limited: list[Job[Any]], call: Call) -> None:
    assert "cancelled (was held)" in call("jobs", "cancel", limited[2].id)
    assert call.json("limits")["limits"][0]["held"] == 1


def test_a_closed_room_says_for_how_long(url: str, call: Call, tmp_path: Path) -> None:
    with Rota(url) as app:

        @app.task(name="shop.call", concurrency=1)
        def busy() -> None:
            raise Retry(3600, limit=True)

        busy.enqueue()
        app.drain()
    assert "closed for " in call("limits")
    ended = run("limits", cwd=tmp_path, env=environment(ROTA_URL=url))
    assert (ended.returncode, "closed for " in ended.stdout) == (0, True)
