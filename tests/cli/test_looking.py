"""`rota stats`, `check`, `purge`, `migrate` and `bench`."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Call, Shop, environment, run

STATES = ["scheduled", "queued", "held", "running", "succeeded", "failed", "cancelled"]


def test_stats_shows_queues_states_and_the_oldest_wait(shop: Shop, call: Call) -> None:
    told = call("stats")
    assert "6 jobs" in told
    bills = next(line for line in told.splitlines() if line.startswith("bills")).split()
    assert bills == ["bills", "-", "-", "-", "-", "2", "-"]
    assert "The oldest due job has waited" in told
    assert "No worker is at work." in told


def test_stats_as_json_has_the_documented_fields(shop: Shop, call: Call) -> None:
    told = call.json("stats")
    assert set(told) == {"states", "counts", "oldest_wait", "workers", "store"}
    assert list(told["states"]) == STATES
    assert told["states"] == dict.fromkeys(STATES, 0) | {
        "scheduled": 1,
        "queued": 1,
        "succeeded": 1,
        "failed": 2,
        "cancelled": 1,
    }
    assert set(told["counts"][0]) == {"queue", "task", "status", "jobs", "oldest_run_at"}
    assert sum(count["jobs"] for count in told["counts"]) == 6
    assert told["oldest_wait"] >= 0


def test_stats_of_an_empty_store(call: Call) -> None:
    assert call("stats").startswith("0 jobs in ")
    assert call.json("stats")["oldest_wait"] is None


def test_check_is_quiet_and_fine_where_all_is_well(call: Call) -> None:
    assert call("check") == "all is well\n"
    assert call.json("check") == {"ok": True, "problems": [], "paused": []}


def test_check_ends_with_status_1_where_there_is_a_problem(shop: Shop, call: Call) -> None:
    assert "unserved-queue" in call("check", status=1)
    told = call.json("check", "--max-wait", "0s", status=1)
    assert told["ok"] is False
    assert {"unserved-queue", "waiting"} <= {problem["kind"] for problem in told["problems"]}
    assert set(told["problems"][0]) == {"kind", "text", "jobs"}
    call("check", "--max-wait", "soon", status=2)


def test_purge_deletes_what_is_old_enough(shop: Shop, call: Call) -> None:
    assert "no finished job is old enough" in call("purge")
    assert call.json("purge", "--failed", "0", "--dry-run") == {"dry_run": True, "jobs": {"failed": 2}, "total": 2}
    assert "would delete 2 jobs (2 failed)" in call("purge", "--failed", "0", "--dry-run")
    assert len(shop.app.jobs(status="failed")) == 2
    assert "nothing was deleted" in call("purge", "--failed", "0", input="n\n", status=1)
    assert "deleted 2 jobs (2 failed)" in call("purge", "--failed", "0", "--yes")
    assert call.json("purge", "--succeeded", "0", "--cancelled", "0", "--yes")["total"] == 2
    assert {job.status for job in shop.app.jobs()} == {"queued", "scheduled"}


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_migrate_makes_the_tables_and_may_run_again(call: Call) -> None:
    assert "are those of this version" in call("migrate")
    assert "are those of this version" in call("migrate")
    assert call("jobs") == "no jobs\n"


def test_migrate_prints_sql_that_makes_the_tables_and_touches_nothing(tmp_path: Path) -> None:
    ended = run("migrate", "--url", "sqlite:///never.db", "--sql", cwd=tmp_path)
    assert not (tmp_path / "never.db").exists()
    database = sqlite3.connect(":memory:")
    database.executescript(ended.stdout)
    tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    database.close()
    assert "rota_jobs" in tables


def test_a_file_that_is_not_there_is_not_made_by_a_look(tmp_path: Path) -> None:
    for args in (("jobs",), ("stats",), ("check",), ("purge",), ("jobs", "delete", "--status", "failed", "--yes")):
        ended = run(*args, "--url", "sqlite:///typo.db", cwd=tmp_path)
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
        assert "there is no SQLite file typo.db" in ended.stderr
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_tables_that_are_not_there_are_told_of_with_what_makes_them(url: str, tmp_path: Path) -> None:
    ended = run("stats", "--url", url, cwd=tmp_path)
    assert ended.returncode == 1
    assert "nothing was enqueued there yet; `rota migrate` makes" in ended.stderr
    assert ("seen from" in ended.stderr) == url.startswith("sqlite:")  # only a file's place depends on the directory


def test_bench_without_a_checkout_says_what_to_do(tmp_path: Path) -> None:
    # The package under test lies in a checkout, so it is made to believe that it was installed elsewhere.
    code = """
import rota
rota.__file__ = "/nowhere/site-packages/rota/__init__.py"
from rota.cli.group import rota as commands
commands(["bench"])
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "get one and run `rota bench`" in ended.stderr


def test_where_the_jobs_are_has_to_be_said(tmp_path: Path) -> None:
    ended = run("stats", cwd=tmp_path)
    assert ended.returncode == 2
    assert "ROTA_URL" in ended.stderr
    both = run("stats", "--app", "shop:app", "--url", "sqlite:///x.db", cwd=tmp_path)
    assert (both.returncode, "pass one of them" in both.stderr) == (2, True)


def test_a_store_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, " * 100)
    for url in ("sqlite:///text.db", "nosql://x", "postgresql://nobody@127.0.0.1:1/none"):
        ended = run("stats", cwd=tmp_path, env=environment(ROTA_URL=url))
        assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
        assert ended.stdout == ""


def test_json_is_json_alone(tmp_path: Path) -> None:
    url = "sqlite:///jobs.db"
    run("send", "shop.greet", "é\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "--url", url, cwd=tmp_path)
    ended = run(
        "jobs", "--json", "--url", url, cwd=tmp_path, env=environment(PYTHONIOENCODING="ascii", LANG="C", PYTHONUTF8="0")
    )
    assert json.loads(ended.stdout)["jobs"][0]["args"] == ["é😀"]
