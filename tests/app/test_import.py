"""Importing Rota to enqueue is cheap: no event loop, no driver, nothing of the command line."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "asyncio",
    "click",
    "concurrent.futures",
    "importlib.metadata",
    "multiprocessing",
    "psycopg",
    "psycopg_pool",
    "rich",
    "sqlite3",
    "ssl",
    "subprocess",
    "unittest",
}

MODULES = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)))
"""

TIMED = """
import sys, time
begun = time.process_time()
import rota
print(time.process_time() - begun)
"""


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def loaded(code: str) -> set[str]:
    return set(json.loads(python(MODULES.format(code=code))))


def test_importing_loads_nothing_heavy() -> None:
    assert loaded("import rota") & HEAVY == loaded("") & HEAVY


def test_declaring_tasks_loads_nothing_heavy_either() -> None:
    code = """
from rota import Rota, retries
app = Rota("postgresql://nowhere.invalid/jobs")

@app.task(queue="mail", retry=retries.Fixed(5), timeout=60)
def plain(number: int) -> None: ...

@app.task(isolated=False, keep_result=True)
async def coroutine(number: int) -> None: ...

plain.using(delay=5, key="k")
app.close()
"""
    assert loaded(code) & HEAVY == loaded("") & HEAVY


def test_enqueueing_on_sqlite_loads_no_event_loop() -> None:
    code = "from rota import Rota; app = Rota('memory://'); app.send('t', 1); app.close()"
    assert loaded(code) & {"asyncio", "psycopg", "click", "rich"} == set()


def test_importing_takes_little_time() -> None:
    # Measured at 0.07 s; the best of a few, since a busy machine makes any one of them long.
    assert min(float(python(TIMED)) for _ in range(5)) < 0.15
