"""A worker beside a program that fell is told by the commands that look."""

from __future__ import annotations

import pytest

from cli.conftest import Call
from rota import Rota
from rota.worker import Worker


@pytest.fixture
def fallen(call: Call, url: str) -> None:
    """The store knows of a worker that is down."""
    with Rota(url) as app:
        app.store.join(Worker(app, name="web-1").fallen("OSError: the log is full", lease=60))


@pytest.mark.usefixtures("fallen")
def test_it_is_told_by_those_who_look(call: Call) -> None:
    assert "fallen: the worker beside web-1 fell (OSError: the log is full); it is down" in call("check", status=1)
    assert "fallen" in call("stats")
    assert "fallen" in call("workers")
    (worker,) = call.json("stats")["workers"]
    assert (worker["name"], worker["concurrency"], worker["trouble"]) == ("web-1", 0, "OSError: the log is full")
