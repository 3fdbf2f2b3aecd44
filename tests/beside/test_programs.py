"""A worker beside real programs and servers, each in a process of its own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from beside.program import Programs
from rota import Rota, State
from working import eventually

PATIENCE = 30.0
HERE = Path(__file__).parent
UVICORN = ("-m", "uvicorn", "--port", "0", "--app-dir", str(HERE))


def started(app: Rota, id: str) -> None:
    eventually(lambda: app.get(id).status is State.RUNNING)


def handed_back(app: Rota, id: str) -> bool:
    job = app.get(id)
    return (job.status, job.attempt) == (State.QUEUED, 0)


on_sqlite = pytest.mark.parametrize("programs", ["sqlite"], indirect=True)
"""For what does not depend on the store."""


# -- what it writes -----------------------------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize(
    ("words", "by_rota", "logged"),
    [
        ((), ["rota: ran deliver", "rota: failed deliver on attempt 1: nobody lives there"], []),
        (
            ("configured",),
            [],
            ["logged: ran deliver", "logged: failed deliver on attempt 1: nobody lives there"],
        ),
        (("warnings",), [], ["logged: failed deliver on attempt 1: nobody lives there"]),
    ],
)
def test_outcomes_are_told_once(programs: Programs, words: tuple[str, ...], by_rota: list[str], logged: list[str]) -> None:
    with Rota(programs.url) as app:
        app.named("deliver").using(queue="mail").enqueue("Ada")
        app.named("deliver").using(queue="mail").enqueue("nobody")
        program = programs.script("beside_script.py", *words)
        assert program.ended() == 0
    assert "threads left: []" in program.said
    assert sorted(program.lines()) == sorted(by_rota)
    assert sorted(line for line in program.said.splitlines() if line.startswith(("logged: ran", "logged: failed"))) == sorted(
        logged
    )


# -- scripts ------------------------------------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize("word", ["stay", "async"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_script_that_is_told_to_end_hands_back_what_runs(
    programs: Programs, word: str, number: signal.Signals, status: int
) -> None:
    with Rota(programs.url) as app:
        id = app.named("linger").using(queue="mail").enqueue(60).id
        program = programs.script("beside_script.py", word)
        program.has_said("a body has begun")
        program.send(number)
        assert program.ended() == status
        assert handed_back(app, id)
        assert app.workers() == []


@on_sqlite
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_second_signal_hands_back_at_once(programs: Programs, number: signal.Signals, status: int) -> None:
    with Rota(programs.url) as app:
        id = app.named("linger").using(queue="mail").enqueue(600).id
        program = programs.script("beside_script.py", "patient")
        program.has_said("a body has begun")
        program.send(number)
        program.has_said("a body was asked to stop")
        assert program.process.poll() is None
        program.send(number)
        assert program.ended() == status
        assert handed_back(app, id)


def test_a_fork_has_no_worker_and_says_how_to_get_one(programs: Programs) -> None:
    program = programs.script("beside_fork.py", "start")
    assert program.ended() == 0
    assert "in the child: False" in program.said
    assert "started in the child" in program.said
    assert "in the parent: True succeeded" in program.said
    (line,) = [line for line in program.lines() if "fork" in line]
    assert f"stays in process {program.process.pid}" in line
    assert "call start() here too" in line


# -- servers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("programs", "number"), [("sqlite", signal.SIGINT), ("postgres", signal.SIGTERM)], indirect=["programs"]
)
def test_a_server_for_asgi_ends_with_its_worker(programs: Programs, number: signal.Signals) -> None:
    with Rota(programs.url) as app:
        server = programs.python(*UVICORN, "beside_asgi:web")
        assert server.get("/") == "welcome"
        assert app.get(server.get("/send")).wait(PATIENCE).status is State.SUCCEEDED
        server.has_said("rota: ran deliver")
        id = server.get("/dawdle")
        started(app, id)
        server.send(number)
        server.ended()
        assert "Application shutdown complete" in server.said
        assert handed_back(app, id)
        assert app.workers() == []


@on_sqlite
def test_a_plain_application_that_knows_no_lifespan_has_a_worker_too(programs: Programs) -> None:
    with Rota(programs.url) as app:
        server = programs.python(*UVICORN, "beside_asgi:plain")
        assert app.get(server.get("/")).wait(PATIENCE).status is State.SUCCEEDED
        server.send(signal.SIGTERM)
        server.ended()
        assert app.workers() == []


def test_a_server_for_wsgi_that_forks_has_a_worker_in_each_process(programs: Programs) -> None:
    with Rota(programs.url) as app:
        server = programs.python("-m", "gunicorn", "-c", str(HERE / "beside_gunicorn.py"))
        eventually(lambda: len(app.workers()) == 2)
        assert server.process.pid not in [row.pid for row in app.workers()]
        assert app.get(server.get("/")).wait(PATIENCE).status is State.SUCCEEDED
        server.has_said("rota: ran deliver")
        id = server.get("/dawdle")
        started(app, id)
        server.send(signal.SIGTERM)
        assert server.ended() == 0
        assert handed_back(app, id)
        assert app.workers() == []


@on_sqlite
def test_a_simple_server_for_wsgi_starts_it_with_the_first_request(programs: Programs) -> None:
    with Rota(programs.url) as app:
        server = programs.script("beside_wsgi.py")
        server.has_said("port=")
        assert app.workers() == []
        assert app.get(server.get("/")).wait(PATIENCE).status is State.SUCCEEDED
        id = server.get("/dawdle")
        server.has_said("served 2")
        started(app, id)
        server.send(signal.SIGTERM)
        assert server.ended() == 143
        assert handed_back(app, id)
