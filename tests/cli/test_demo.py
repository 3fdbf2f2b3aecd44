"""The demo adds up, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cli.conftest import command, environment, on_terminal, run
from rota import Rota, State
from rota.demo.effects import Effect
from rota.demo.play import next_steps
from rota.demo.shop import Books
from rota.demo.sums import sums
from rota.model import JobRow


def test_the_demo_in_a_pipe_adds_up_and_ends_by_itself(tmp_path: Path) -> None:
    env = environment(TMPDIR=str(tmp_path), PYTHONIOENCODING="ascii:strict")
    ended = run("demo", "--seconds", "2", cwd=tmp_path, env=env)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    assert "Everything adds up" in ended.stdout
    assert "worker risky was killed by SIGKILL" in ended.stdout
    assert "WRONG" not in ended.stdout
    assert "\x1b" not in ended.stdout
    assert "Next:" in ended.stdout
    assert not list(tmp_path.iterdir())


def test_what_to_do_next_begins_with_a_command_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [".venv/bin/rota", "demo"])
    assert [step.split()[0] for step in next_steps(None)] == [".venv/bin/rota"] * 4
    monkeypatch.setattr(sys, "argv", ["src/rota/__main__.py", "demo"])
    assert all(step.startswith(f"{sys.executable} -m rota ") for step in next_steps(None))
    (tmp_path / "rota").touch(mode=0o755)
    assert [step.split()[0] for step in next_steps(None)] == ["rota"] * 4


def test_the_demo_keeps_a_store_that_was_named(tmp_path: Path) -> None:
    with Rota(f"sqlite:///{tmp_path / 'demo.db'}") as app:  # what an interrupted run left does not count
        app.named("demo.send_mail").using(queue="demo-mail").enqueue_many([(1,)] * 20)
        app.named("demo.refund").using(queue="demo-office", delay=60).enqueue(2)
    ended = run("demo", "--seconds", "1", "--url", "sqlite:///demo.db", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    failed = run("jobs", "--status", "failed", "--url", "sqlite:///demo.db", cwd=tmp_path).stdout
    assert "demo.crash" in failed


def test_an_interrupted_demo_ends_its_workers_without_a_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("demo"), cwd=tmp_path, env=environment(TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        while b"running" not in process.stdout.readline():
            pass
        workers = psutil.Process(process.pid).children()
        assert workers
        os.kill(process.pid, signal.SIGINT)
        process.stdout.read()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 130
    assert not psutil.wait_procs(workers, timeout=5)[1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("columns", "encoding"), [(110, "utf-8"), (60, "ascii:strict")])
def test_the_demo_on_a_terminal_draws_what_happens(tmp_path: Path, columns: int, encoding: str) -> None:
    env = environment(TMPDIR=str(tmp_path), TERM="xterm-256color", PYTHONIOENCODING=encoding)
    told = on_terminal("demo", "--seconds", "1", cwd=tmp_path, env=env, columns=columns)
    for part in ("a shop's afternoon", "succeeded", "workers and reports", "everything adds up", "Next:"):
        assert part in told


def test_no_password_is_shown(tmp_path: Path) -> None:
    url = "postgresql://shop:secret@127.0.0.1:1/none"
    for args in (("demo",), ("stats",), ("jobs", "retry", "--status", "failed"), ("migrate",), ("worker", "--help")):
        ended = run(*args, *(() if "worker" in args else ("--url", url)), cwd=tmp_path)
        assert "secret" not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr


def test_memory_is_refused(tmp_path: Path) -> None:
    assert run("demo", "--url", "memory://", cwd=tmp_path).returncode == 2


# -- the sums themselves ------------------------------------------------------------------------


def books() -> tuple[Books, list[JobRow], list[Effect]]:
    """A small afternoon in which everything adds up."""
    kept = Books(calls=4, deduplicated=1, crashed=["crash"], opening=["mail"], express=["express"])
    kept.expected = {"express": State.SUCCEEDED, "mail": State.SUCCEEDED, "crash": State.FAILED}
    rows = [row("express"), row("mail"), row("crash", State.FAILED, "worker lost: gone")]
    effects = [began("express", 1), did("express", 2), began("mail", 3), did("mail", 4), began("crash", 5)]
    return kept, rows, effects


def row(id: str, state: State = State.SUCCEEDED, reason: str | None = None) -> JobRow:
    return JobRow(id, "demo.x", "demo-mail", state, 0, 0, 0, 1, 0, 5, "{}", finished_at=10, reason=reason)


def began(job: str, at: int) -> Effect:
    return Effect(job, "demo.x", 1, False, at)


def did(job: str, at: int) -> Effect:
    return Effect(job, "demo.x", 1, True, at)


def wrong(kept: Books, rows: list[JobRow], effects: list[Effect]) -> int:
    return sum(1 for each in sums(kept, rows, effects) if not each.holds)


def test_sums_that_add_up_hold() -> None:
    assert wrong(*books()) == 0


def test_a_job_that_vanished_is_noticed() -> None:
    kept, rows, effects = books()
    assert wrong(kept, rows[1:], effects) > 0


def test_work_done_twice_is_noticed() -> None:
    kept, rows, effects = books()
    assert wrong(kept, rows, [*effects, did("mail", 6)]) > 0


def test_work_of_a_failed_job_is_noticed() -> None:
    kept, rows, effects = books()
    assert wrong(kept, rows, [*effects, did("crash", 6)]) > 0


def test_a_body_after_the_end_is_noticed() -> None:
    kept, rows, effects = books()
    assert wrong(kept, rows, [*effects, began("mail", time.time_ns())]) > 0


def test_a_call_that_is_not_accounted_for_is_noticed() -> None:
    kept, rows, effects = books()
    kept.calls += 1
    assert wrong(kept, rows, effects) > 0
