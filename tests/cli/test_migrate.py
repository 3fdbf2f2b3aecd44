"""`rota migrate` tells beforehand what it would do, and for whom that matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Call
from rota.stores import queries

LATER = "-- Older processes {fate}.\n\nalter table rota_jobs add column colour text;\n"


def later(patch: pytest.MonkeyPatch, fate: str) -> None:
    """As if this Rota had one migration more."""
    known = queries.migrations
    patch.setattr(queries, "migrations", lambda dialect: [*known(dialect), (999, "0999_colour", LATER.format(fate=fate))])


def test_a_plan_for_no_tables_makes_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh.db'}"
    call = Call()
    assert "migrations would make the tables" in call("migrate", "--plan", "--url", url)
    assert list(tmp_path.iterdir()) == []
    call("migrate", "--check", "--url", url, status=1)
    assert "ran 0001_tables" in call("migrate", "--url", url)
    assert "nothing is to be done" in call("migrate", "--check", "--url", url)


def test_a_plan_says_whether_workers_may_stay_up(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        later(patch, "go on: they see no colours")
        said = call("migrate", "--plan")
        assert "0999_colour: older workers may stay up (they see no colours)" in said
        assert "1 migration would run, and workers of an older version may stay up" in said
    later(monkeypatch, "end")
    assert "stop workers of an older version first" in call("migrate", "--check", status=1)
    assert call.json("migrate", "--plan")["older_may_stay"] is False
    assert "ran 0999_colour" in call("migrate")
    assert "add --plan or --check" in call.result("migrate", "--json").output
    assert call.json("migrate", "--check") == {"older_may_stay": True, "migrations": []}
