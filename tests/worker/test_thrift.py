"""Memory goes back to the system once a worker has nothing in hand."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import threading, time
import psutil
from rota.worker import thrift

thrift._IDLE = 0.05
memory = psutil.Process().memory_info
book = thrift.Thrift()
assert not book.look(in_hand=1, moved_at=1.0)

def burst():
    kept = [bytes(2_000) for _ in range(40_000)]
    last = bytes(2_000)
    burst.kept = last  # it lies behind all the others, so they are not given back by themselves
    del kept

thread = threading.Thread(target=burst)
thread.start()
thread.join()
full = memory().rss
assert not book.look(in_hand=0, moved_at=2.0), "a job had come since the last look"
assert not book.look(in_hand=0, moved_at=2.0), "it was not idle for long enough"
time.sleep(0.1)
assert not book.look(in_hand=1, moved_at=2.0), "a job is in hand"
time.sleep(0.1)
assert book.look(in_hand=0, moved_at=2.0)
assert not book.look(in_hand=0, moved_at=2.0), "there was nothing more to give back"
print(full - memory().rss)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked for it")
def test_an_idle_worker_gives_back_what_a_burst_of_jobs_used() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40_000_000
