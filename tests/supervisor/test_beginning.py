"""What is wrong with the app or the options is told at the start, once, with the status that a lone worker has."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from rota import Rota, State
from servers import PostgresServer
from supervisor.conftest import Yard


def test_an_app_that_cannot_be_imported_ends_the_start_with_its_traceback(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_dependency\n")
    parent = yard.start("--processes", "3", app="broken:app")
    assert parent.wait() == 1
    assert parent.log.count("ModuleNotFoundError: No module named 'no_such_dependency'") == 1
    assert "ended with status 1 before it worked: the supervisor ends" in parent.log


@pytest.mark.parametrize("named", ["no_such_module:app", ".\\\\workers.py", "shop:nothing", "shop:SHOP_URL", ""])
def test_an_app_that_is_not_there_is_wrong_usage(yard: Yard, named: str) -> None:
    parent = yard.start("--processes", "2", app=named)
    assert parent.wait() == 2
    assert "Traceback" not in parent.log
    assert parent.log.count("rota: --app") == 1


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--processes", "0"), 2, "--processes"),
        (("--max-memory", "much"), 2, "is no amount of memory"),
        (("--max-jobs", "0"), 2, "--max-jobs"),
        (("--processes", "1", "--lease", "60s", "--wedged-after", "5s"), 2, "--wedged-after must not be shorter than --lease"),
        (("--reload", "--reload-dir", "nowhere"), 2, "--reload-dir"),
        (("--processes", "2", "--queues", ","), 1, "queues=[]"),
    ],
)
def test_a_setting_that_cannot_be_right_is_told_in_a_line(yard: Yard, options: tuple[str, ...], status: int, said: str) -> None:
    parent = yard.start(*options)
    assert parent.wait() == status
    assert parent.log.count(said) == 1
    assert "Traceback" not in parent.log


def test_closed_standard_streams_are_no_trouble(yard: Yard, app: Rota) -> None:
    parent = yard.start("--processes", "2", before=("sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"))
    yard.working(2)
    assert app.named("quick").enqueue().wait(30).status is State.SUCCEEDED
    assert parent.stopped() == 0


@pytest.mark.slow
def test_processes_that_start_on_a_full_server_wait_for_it(tmp_path: Path) -> None:
    server = PostgresServer(max_connections="24")
    try:
        server.start()
        with Rota(server.url(application_name="test")) as app, ExitStack() as others:
            app.store.open()
            yard = Yard(tmp_path, server.url(), app)
            others.callback(yard.close)
            with ExitStack() as crowd:
                with pytest.raises(psycopg.OperationalError):
                    while True:
                        crowd.enter_context(server.connect())
                parent = yard.start("--processes", "4", "--concurrency", "20")
                parent.said("the store is away", times=8)
                children = [process.pid for process in parent.processes()]
            assert sorted(yard.working(4)) == sorted(children)
            assert sum(" rota: " in said for said in server.backends().values()) <= 20
            assert parent.stopped() == 0
    finally:
        server.close()


def test_children_find_the_app_where_their_supervisor_was_told_to_look(yard: Yard, app: Rota, tmp_path: Path) -> None:
    package = tmp_path / "src" / "stall"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text((tmp_path / "shop.py").read_text())
    job = app.named("quick").enqueue()
    parent = yard.start("--processes", "2", "--app-dir", "src", app="stall.tasks:app")
    assert job.wait(30).status is State.SUCCEEDED
    assert parent.stopped() == 0
