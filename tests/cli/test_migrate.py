"""`rota migrate` tells beforehand what it would do, and for whom that matters."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from cli.conftest import Call
from newer import GO_ON, newer
from rota import Rota
from rota.stores import queries
from servers import PostgresServer

KNOWN = queries.migrations("sqlite")
END = "-- Older processes end.\n\nalter table rota_jobs add column colour text;\n"


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """The URL of a file that is not there."""
    return f"sqlite:///{tmp_path / 'fresh.db'}"


def test_a_plan_for_no_tables_makes_none_and_says_what_does(fresh: str, tmp_path: Path) -> None:
    call = Call()
    assert "there are no tables yet; `rota migrate` runs" in call("migrate", "--plan", "--url", fresh)
    planned = call.json("migrate", "--plan", "--url", fresh)
    assert (planned["new"], planned["older_may_stay"], len(planned["migrations"])) == (True, True, len(KNOWN))
    assert list(tmp_path.iterdir()) == []
    assert "`rota migrate`" in call("migrate", "--check", "--url", fresh, status=1)
    assert "ran 0001_tables" in call("migrate", "--url", fresh)
    assert "nothing is to be done" in call("migrate", "--check", "--url", fresh)


def test_a_file_of_other_tables_is_a_store_that_has_none_yet(fresh: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "fresh.db")) as other:
        other.execute("create table shop (name text)")
    before = (tmp_path / "fresh.db").read_bytes()
    call = Call()
    assert "there are no tables yet" in call("migrate", "--plan", "--url", fresh)
    assert call.json("migrate", "--check", "--url", fresh, status=1)["new"] is True
    assert "there are no tables of Rota's in sqlite:///" in call.result("stats", "--url", fresh).output
    assert (tmp_path / "fresh.db").read_bytes() == before


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_plan_says_whether_workers_may_stay_up(call: Call) -> None:
    with newer(GO_ON.replace("go on", "go on: they see no colours")):
        said = call("migrate", "--plan")
        assert "0999_later: older workers may stay up (they see no colours)" in said
        assert "`rota migrate` runs 1 migration, and workers of an older version may stay up" in said
    with newer(END):
        assert "stop workers of an older version first" in call("migrate", "--check", status=1)
        assert call.json("migrate", "--plan")["older_may_stay"] is False
        assert "ran 0999_later" in call("migrate")
        assert "add --plan or --check" in call.result("migrate", "--json").output
        assert call.json("migrate", "--check") == {"new": False, "older_may_stay": True, "migrations": []}


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_newer_tables_that_may_be_used_are_not_called_this_versions(call: Call) -> None:
    with newer(GO_ON):
        call("migrate")
    for args in (("migrate",), ("migrate", "--check")):
        assert re.search(r"are those of a newer Rota \(version 999, and this one makes version \d+\)", call(*args))


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_check_that_cannot_tell_is_none_that_says_no(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*args: str) -> str:
        ended = call.result("migrate", "--check", *args)
        assert ended.exit_code == 2
        return ended.output

    with newer(END.replace("add column colour text", "add column shape text")):
        call("migrate")
    assert "cannot be told: the store's tables were changed for a newer Rota" in told()
    assert "cannot be told: Postgres at /nowhere/shop cannot be reached" in told("--url", "postgresql:///shop?host=/nowhere")
    (tmp_path / "broken_shop.py").write_text("1 / 0\n")
    monkeypatch.delenv("ROTA_URL")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "could not be imported" in told("--app", "broken_shop:app")
    assert "could not be imported" in call.result("migrate", "--app", "broken_shop:app").output


def test_sql_makes_all_or_nothing(fresh: str, tmp_path: Path, postgres_server: PostgresServer) -> None:
    call = Call()
    lines = call("migrate", "--sql", "--url", fresh)
    assert (lines.split("\n")[0], lines.strip().split("\n")[-1]) == ("begin;", "commit;")
    with closing(sqlite3.connect(tmp_path / "fresh.db")) as other:
        other.executescript(lines)
    assert "nothing is to be done" in call("migrate", "--check", "--url", fresh)
    with postgres_server.schema() as url:
        text = call("migrate", "--sql", "--url", url)
        with psycopg.connect(postgres_server.url(), autocommit=True) as other:
            with pytest.raises(psycopg.errors.DuplicateTable):
                other.execute((text[: text.rindex("commit;")] + text[text.index("create table") :]).encode())
            other.execute("rollback")
            assert "there are no tables yet" in call("migrate", "--plan", "--url", url)
            other.execute(text.encode())
        assert "nothing is to be done" in call("migrate", "--check", "--url", url)


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_sql_of_a_plan_is_that_of_what_is_due(call: Call, url: str) -> None:
    assert call("migrate", "--plan", "--sql") == "-- nothing is to be done\n"
    with newer(GO_ON):
        text = call("migrate", "--plan", "--sql")
        assert re.findall("^-- (\\d{4}_.*)$", text, re.MULTILINE) == ["0999_later"]
        if url.startswith("sqlite"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as other:
                other.executescript(text)
        else:
            with psycopg.connect(url.split("&schema=")[0], autocommit=True) as connection:
                connection.execute(text.encode())
        assert "nothing is to be done" in call("migrate", "--check")
    with Rota(url) as app:
        app.send("x")  # it may be used, and it is noted that it may


def test_a_plan_for_tables_from_before_older_processes_could_start_says_so(fresh: str, tmp_path: Path) -> None:
    made = [(name, text) for name, text in Rota(fresh).schema() if name < "0003"]
    with closing(sqlite3.connect(tmp_path / "fresh.db")) as other:
        other.executescript("\n".join(text for _, text in made))
    said = Call()("migrate", "--plan", "--url", fresh)
    assert "0006_needs: older workers may stay up (but one that starts anew is refused" in said


def test_no_number_stands_for_different_steps_in_different_databases() -> None:
    sqlite, postgres = (dict(step[:2] for step in queries.migrations(kind)) for kind in ("sqlite", "postgres"))
    assert {sqlite[number] == postgres[number] for number in sqlite.keys() & postgres.keys()} == {True}
