"""`--reload`: a change of a Python file's content starts the workers anew, and nothing else does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts import starts
from rota import Rota, State
from supervisor.conftest import PATIENCE, Supervised, Yard
from working import eventually

CHANGED = r"\d\d:\d\d:\d\d (.*) changed: workers hand back their jobs and start anew"


@pytest.fixture
def package(yard: Yard) -> Path:
    """The yard's app as a package of its own, below the directory that its store and log are in."""
    folder = yard.folder / "stall"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "words.py").write_text("GREETING = 'hello'\n")
    text = (yard.folder / "shop.py").read_text().replace("app = Rota(", "from stall.words import GREETING\n\napp = Rota(")
    (folder / "tasks.py").write_text(text)
    return folder


@pytest.fixture
def parent(yard: Yard, package: Path) -> Iterator[Supervised]:
    started = yard.start("--reload", app="stall.tasks:app")
    yard.working(1)
    yield started
    assert started.stopped() == 0


def test_only_a_real_change_of_code_is_one(parent: Supervised, yard: Yard, package: Path, app: Rota) -> None:
    [before] = yard.working(1)
    (package / "words.py").read_text()
    (package / "words.py").touch()
    (package / "words.py").chmod(0o600)
    os.utime(package / "tasks.py", (1, 1))
    (package / "words.py").write_text((package / "words.py").read_text())  # as it was
    (package / "notes.txt").write_text("no code")
    (package / "shop.log").write_text("a line")
    (package / "data.db").write_text("rows")
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "words.cpython-311.pyc").write_bytes(b"\0")
    (package / "__pycache__" / "words.py").write_text("x = 1")
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    (package / "late.py").write_text("LATE = True\n")
    assert parent.said(CHANGED) == ["late.py"]
    eventually(lambda: [row.pid for row in app.workers()] not in ([], [before]), within=PATIENCE)
    assert parent.log.count("changed: ") == 1
    assert "watchfiles" not in parent.log
    assert ") runs 1 worker\n" in parent.log
    assert yard.working(1) == yard.loaded()[-1:]
    assert len(yard.loaded()) == 2


def test_a_running_job_is_handed_back_and_begins_anew(parent: Supervised, yard: Yard, package: Path, app: Rota) -> None:
    job = app.named("until").using(max_attempts=1).enqueue(str(yard.folder / "go"))
    eventually(lambda: starts(yard.ledger) == 1)
    (package / "new.py").write_text("NEW = True\n")
    begun = time.monotonic()
    assert parent.said(CHANGED) == ["new.py"]
    eventually(lambda: starts(yard.ledger) == 2, within=PATIENCE)
    assert time.monotonic() - begun < PATIENCE
    assert job.refresh().attempt == 1
    (yard.folder / "go").touch()
    assert job.wait(30).status is State.SUCCEEDED
    assert job.row.excused == 1


def test_code_that_does_not_load_is_shown_and_the_next_change_waited_for(
    parent: Supervised, yard: Yard, package: Path, app: Rota
) -> None:
    (package / "words.py").write_text("GREETING = \n")
    parent.said("before it worked: waiting for a file to change")
    assert parent.log.count("SyntaxError: ") == 1
    assert parent.processes() == []
    assert app.workers() == []
    (package / "words.py").write_text("GREETING = 'there you are'\n")
    yard.working(1)
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED


def test_one_that_does_not_load_at_the_start_is_no_end_either(yard: Yard, package: Path, app: Rota) -> None:
    (package / "words.py").write_text("GREETING = \n")
    parent = yard.start("--reload", "--processes", "2", app="stall.tasks:app")
    parent.said("before it worked: waiting for a file to change", times=2)
    (package / "words.py").write_text("GREETING = 'late'\n")
    yard.working(2)
    assert parent.stopped() == 0


def test_what_is_missing_for_it_is_named(yard: Yard, package: Path) -> None:
    (yard.folder / "without.py").write_text("import sys\nsys.modules['watchfiles'] = None\nfrom rota.cli import main\nmain()\n")
    parent = yard.start("--reload", app="stall.tasks:app", module="without")
    assert parent.wait() == 1
    assert parent.log == "rota: --reload needs the package watchfiles: pip install 'rota[reload]'\n"


def test_other_directories_may_be_watched(yard: Yard, package: Path, app: Rota) -> None:
    other = yard.folder / "library"
    other.mkdir()
    parent = yard.start("--reload", "--reload-dir", "library", app="stall.tasks:app")
    [before] = yard.working(1)
    (package / "words.py").write_text("GREETING = 'unheard'\n")
    (other / "tools.py").write_text("x = 1\n")
    assert parent.said(CHANGED) == ["tools.py"]
    eventually(lambda: [row.pid for row in app.workers()] not in ([], [before]), within=PATIENCE)
    assert parent.stopped() == 0
