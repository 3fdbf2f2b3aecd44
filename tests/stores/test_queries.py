"""The named queries: each says what it does, is used, and exists in both dialects unless only one needs it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import rota.stores
from rota.stores import queries

FOLDER = Path(str(files(rota.stores)))

ONLY_SQLITE = {"files", "heavy", "note_seal", "peek", "sealing"}
ONLY_POSTGRES = {
    "begin",
    "bound",
    "claim_amply",
    "claim_behind",
    "clock",
    "commit",
    "copy",
    "finished",
    "hurry",
    "hurry_bound",
    "lock_briefly",
    "lock_jobs",
    "lock_migrations",
    "migrating",
    "newest_finished",
    "oldest_transaction",
    "rest",
    "sizes",
    "tables",
    "tell_places",
    "users_of",
    "vitals",
    "whereabouts",
}


@pytest.mark.parametrize("file", ["queries.sql", "sqlite.sql", "postgres.sql"])
def test_every_query_has_a_sentence(file: str) -> None:
    text = (FOLDER / file).read_text()
    for name, comment in re.findall(r"^-- name: (\w+)\n(.*)\n", text, re.MULTILINE):
        assert comment.startswith("-- "), name


def test_both_dialects_have_the_same_queries_but_for_those_that_one_alone_needs() -> None:
    sqlite, postgres = set(queries.load("sqlite")), set(queries.load("postgres"))
    assert (sqlite - postgres, postgres - sqlite) == (ONLY_SQLITE, ONLY_POSTGRES)


def test_no_query_is_unused() -> None:
    code = "".join(file.read_text() for file in FOLDER.glob("*.py"))
    known = set(queries.load("sqlite")) | set(queries.load("postgres"))
    assert {name for name in known if f'"{name}"' not in code} == set()


def test_a_semicolon_within_a_line_ends_no_statement() -> None:
    assert queries.statements("select ';' as a;\n-- a comment;\nselect 2;\n") == ["select ';' as a", "select 2"]
