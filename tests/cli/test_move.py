"""`rota move` moves jobs from one store to another, tells how far it is, and goes on when it was killed."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cli.conftest import Call, command, environment, on_terminal
from cli.conftest import run as in_process
from fresh import fresh_url
from moves import contents, digest, fill, opened
from rota import Rota
from rota.ids import new_id
from rota.model import WorkerRow


@pytest.fixture(params=[("sqlite", "postgres"), ("postgres", "redis"), ("redis", "sqlite")], ids="-".join)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where jobs are, and where they are to go."""
    with ExitStack() as stack:
        found = []
        for name, kind in zip(("old", "new"), request.param, strict=True):
            (tmp_path / name).mkdir()
            found.append(stack.enter_context(fresh_url(kind, request, tmp_path / name)))
        yield found[0], found[1]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The URLs of a file with jobs in it, and of one that is not there."""
    source = f"sqlite:///{tmp_path / 'old.db'}"
    some(source, 3)
    return source, f"sqlite:///{tmp_path / 'new.db'}"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    for name in ("ROTA_URL", "ROTA_APP"):
        monkeypatch.delenv(name, raising=False)
    return Call()


def some(url: str, many: int) -> None:
    with Rota(url) as app:
        app.named("shop.some").enqueue_many([(n,) for n in range(many)])


def test_what_was_moved_is_said(urls: tuple[str, str], call: Call) -> None:
    source, target = urls
    fill(source, 3)
    assert re.match(r"would move \d+ jobs \(.*3 failed", call("move", "--from", source, "--to", target, "--dry-run"))
    said = call("move", "--from", source, "--to", target)
    assert re.search(r"^moved \d+ jobs from .* to ", said)
    assert re.search(r"^both have the same \d+ jobs: .* held, 1 running, ", said, re.MULTILINE)
    assert f"is {digest(target)}\n" in said
    assert "from now on; the old store keeps what it has, and takes no jobs" in said
    assert contents(target) == contents(source)
    assert "nothing is left to do" in call("move", "--from", source, "--to", target)


def test_json_tells_the_same(files: tuple[str, str], call: Call, tmp_path: Path) -> None:
    source, target = files
    planned = call.json("move", "--from", source, "--to", target, "--dry-run")
    assert (planned["dry_run"], planned["total"], planned["jobs"]["queued"]) == (True, 3, 3)
    moved = call.json("move", "--from", source, "--to", target)
    assert moved == {
        "from": source,
        "to": target,
        "jobs": {"scheduled": 0, "queued": 3, "held": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0},
        "total": 3,
        "attempts": 0,
        "written": 3,
        "digest": digest(source),
        "differences": [],
    }
    again = call.json("move", "--from", source, "--to", target)
    assert (again["total"], again["written"], again["digest"]) == (3, 0, None)


def test_the_old_store_says_where_its_jobs_are(files: tuple[str, str], call: Call) -> None:
    source, target = files
    call("move", "--from", source, "--to", target)
    result = call.result("send", "shop.some", "1", "--url", source)
    assert result.exit_code == 1
    assert f"the jobs of this store were moved to {target}" in result.stderr
    assert f"store: the jobs of this store were moved to {target}" in call("check", "--url", source, status=1)
    assert "3 jobs in" in call("stats", "--url", source)


def test_a_worker_on_the_old_store_ends_and_says_where_its_jobs_are(files: tuple[str, str], folder: Path, call: Call) -> None:
    source, target = files
    call("move", "--from", source, "--to", target)
    ended = in_process("worker", "--app", "shop:app", cwd=folder, env=environment(ROTA_URL=source))
    assert ended.returncode == 1
    assert f"the jobs of this store were moved to {target}" in ended.stderr


# -- refused ------------------------------------------------------------------------------------


def test_a_worker_in_the_way_is_one_line_and_status_1(files: tuple[str, str], call: Call) -> None:
    source, target = files
    with opened(source) as store:
        store.join(WorkerRow(new_id(), "mailer", "web-1", 4711, None, [], 1, 60_000_000, "1"))
    for more in ((), ("--dry-run",)):
        result = call.result("move", "--from", source, "--to", target, *more)
        assert (result.exit_code, result.stdout) == (1, "")
        [line] = result.stderr.splitlines()
        assert line.startswith("rota: workers run on sqlite:///")
        assert "mailer (process 4711 on web-1)" in line


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "Missing option '--from'"),
        (("--from", "sqlite:///old.db"), "say where the jobs go with --to"),
        (("--from", "sqlite:///old.db", "--to", "sqlite:///new.db", "--reopen"), "takes neither --to nor --dry-run"),
        (("--from", "sqlite:///old.db", "--dry-run", "--reopen"), "takes neither --to nor --dry-run"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(args: tuple[str, ...], words: str, call: Call) -> None:
    result = call.result("move", *args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_no_password_is_shown(tmp_path: Path, request: pytest.FixtureRequest, call: Call, files: tuple[str, str]) -> None:
    with fresh_url("postgres", request, tmp_path) as url:
        secret = url.replace("postgres@", "postgres:geheim@")
        assert secret != url
        said = call("move", "--from", files[0], "--to", secret)
        refused = call.result("send", "shop.some", "1", "--url", files[0])
    assert "geheim" not in said + refused.output
    assert "postgres@" in said


# -- how far it is ------------------------------------------------------------------------------


def test_lines_tell_how_far_it_is_where_there_is_no_terminal(files: tuple[str, str], tmp_path: Path) -> None:
    source, target = files
    some(source, 4_997)
    ended = in_process("move", "--from", source, "--to", target, "--json", cwd=tmp_path)
    assert ended.stderr.splitlines() == [f"{what}: {n}000 of 5000 jobs" for what in ("moved", "checked") for n in range(1, 6)]
    assert json.loads(ended.stdout)["written"] == 5_000


def test_a_bar_tells_how_far_it_is_on_a_terminal(files: tuple[str, str], tmp_path: Path) -> None:
    source, target = files
    some(source, 4_997)
    said = on_terminal("move", "--from", source, "--to", target, cwd=tmp_path, env=environment(TERM="xterm"), columns=200)
    assert re.search(r"moved .*5000/5000", said)
    assert re.search(r"checked .*5000/5000", said)
    assert "both have the same 5000 jobs: 5000 queued" in said


# -- killed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["moved: 1", "moved: 6", "moved: 12", "checked: 7", "checked: 12"])
def test_a_move_that_is_killed_goes_on_and_ends_with_the_same(line: str, urls: tuple[str, str], tmp_path: Path) -> None:
    source, target = urls
    fill(source, 1)
    some(source, 12_000)
    before = contents(source)
    asked = command("move", "--from", source, "--to", target)
    with subprocess.Popen(asked, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for said in process.stderr:
            if said.startswith(line):
                process.kill()
                break
    ended = in_process("move", "--from", source, "--to", target, "--json", cwd=tmp_path)
    moved = json.loads(ended.stdout)
    assert moved["differences"] == []
    assert contents(target) == before
    if line == "moved: 1":
        assert 0 < moved["written"] < moved["total"]


def test_ctrl_c_leaves_both_sealed_and_says_nothing_more(urls: tuple[str, str], tmp_path: Path, call: Call) -> None:
    source, target = urls
    some(source, 12_000)
    asked = command("move", "--from", source, "--to", target)
    with subprocess.Popen(asked, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(2)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in rest
    for url in urls:
        with opened(url) as store:
            assert store.sealed() is not None


# -- different, and given up --------------------------------------------------------------------


def test_a_difference_is_said_and_ends_with_status_1(files: tuple[str, str], tmp_path: Path, call: Call) -> None:
    source, target = files
    some(source, 11_997)
    asked = command("move", "--from", source, "--to", target, "--json")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(asked, cwd=tmp_path, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        process.stderr.readline()
        process.kill()
        process.communicate()
    with closing(sqlite3.connect(target.removeprefix("sqlite:///"))) as there, there:
        there.execute("update rota_seal set lifted = true")
        there.execute("update rota_jobs set priority = 7 where rowid = 3")
        there.execute("update rota_seal set lifted = false")
    result = call.result("move", "--from", source, "--to", target)
    assert result.exit_code == 1
    assert re.search(r"the job \S+ differs in priority\n", result.stdout)
    assert "so neither takes jobs: `rota move --from" in result.stderr
    [told] = call.json("move", "--from", source, "--to", target, status=1)["differences"]
    assert "differs in priority" in told
    assert "takes jobs again" in call("move", "--from", source, "--reopen")
    call("send", "shop.some", "1", "--url", source)


def test_a_store_whose_jobs_all_arrived_elsewhere_is_opened_only_when_asked_twice(files: tuple[str, str], call: Call) -> None:
    source, target = files
    call("move", "--from", source, "--to", target)
    result = call.result("move", "--from", source, "--reopen", input="n\n")
    assert result.exit_code == 1
    assert "where they may have run. Have them run here as well?" in result.stdout
    assert "nothing was changed" in result.stdout
    assert call.result("send", "shop.some", "1", "--url", source).exit_code == 1
    told = call.json("move", "--from", source, "--reopen", "--yes")
    assert (told["reopened"], told["to"], told["done"]) == (source, target, True)
    call("send", "shop.some", "1", "--url", source)
    assert "takes jobs" in call.result("move", "--from", source, "--reopen", "--yes").stderr
