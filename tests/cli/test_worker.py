"""`rota worker`: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import command, environment, run
from rota import Rota, State

Enqueue = Callable[..., Any]
COLD_START = 0.4
"""Seconds of work from the start of a worker to the first line of the first body."""


@pytest.fixture
def app(url: str) -> Iterator[Rota]:
    with Rota(url) as app:
        app.store  # the tables are made before a worker starts
        yield app


@contextmanager
def worker(folder: Path, url: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker of the shop, which ends with the context if it has not before."""
    process = subprocess.Popen(
        command("worker", "--app", "shop:app", *options),
        cwd=folder,
        env=environment(ROTA_URL=url),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def stopped(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> list[str]:
    """End a worker as a deploy does, and return what it logged."""
    process.send_signal(number)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0
    return told.splitlines()


def test_jobs_are_run_and_told_of_in_lines(folder: Path, url: str, app: Rota) -> None:
    greeted, broken = app.send("shop.greet", "Ada"), app.named("shop.broken").using(max_attempts=2).enqueue()
    with worker(folder, url, "--name", "front") as process:
        assert greeted.wait(20).status is State.SUCCEEDED
        assert broken.wait(20).status is State.FAILED
        lines = stopped(process)
    text = "\n".join(lines)
    assert "worker front" in lines[0]
    assert f"shop: hello, Ada  [{greeted.id[-6:]}]" in text
    assert f"ran shop.greet  [{greeted.id[-6:]}, " in text
    assert "failed shop.broken on attempt 1: it broke" in text
    assert "attempt 2 of 2, no more attempts" in text
    assert "\x1b" not in text
    assert lines[-1].endswith("stopped")


def test_an_app_that_sets_up_logging_of_its_own_hides_no_line(folder: Path, url: str, app: Rota) -> None:
    own = {
        "version": 1,  # and every logger that is there already is disabled
        "formatters": {"own": {"format": "shop says %(message)s"}},
        "handlers": {"own": {"class": "logging.StreamHandler", "formatter": "own"}},
        "root": {"handlers": ["own"], "level": "INFO"},
    }
    shop = folder / "shop.py"
    shop.write_text(f"import logging.config\nlogging.config.dictConfig({own})\n{shop.read_text()}")
    greeted = app.send("shop.greet", "Ada")
    with worker(folder, url, "--name", "front") as process:
        assert greeted.wait(20).status is State.SUCCEEDED
        lines = stopped(process)
    assert any("worker front" in line for line in lines)  # Rota's lines are written by a thread, and so perhaps later
    assert "shop says hello, Ada" in lines
    assert any(f"ran shop.greet  [{greeted.id[-6:]}, " in line for line in lines)
    assert lines[-1].endswith("stopped")


def test_jobs_are_told_of_in_json(folder: Path, url: str, app: Rota) -> None:
    greeted, broken = app.send("shop.greet", "é\n"), app.named("shop.broken").using(max_attempts=1).enqueue()
    with worker(folder, url, "--log-format", "json") as process:
        greeted.wait(20)
        broken.wait(20)
        lines = [json.loads(line) for line in stopped(process)]
    outcomes = {line["id"]: line for line in lines if "event" in line}
    fields = {"at", "level", "message", "event", "id", "task", "queue", "attempt", "max_attempts", "took", "wait", "reason"}
    assert set(outcomes[greeted.id]) == fields
    assert outcomes[greeted.id]["event"] == "succeeded"
    assert (outcomes[broken.id]["event"], outcomes[broken.id]["reason"]) == ("failed", "it broke")
    said = next(line for line in lines if line.get("logger") == "shop")
    assert (said["id"], said["task"], said["attempt"], said["message"]) == (greeted.id, "shop.greet", 1, "hello, é\n")


def test_only_named_queues_are_served(folder: Path, url: str, app: Rota) -> None:
    mail, other = app.named("shop.greet").using(queue="mail").enqueue("Ada"), app.send("shop.greet", "Bob")
    with worker(folder, url, "--queues", " mail, reports,", "--log-level", "warning") as process:
        assert mail.wait(20).status is State.SUCCEEDED
        lines = stopped(process)
    assert other.refresh().status is State.QUEUED
    [warning] = lines  # of a name that may be misspelt, since neither a job nor a task has it
    assert warning[8:].startswith(" warning: no job is on queue 'reports', which this worker serves, and no task ")


def test_ctrl_c_stops_without_a_traceback(folder: Path, url: str, app: Rota) -> None:
    running = app.send("shop.slow", 30.0)
    with worker(folder, url, "--shutdown-timeout", "30s") as process:
        until(lambda: running.refresh().status is State.RUNNING)
        lines = stopped(process, signal.SIGINT)  # the body looks whether it should stop
    assert not any("Traceback" in line for line in lines)
    assert any(line.endswith("another signal hands them back at once") for line in lines)
    assert running.refresh().attempt <= 1


def test_a_standard_error_stream_that_is_gone_stops_nothing(folder: Path, url: str, app: Rota) -> None:
    with worker(folder, url) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.stderr.close()
        for name in ("Ada", "Bob"):
            assert app.send("shop.greet", name).wait(20).status is State.SUCCEEDED
        process.terminate()
        assert process.wait(20) == 0


def test_a_standard_error_stream_that_nobody_reads_stops_nothing(folder: Path, url: str, app: Rota) -> None:
    task = app.named("shop.greet")
    with worker(folder, url) as process:  # its lines are not read, and a pipe holds 64 kB of them
        jobs = task.enqueue_many([("Ada " * 20,)] * 1_500)
        assert jobs[-1].wait(30).status is State.SUCCEEDED
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 0


def test_a_closed_standard_error_stream_stops_nothing(folder: Path, url: str, app: Rota) -> None:
    shell = f"exec {' '.join(command('worker', '--app', 'shop:app'))} 2>&-"
    with subprocess.Popen(["sh", "-c", shell], cwd=folder, env=environment(ROTA_URL=url)) as process:
        try:
            assert app.send("shop.greet", "Ada").wait(20).status is State.SUCCEEDED
        finally:
            process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--concurrency", "0"), 2),
        (("--concurrency", "many"), 2),
        (("--lease", "soon"), 2),
        (("--log-level", "loud"), 2),
        (("--lease", "0.1s"), 1),
        (("--poll", "0"), 1),
        (("--queues", ","), 1),
    ],
)
def test_a_setting_that_cannot_be_right_is_told_in_a_line(tmp_path: Path, options: tuple[str, ...], status: int) -> None:
    (tmp_path / "shop.py").write_text("from rota import Rota\napp = Rota('memory://')\n")
    ended = run("worker", "--app", "shop:app", *options, cwd=tmp_path)
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr
    assert options[0].strip("-").replace("-", "_") in ended.stderr.splitlines()[-1].replace("-", "_")


def test_an_app_has_to_be_named(tmp_path: Path) -> None:
    ended = run("worker", cwd=tmp_path, env=environment(ROTA_URL="sqlite:///jobs.db"))
    assert (ended.returncode, "--app module:attribute" in ended.stderr) == (2, True)


def test_a_worker_begins_fast(tmp_path: Path) -> None:
    """Its own work until then is measured, not the time that passes: other tests run beside this one."""
    (tmp_path / "quick.py").write_text(
        "import os, time\nfrom rota import Rota\napp = Rota('sqlite:///jobs.db')\n"
        "@app.task\ndef begin() -> None:\n    os.write(1, str(time.process_time()).encode())\n    os._exit(0)\n"
    )
    took = []
    for _ in range(3):
        with Rota(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
            app.named("quick.begin").using(priority=len(took)).enqueue()  # the newest first: the ones before are running
        took.append(float(run("worker", "--app", "quick:app", cwd=tmp_path).stdout))
    assert min(took) < COLD_START


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_does_not_import_what_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import sys\nfrom rota import Rota\napp = Rota('sqlite:///jobs.db')\n"
        "@app.task\ndef loaded() -> None:\n    print(*sys.modules)\n    sys.stdout.flush()\n    import os; os._exit(0)\n"
    )
    with Rota(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        app.send("shop.loaded")
    modules = set(run("worker", "--app", "shop:app", cwd=tmp_path, env=environment(**os_variables())).stdout.split())
    assert "rota.worker.worker" in modules
    assert not modules & {"rich", "asyncio", "psycopg", "rota.demo", "rota.cli.jobs"}


def os_variables() -> dict[str, str]:
    return {"PYTHONDONTWRITEBYTECODE": "1"} if os.environ.get("PYTHONDONTWRITEBYTECODE") else {}
