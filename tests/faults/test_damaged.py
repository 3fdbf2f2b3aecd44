"""Rows that someone damaged: each concerns its own job, which fails readably, and neither other jobs nor any look at them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import product
from types import ModuleType

import pytest
from click.testing import CliRunner

from effects import transaction
from rota import Job, ResultError, Rota, State
from rota.cli.group import rota
from working import eventually, working

SQL = pytest.mark.parametrize("shared_url", ["sqlite", "postgres"], indirect=True)
pytestmark = [pytest.mark.slow, SQL]

PATIENCE = 30.0
BROKEN = ("", "{", "null", "7", "[1,", '{"number":', '{"number":"seven"}', '{"*":[["a"]]}', "[" * 100_000, "NaN", "\ue000")
CARRIED = ('{"number":"seven"}', '{"*":[["a"]]}')
"""Those that could be context variables, of which no one is declared."""
NO_TEXT = b'{"number":1,"note":"\xff\xfe\xed\xa0\x80'
"""Cut off, and no UTF-8. Postgres keeps nothing of the kind; a SQLite file holds any bytes."""

tenant: ContextVar[str] = ContextVar("tenant")

Damage = tuple[str, object]
"""A column, and what stands in it."""


@pytest.fixture
def app(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rota]:
    """An app that the command line finds as well."""
    with Rota(url, context=[tenant]) as app:

        @app.task(name="take", max_attempts=1, keep_result=True)
        def take(number: int) -> int:
            return number

        module = ModuleType("damaged_shop")
        module.app = app  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "damaged_shop", module)
        yield app


def run(*command: str) -> str:
    """A command of `rota`, which neither fails nor complains."""
    said = CliRunner().invoke(rota, [*command, "--app", "damaged_shop:app"], prog_name="rota")
    assert (said.exit_code, said.stderr) == (0, ""), f"{command}: {said.output}\n{said.exception!r}"
    return said.stdout


def damaged(app: Rota, table: str, columns: Sequence[str]) -> list[tuple[Job[object], Damage]]:
    """A job for each damage; where they are kept in the history they have succeeded before it."""
    on_sqlite = app.url.startswith("sqlite")
    damages = list(product(columns, [*BROKEN, NO_TEXT] if on_sqlite else BROKEN))
    jobs = app.named("take").enqueue_many([(number,) for number in range(len(damages))])
    if table == "rota_history":
        with working(app):
            eventually(lambda: app.stats().states[State.SUCCEEDED] == len(jobs))
    mark = "?" if on_sqlite else "%s"
    with transaction(app.url) as own:
        for job, (column, text) in zip(jobs, damages, strict=True):
            own.execute(f"update {table} set {column} = cast({mark} as text) where id = {mark}", (text, job.id))
    return list(zip(jobs, damages, strict=True))


def check_looks(app: Rota, jobs: Sequence[Job[object]]) -> None:
    everything = {job.id for job in jobs}
    assert {job.id for job in app.jobs(limit=1_000)} == everything
    assert {row["id"] for row in json.loads(run("jobs", "--json", "--limit", "1000"))["jobs"]} == everything
    for command in ("jobs", "stats", "top --once", "queues"):
        run(*command.split())
    assert app.check()  # since nobody works
    for job in jobs[::4]:
        for command in ("jobs show", "jobs show --json", "jobs explain"):
            run(*command.split(), job.id)


def check_results(app: Rota, ended: Sequence[tuple[Job[object], Damage]]) -> None:
    with Rota(app.url) as stranger:
        for job, (column, text) in ended:
            assert job.refresh().progress is None
            if column == "result" and text != "7":
                with pytest.raises(ResultError):
                    job.result()
                with suppress(ResultError):  # who does not know the task takes any JSON
                    stranger.get(job.id).result()


def test_what_is_damaged_is_looked_at_run_retried_and_purged_like_all_else(app: Rota) -> None:
    tenant.set("a")
    ended = damaged(app, "rota_history", ("args", "result", "progress", "context"))
    waiting = damaged(app, "rota_jobs", ("args", "progress", "context"))
    good = app.named("take").enqueue_many([(number,) for number in range(20)])
    jobs = [job for job, _ in waiting]
    check_looks(app, [*(job for job, _ in ended), *jobs, *good])
    check_results(app, ended)

    with working(app):
        for job in (*good, *jobs):
            job.wait(PATIENCE)
    assert {job.status for job in good} == {State.SUCCEEDED}
    for job, (column, text) in waiting:
        words = {"args": "take: ", "context": "what the job carries along cannot be read"}.get(column, "")
        ends_well = column == "progress" or (column == "context" and text in CARRIED)
        assert (job.status is State.SUCCEEDED) == ends_well, (column, text)
        assert ends_well or (job.reason or "").startswith(words), (column, text)
    for job in jobs:
        job.retry()
    with working(app):
        eventually(lambda: all(job.refresh().status.final for job in jobs))
    run("purge", "--succeeded", "0", "--failed", "0", "--yes")
    assert app.jobs() == []
