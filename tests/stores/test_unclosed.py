"""A program that ends without `app.close()`, and forks of it, leave nothing that is complained of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fresh import fresh_url
from rota import Rota
from rota.stores import exits
from rota.stores.sql import SqlStore

PROGRAM = """
import os
import sys

from rota import Rota

app = Rota(sys.argv[1])
forgotten = Rota(sys.argv[1])


@app.task(name="greet")
def greet() -> None: ...


def forked(do):
    if (child := os.fork()) == 0:
        do()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0


greet.enqueue()
forgotten.named("greet").enqueue()
forked(lambda: None)
forked(greet.enqueue)
forked(app.close)
with app.beside(concurrency=1):
    greet.enqueue().wait(30)
    forked(lambda: None)
    for job in app.jobs():
        job.wait(30)
assert len(app.jobs(status="succeeded")) == 4
greet.enqueue_many([()] * 3)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_is_left_open_at_its_end(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with fresh_url(kind, request, tmp_path) as url:
        ended = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "ignore:This process:DeprecationWarning", "-c", PROGRAM, url],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    said = [
        line for line in ended.stderr.splitlines() if not line.startswith(("rota: ran greet", "rota: the worker beside this"))
    ]
    assert (ended.returncode, said) == (0, [])


def held_open(file: Path) -> int:
    """How many descriptors this process has for a file and what belongs to it."""
    links = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return sum(str(link).startswith(str(file)) for link in links)


def test_a_file_is_closed_at_the_end_unless_a_thread_is_busy_with_it(tmp_path: Path) -> None:
    """Which an interpreter does by itself, and from Python 3.13 on complains of."""
    file = tmp_path / "jobs.db"
    with Rota(f"sqlite:///{file}") as app:
        app.send("greet")
        kept = held_open(file)

        def meanwhile(_: object) -> None:
            exits._close_all()
            assert held_open(file) == kept > 0

        assert isinstance(app.store, SqlStore)
        app.store._database.work(meanwhile)
        exits._close_all()
        assert held_open(file) == 0
        assert len(app.jobs()) == 1  # for there may still be somebody
    assert held_open(file) == 0
