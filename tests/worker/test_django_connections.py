"""With the hook that the guide shows, bodies that use Django's connection outlive its end, and leave none open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from servers import PostgresServer

PROGRAM = Path(__file__).with_name("django_program.py")


def said(server: PostgresServer, folder: Path, kind: str, hook: str) -> list[str]:
    environment = {**os.environ, "ROTA_URL": f"sqlite:///{folder / 'jobs.db'}"}
    command = [sys.executable, str(PROGRAM), server.url(), kind, hook]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_a_hook_the_next_job_meets_the_dead_connection(postgres_server: PostgresServer, tmp_path: Path) -> None:
    assert said(postgres_server, tmp_path, "short", "none") == ["succeeded", "open", "failed", "failed"]


@pytest.mark.parametrize(("kind", "state"), [("short", "closed"), ("lasting", "open")])
def test_with_the_hook_of_the_guide_every_job_runs(
    postgres_server: PostgresServer, tmp_path: Path, kind: str, state: str
) -> None:
    assert said(postgres_server, tmp_path, kind, "hook") == ["succeeded", state] * 3
