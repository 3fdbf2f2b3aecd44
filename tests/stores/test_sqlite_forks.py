"""A process forks while another of its threads is in the middle of a transaction: both can go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, threading
from rota import Rota

app = Rota(sys.argv[1], patience=5)
within, go = threading.Event(), threading.Event()

def calls():
    yield from ((number,) for number in range(5_000))  # more than one step takes, so that the transaction has begun
    within.set()
    go.wait(30)
    yield (5_000,)

thread = threading.Thread(target=app.named("count").enqueue_many, args=(calls(),))
thread.start()
within.wait(30)
threading.Timer(0.2, go.set).start()
child = os.fork()
app.send("count", os.getpid())
if child == 0:
    os._exit(0)
thread.join()
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), app.stats().states["queued"])
app.close()
"""


def test_a_fork_waits_for_the_end_of_a_transaction(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path / 'jobs.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "0 5003\n"
