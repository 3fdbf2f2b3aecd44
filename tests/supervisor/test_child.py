"""What a supervisor has open for a process, also where the system has no more to give."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from queue import SimpleQueue

import psutil
import pytest

from rota.supervisor.child import Child, Exited, Heard
from working import eventually, room_for_files

PATIENCE = 20.0


def begin(post: SimpleQueue[Heard | Exited] | None = None, *command: str) -> Child:
    return Child(1, None, command or ["sleep", "60"], "/", (post or SimpleQueue()).put)


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("room", range(6))
def test_where_too_few_files_can_be_open_none_is_left_open(room: int) -> None:
    before = files()
    for _ in range(3):
        with room_for_files(room), pytest.raises(OSError, match="Too many open files"):
            begin()
    assert files() == before


def test_where_no_thread_can_be_started_nothing_is_left() -> None:
    before, running, former = files(), psutil.Process().children(), threading.stack_size()
    threading.stack_size((1 << 47) - 4096)  # more than the address space holds
    try:
        with pytest.raises(OSError, match="can't start new thread"):
            begin()
    finally:
        threading.stack_size(former)
    assert files() == before
    assert psutil.Process().children() == running


@pytest.mark.timeout(30)
def test_one_that_does_not_read_holds_nobody_up() -> None:
    posted: SimpleQueue[Heard | Exited] = SimpleQueue()
    child = begin(posted)
    for _ in range(100):
        child.say("x" * 1000)
    child.kill()
    assert isinstance(posted.get(timeout=PATIENCE), Exited)
    child.close()


LEAVES = """
import os, subprocess, sys
left = subprocess.Popen(["sleep", "60"], close_fds=False)
os.write(int(os.environ["ROTA_SUPERVISED"].split(",")[1]), b"joined %d\\n" % left.pid)
os.write(int(os.environ["ROTA_SUPERVISED"].split(",")[1]), b"half a lin")
os.kill(os.getpid(), 9)
"""


@pytest.mark.timeout(30)
def test_its_end_is_noticed_although_a_process_that_it_left_holds_its_pipes() -> None:
    posted: SimpleQueue[Heard | Exited] = SimpleQueue()
    before, threads = files(), threading.active_count()
    child = begin(posted, sys.executable, "-c", LEAVES)
    said = [posted.get(timeout=PATIENCE) for _ in range(2)]
    assert isinstance(said[0], Heard)
    left = psutil.Process(int(said[0].rest))
    try:
        assert (said[0].word, left.is_running()) == ("joined", True)
        assert isinstance(said[1], Exited)
        assert child.how_it_ended() == "was killed by SIGKILL"
        child.close()
        eventually(lambda: (files(), threading.active_count()) == (before, threads))
    finally:
        left.kill()
