"""A task for a process of its own that takes longer to import this module than the body may run."""

from __future__ import annotations

import multiprocessing
import threading

from rota import Rota

app = Rota("memory://")


@app.task(isolated=True, max_attempts=1, timeout=1.0)
def quick() -> None: ...


if multiprocessing.parent_process() is not None:
    threading.Event().wait(1.5)
