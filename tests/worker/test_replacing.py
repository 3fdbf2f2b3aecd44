"""A process for isolated bodies that died or stopped between two of them is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal

import isolated_bodies
import psutil
import pytest

from rota import Rota
from rota.model import State
from working import eventually, working

PATIENCE = 30.0

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


def test_one_that_was_killed_costs_no_attempt(isolated: Rota) -> None:
    with working(isolated, concurrency=1):
        former = isolated_bodies.process_id.enqueue().wait(PATIENCE).result()
        os.kill(former, signal.SIGKILL)
        eventually(lambda: former not in {child.pid for child in multiprocessing.active_children()})
        job = isolated_bodies.process_id.enqueue().wait(PATIENCE)
        assert job.result() != former
        assert job.attempt == 1


def test_one_that_does_not_begin_its_next_body_is_killed(isolated: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    with working(isolated, concurrency=1):
        former = isolated_bodies.process_id.enqueue().wait(PATIENCE).result()
        os.kill(former, signal.SIGSTOP)
        with monkeypatch.context() as hurried:
            hurried.setattr("rota.isolation.START", 0.5)
            stuck = isolated_bodies.process_id.using(max_attempts=1).enqueue().wait(PATIENCE)
        assert stuck.status is State.FAILED
        assert "timed out before it began" in (stuck.reason or "")
        assert not psutil.pid_exists(former)
        assert isolated_bodies.process_id.enqueue().wait(PATIENCE).result() != former
