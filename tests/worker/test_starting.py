"""The start of a process for an isolated body, its imports included, has an end: a limit, or the word to stop."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import isolated_bodies
import pytest

import never_imported
import slowly_imported
from rota import Rota
from rota.model import State
from working import eventually, room_for_files, working

PATIENCE = 30.0


@pytest.fixture
def store_url() -> str:
    """One store: what starts a process knows none."""
    return "memory://"


@pytest.mark.parametrize(
    ("task", "limit"), [(never_imported.never_begun, "0.4 s"), (never_imported.never_begun_in_its_time, "1 s")]
)
def test_an_import_without_end_fails_at_the_limit_and_its_slot_goes_on(
    endless_import: Rota, monkeypatch: pytest.MonkeyPatch, task: Any, limit: str
) -> None:
    monkeypatch.setattr("rota.isolation.START", 0.4)
    with working(endless_import, concurrency=1):
        job = task.enqueue().wait(PATIENCE)
        assert never_imported.quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED
    assert job.status is State.FAILED
    assert job.reason == (f"timed out before it began: its process did not start and import never_imported within {limit}")


def test_a_system_without_room_for_a_process_gets_the_job_back(isolated: Rota) -> None:
    with working(isolated, concurrency=1):
        former = isolated_bodies.end_by.enqueue("leave").wait(PATIENCE)  # so what it takes is loaded
        with room_for_files(0):
            job = isolated_bodies.process_id.enqueue()
            eventually(lambda: job.refresh().row.excused > 0)
        assert (job.wait(PATIENCE).status, job.attempt) == (State.SUCCEEDED, 1)
        assert {attempt.outcome for attempt in job.attempts()} == {"released"}
    assert former.status is State.FAILED


def test_the_imports_are_not_the_bodys_time(store_url: str) -> None:
    slowly_imported.app.url = store_url
    with slowly_imported.app as app, working(app):
        assert slowly_imported.quick.enqueue().wait(PATIENCE).status is State.SUCCEEDED


def test_a_cancel_ends_an_import(endless_import: Rota) -> None:
    with working(endless_import):
        job = never_imported.never_begun.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED


def test_a_stop_does_not_wait_for_an_import(endless_import: Rota) -> None:
    with working(endless_import, shutdown_timeout=3 * PATIENCE):
        job = never_imported.never_begun.enqueue()
        eventually(lambda: job.refresh().status is State.RUNNING)
        begun = time.monotonic()
    assert time.monotonic() - begun < PATIENCE
    assert (job.refresh().status, job.attempt, job.reason) == (State.QUEUED, 0, "the worker was shut down")


def test_a_cancel_ends_a_program_that_hangs_before_it_takes_large_arguments(
    isolated: Rota, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process imports the program's main module first, before anyone reads from its pipe."""
    main = tmp_path / "program.py"
    main.write_text("import threading\nthreading.Event().wait()\n")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(main), raising=False)
    with working(isolated):
        job = isolated_bodies.parents_arguments.enqueue("x" * 1_000_000, times=1)
        eventually(lambda: job.refresh().status is State.RUNNING)
        job.cancel()
        assert job.wait(PATIENCE).status is State.CANCELLED
