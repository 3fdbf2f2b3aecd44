"""Names, arguments and errors that would turn a line around, or hide, are shown for what they are; JSON has them exactly."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Call, environment, run
from rota import Abandon, Limit, Rota
from rota.cli.logs import json_line, text_lines
from rota.cli.records import write_json
from rota.codec.text import one_line, visible
from working import eventually, working

TURNS = "\u202e"
HIDDEN = ("\u202e", "\u2066", "\u200b", "\u2028", "\ufeff", "\u00ad", "\U000e0041")
SEEN = ("é", "日本", "\u00a0", "नि\u200d", "👩\u200d🚀", "می\u200cرود")


@pytest.fixture
def odd(url: str) -> Iterator[Rota]:
    """An app all of whose names turn a line around, with a job that waits, one that failed and one that is held."""
    with Rota(url) as app:

        @app.task(name=f"shop.{TURNS}fail", queue=f"mail{TURNS}", max_attempts=1)
        def fail(text: str) -> None:
            raise Abandon(f"no {text}")

        @app.task(name=f"shop.{TURNS}held", queue=f"calls{TURNS}", concurrency=Limit(1, name=f"partner{TURNS}"))
        def held() -> None: ...

        fail.enqueue(TURNS)
        app.drain()
        fail.using(key=f"key{TURNS}").enqueue(TURNS)
        held.enqueue()
        app.set_limit(f"partner{TURNS}", 2)
        app.pause(f"mail{TURNS}", by=f"Ada{TURNS}")
        yield app


COMMANDS = [
    ("jobs",),
    ("jobs", "show"),
    ("jobs", "explain"),
    ("queues",),
    ("queues", "pause", f"other{TURNS}"),
    ("queues", "resume", f"mail{TURNS}"),
    ("limits",),
    ("limits", "set", f"partner{TURNS}", "3"),
    ("limits", "clear", f"partner{TURNS}"),
    ("top", "--once"),
    ("stats",),
]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: " ".join(args).replace(TURNS, ""))
def test_no_command_writes_them(odd: Rota, call: Call, args: tuple[str, ...]) -> None:
    named = (odd.jobs(status="failed")[0].id,) if args[0] == "jobs" and len(args) == 2 else ()
    result = call.result(*args, *named)
    assert result.exit_code == 0
    assert TURNS not in result.output
    assert "\\u202e" in result.output


def test_check_and_refusals_do_not_either(odd: Rota, call: Call) -> None:
    assert "by Ada\\u202e for" in call("check", status=1)
    result = call.result("jobs", "--queue", f"none{TURNS}")
    assert (result.exit_code, TURNS in result.output, "\\u202e" in result.output) == (1, False, True)
    assert TURNS not in call.result("jobs", "retry", "--queue", f"mail{TURNS}", input="n\n").output


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_workers_names_are_shown_too(odd: Rota, call: Call) -> None:
    with working(odd, name=f"builder{TURNS}", queues=[f"none{TURNS}"]):
        eventually(odd.workers)
        for command in ("workers", "stats", "top --once"):
            said = call(*command.split())
            assert TURNS not in said
            assert "builder\\u202e" in said


def test_json_has_them_exactly_and_its_text_has_escapes(odd: Rota, call: Call) -> None:
    said = call("queues", "--json")
    assert TURNS not in said
    [mail] = [each for each in json.loads(said)["queues"] if each["paused"]]
    assert (mail["name"], mail["paused_by"]) == (f"mail{TURNS}", f"Ada{TURNS}")
    assert call.json("jobs", "--status", "failed")["jobs"][0]["kwargs"] == {"text": TURNS}


@pytest.mark.parametrize("text", [*HIDDEN, *SEEN, "\ud800", "\x7f", "\x9b"])
def test_any_text_comes_back_from_json(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"text": f"a{text}b"})
    said = capsys.readouterr().out
    assert json.loads(said) == {"text": f"a{text}b"}
    assert (text in said) == (text in SEEN) or text == "\x7f"


@pytest.mark.parametrize("text", HIDDEN)
def test_what_hides_is_shown(text: str) -> None:
    assert visible(f"a{text}b") == one_line(f"a{text}b") == f"a{text.encode('ascii', 'backslashreplace').decode()}b"


@pytest.mark.parametrize("text", SEEN)
def test_what_scripts_need_stays(text: str) -> None:
    assert visible(text) == one_line(text) == text


def test_log_lines_and_traces_do_not_have_them() -> None:
    try:
        raise ValueError(TURNS)
    except ValueError as error:
        record = logging.LogRecord(
            "shop", logging.ERROR, __file__, 1, "met %s", (TURNS,), (ValueError, error, error.__traceback__)
        )
    said = text_lines(coloured=False)(record)
    assert "ValueError: \\u202e" in said
    assert (TURNS in said, said.count("\n") > 2) == (False, True)
    line = json_line(record)
    assert (TURNS in line, json.loads(line)["message"]) == (False, f"met {TURNS}")
    assert f"ValueError: {TURNS}" in json.loads(line)["trace"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_question_does_not_have_them(url: str, tmp_path: Path) -> None:
    file = tmp_path / f"jobs{TURNS}.db"
    with Rota(f"sqlite:///{file}") as app:
        app.named("shop.greet").enqueue()
    ended = run("jobs", "delete", "--status", "queued", cwd=tmp_path, env=environment(ROTA_URL=f"sqlite:///{file}"))
    assert ended.returncode == 1
    assert (TURNS in ended.stdout + ended.stderr, "jobs\\u202e.db" in ended.stdout) == (False, True)
