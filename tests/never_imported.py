"""Tasks for processes of their own that never get to a body: there, the import of this module does not end."""

from __future__ import annotations

import multiprocessing
import threading

from rota import Rota

app = Rota("memory://")


@app.task(isolated=True, max_attempts=1)
def never_begun() -> None: ...


@app.task(isolated=True, max_attempts=1, timeout=1.0)
def never_begun_in_its_time() -> None: ...


@app.task
def quick() -> None: ...


if multiprocessing.parent_process() is not None:
    threading.Event().wait()
