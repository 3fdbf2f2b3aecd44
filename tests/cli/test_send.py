"""`rota send`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Call, environment, run


def sent(call: Call, *args: str) -> dict[str, Any]:
    told: dict[str, Any] = call.json("send", *args)
    return told


def test_the_id_is_printed(call: Call) -> None:
    id = call("send", "shop.greet").strip()
    assert call.json("jobs", "show", id)["task"] == "shop.greet"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("42", 42),
        ("Ada", "Ada"),
        ('"42"', "42"),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("", ""),
        ("é", "é"),
        ("{broken", "{broken"),
    ],
)
def test_an_argument_is_json_where_it_is_json_and_else_text(call: Call, written: str, value: object) -> None:
    assert sent(call, "shop.greet", written)["args"] == [value]


def test_arguments_that_begin_with_a_dash_go_after_two(call: Call) -> None:
    id = call("send", "shop.greet", "--queue", "mail", "--", "-5", "--x").strip()
    assert call.json("jobs", "show", id)["args"] == [-5, "--x"]
    call("send", "shop.greet", "--nonsense", status=2)


def test_arguments_as_json(call: Call) -> None:
    told = sent(call, "shop.greet", "--json-args", '[1, "x"]', "--kwargs", '{"name": "Ada"}')
    assert (told["args"], told["kwargs"]) == ([1, "x"], {"name": "Ada"})


@pytest.mark.parametrize(
    "args",
    [
        ("--json-args", "{}"),
        ("--json-args", "["),
        ("--kwargs", "[]"),
        ("--kwargs", "{"),
        ("--json-args", "[]", "more"),
        ("--run-at", "2030-01-31T09:00"),
        ("--run-at", "tomorrow"),
        ("--delay", "soon"),
        ("--max-attempts", "0"),
        ("--priority", "high"),
    ],
)
def test_what_cannot_be_right_is_wrong_usage(call: Call, args: tuple[str, ...]) -> None:
    call("send", "shop.greet", *args, status=2)
    assert call.json("jobs")["jobs"] == []


def test_options_are_the_jobs_own(call: Call) -> None:
    told = sent(
        call, "shop.greet", "--queue", "mail", "--priority", "-7", "--max-attempts", "2", "--run-at", "2040-01-31T09:00+01:00"
    )
    assert (told["queue"], told["priority"], told["max_attempts"], told["status"]) == ("mail", -7, 2, "scheduled")
    assert datetime.fromisoformat(told["run_at"]) == datetime.fromisoformat("2040-01-31T08:00+00:00")


def test_both_delay_and_moment_are_refused(call: Call) -> None:
    call("send", "shop.greet", "--delay", "5m", "--run-at", "2040-01-31T09:00Z", status=1)


def test_a_key_that_waits_already_is_told(call: Call) -> None:
    first = sent(call, "shop.greet", "--key", "one", "--delay", "1h")
    again = call.result("send", "shop.greet", "--key", "one", "--json")
    assert first["existed"] is False
    assert first["id"] in again.stdout
    assert '"existed": true' in again.stdout
    assert "none was added" in again.stderr


def test_with_the_app_arguments_are_checked(folder: Path) -> None:
    env = environment(ROTA_URL="sqlite:///jobs.db", ROTA_APP="shop:app")
    refused = run("send", "shop.greet", "1", "2", cwd=folder, env=env)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "greet(name)" in refused.stderr
    assert run("send", "shop.greet", "Ada", cwd=folder, env=env).returncode == 0
    meant = run("send", "shop.gret", "Ada", cwd=folder, env=env)
    assert "did you mean shop.greet?" in meant.stderr
