"""Importing Rota to enqueue is cheap: no event loop, no driver, nothing of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = {
    "asyncio",
    "click",
    "concurrent.futures",
    "importlib.metadata",
    "importlib.resources",
    "multiprocessing",
    "psycopg",
    "psycopg_pool",
    "rich",
    "sqlite3",
    "ssl",
    "subprocess",
    "unicodedata",
    "unittest",
    "uuid_utils",
}

LIMITS = {"rota.limiting", "rota.rules.admission", "rota.rules.instances", "rota.rules.limits", "rota.rules.sizes"}
"""What only those need whose tasks have limits."""

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


def test_what_limits_need_is_loaded_once_a_task_has_one() -> None:
    code = "from rota import Rota; app = Rota('memory://'); app.task(name='t'{})(lambda: None); app.drain(); app.close()"
    assert loaded(code.format("")) & LIMITS == set()
    assert loaded("from rota import Limit; Limit(2)") & LIMITS == {"rota.rules.limits", "rota.rules.sizes"}
    declared = "from rota import Rota; Rota('memory://').task(name='t', concurrency=2)(lambda: None)"
    assert loaded(declared) & LIMITS == LIMITS - {"rota.rules.admission"}


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


def test_a_worker_loads_only_what_running_jobs_takes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    python(f"from rota import Rota; app = Rota({url!r}); app.send('ring'); app.close()")
    code = f"""
from threading import Event
from rota import Rota
from rota.worker import Worker

app = Rota({url!r})
rung = Event()

@app.task(name="ring")
def ring() -> None:
    rung.set()

worker = Worker(app)
worker.start()
assert rung.wait(20)
worker.stop()
app.close()
"""
    there = loaded(code)
    assert there & (HEAVY - {"sqlite3"}) == loaded("") & HEAVY
    assert there & LIMITS == set()


def test_importing_takes_little_time() -> None:
    # Measured at 0.07 s; the best of a few, since a busy machine makes any one of them long.
    assert min(float(python(TIMED)) for _ in range(5)) < 0.15
