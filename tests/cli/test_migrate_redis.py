"""`rota migrate` and commands that look at a store speak of Redis as what it is: keys without tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Call
from fresh import fresh_url


@pytest.fixture
def redis_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with fresh_url("redis", request, tmp_path) as url:
        yield url


def test_a_plan_for_an_empty_redis_makes_nothing_and_says_what_does(redis_url: str) -> None:
    call = Call()
    assert "there is no store yet; `rota migrate` runs 1 migration and makes it" in call(
        "migrate", "--plan", "--url", redis_url
    )
    assert "there is no store of Rota's in unix://" in call.result("stats", "--url", redis_url).output
    assert "ran 0001_layout" in call("migrate", "--url", redis_url)
    said = call("migrate", "--check", "--url", redis_url)
    assert "nothing is to be done: the layout of unix://" in said
    assert "is that of this version" in said


def test_there_is_no_sql_that_makes_a_store_in_redis(redis_url: str) -> None:
    result = Call().result("migrate", "--sql", "--url", redis_url)
    assert "keeps no tables, so there is no SQL to print: leave out --sql" in " ".join(result.output.split())
    assert result.exit_code == 2
