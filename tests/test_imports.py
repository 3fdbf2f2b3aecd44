"""Importing Rota to enqueue a job costs nothing that only some need."""

import subprocess
import sys

import pytest

DRIVERS = ["psycopg", "psycopg_pool", "redis", "sqlite3"]
FOR_THE_TERMINAL = ["click", "rich"]
FOR_ASYNC = ["asyncio", "anyio"]


@pytest.mark.parametrize("module", [*DRIVERS, *FOR_THE_TERMINAL, *FOR_ASYNC])
def test_importing_rota_does_not_import(module: str) -> None:
    assert module not in _imported_by("import rota")


@pytest.mark.parametrize("module", ["psycopg", *FOR_THE_TERMINAL, *FOR_ASYNC])
def test_enqueueing_into_a_sqlite_store_does_not_import(module: str) -> None:
    assert module not in _imported_by("import rota; app = rota.Rota('memory://'); app.task(name='t')(lambda: None).enqueue()")


def _imported_by(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
