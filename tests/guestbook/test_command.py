"""The one command: a server with a worker beside it, which loses no letter however it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from examples.guestbook.settings import asked
from mail.sinks import odd
from rota.mail import read_folder
from working import eventually

from .conftest import ADA

ROOT = Path(__file__).parents[2]
COMMANDS = {"module": ["-m", "examples.guestbook"], "folder": [str(ROOT / "examples" / "guestbook")]}


@contextmanager
def serving(folder: Path, *options: str, command: str = "module") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The guestbook as a process in this folder, and its address."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for each in ("GUESTBOOK_DATABASE", "GUESTBOOK_SMTP", "GUESTBOOK_SECRET", "GUESTBOOK_URL"):
        environment.pop(each, None)
    with (folder / "errors").open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, *COMMANDS[command], "--port", "0", *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, (folder / "errors").read_text()
        yield process, address[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def sign_up(address: str) -> str:
    """Sign up as a browser would, and answer the page that comes of it."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    token = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', browser.open(f"{address}/sign-up").read().decode())
    assert token is not None
    return str(browser.open(f"{address}/sign-up", urlencode({**ADA, "csrf_token": token[1]}).encode()).read().decode())


@pytest.mark.parametrize("command", COMMANDS)
def test_one_command_serves_and_sends(tmp_path: Path, command: str) -> None:
    with serving(tmp_path, command=command) as (process, address):
        assert "Look into your mail" in sign_up(address)
        [letter] = eventually(lambda: read_folder(tmp_path / "guestbook-outbox"))
        assert f"{address}/confirm/" in letter.as_string()
        eventually(lambda: "ran deliver" in (tmp_path / "errors").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (tmp_path / "guestbook.secret").stat().st_mode & 0o077 == 0


def test_a_letter_outlives_a_process_that_is_killed_while_the_mail_server_is_down(tmp_path: Path) -> None:
    with odd({"greeting": ["450 not now"] * 2}) as server:
        with serving(tmp_path, "--smtp", server.url) as (process, address):
            assert "Look into your mail" in sign_up(address)
            eventually(lambda: "failed deliver on attempt 1: " in (tmp_path / "errors").read_text())
            assert "450 not now" in (tmp_path / "errors").read_text()
            process.kill()
            process.wait()
        assert server.letters == []
        server.script.clear()
        with serving(tmp_path, "--smtp", server.url):
            [letter] = eventually(lambda: server.letters)
            assert letter.recipients == (ADA["email"],)


def test_what_cannot_be_served_is_said_in_a_line(tmp_path: Path) -> None:
    for options, said in (
        (["--database", "nonsense"], "guestbook: no store is known for 'nonsense'"),
        (["--host", "192.0.2.1"], "guestbook: nothing can listen on 192.0.2.1 port 0"),
    ):
        process = subprocess.run(
            [sys.executable, *COMMANDS["folder"], "--port", "0", *options], cwd=tmp_path, capture_output=True, text=True
        )
        assert (process.returncode, process.stderr.count("\n")) == (1, 1), process.stderr
        assert process.stderr.startswith(said)


@pytest.mark.parametrize(
    "options",
    [
        ("--url", "guestbook.example.com"),
        ("--url", "https://guestbook.example.com/of/ours"),
        ("--url", "https://[::1"),
        ("--port", "70000"),
        ("--form-limit", "0"),
    ],
)
def test_an_option_that_cannot_be_right_is_refused_before_anything_is_served(
    options: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        asked(options)
    assert f"argument {options[0]}: {options[1]!r} is no" in capsys.readouterr().err


def test_a_secret_that_can_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GUESTBOOK_SECRET", "secret")
    with pytest.raises(SystemExit, match="2"):
        asked([])
    assert "GUESTBOOK_SECRET can be guessed" in capsys.readouterr().err
