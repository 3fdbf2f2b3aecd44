"""Finding the app: every way to name one, and a line that names what was searched where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import environment, run
from rota.cli.finding import AppBroken, AppNotFound, find_app

TASKS = """
from rota import Rota
app = Rota("memory://")
other = Rota("memory://")
number = 3
class Thing: pass
@app.task
def greet(): ...
def make(): return Rota("memory://")
def make_five(): return 5
def make_of(x): return app
def make_broken(): raise ValueError("in the factory")
async def amake(): return app
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with modules, packages and files. What is imported from it is forgotten afterwards."""
    for file in ("fnd_shop/tasks.py", "src/fnd_inner/tasks.py", "fnd_space/tasks.py", "fnd_pack/sub/tasks.py", "fnd_single.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(TASKS)
    for package in ("fnd_shop", "src/fnd_inner", "fnd_pack", "fnd_pack/sub"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "fnd-dash.py").write_text(TASKS)
    (tmp_path / "queue.py").write_text(TASKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("fnd_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("spec", "module"),
    [
        ("fnd_shop.tasks:app", "fnd_shop.tasks"),
        ("fnd_shop.tasks", "fnd_shop.tasks"),
        ("fnd_shop.tasks.app", "fnd_shop.tasks"),
        ("fnd_shop.tasks:", "fnd_shop.tasks"),
        (" fnd_shop.tasks:app ", "fnd_shop.tasks"),
        ("fnd_shop/tasks.py", "fnd_shop.tasks"),
        ("fnd_shop/tasks.py:app", "fnd_shop.tasks"),
        ("fnd_shop/tasks.py/", "fnd_shop.tasks"),
        ("fnd_shop/tasks", "fnd_shop.tasks"),
        ("./fnd_shop/tasks.py", "fnd_shop.tasks"),
        (".\\fnd_shop\\tasks.py", "fnd_shop.tasks"),
        ("fnd_pack/sub/tasks.py", "fnd_pack.sub.tasks"),
        ("fnd_space/tasks.py", "fnd_space.tasks"),
        ("src/fnd_inner/tasks.py", "fnd_inner.tasks"),
        ("fnd_single", "fnd_single"),
        ("fnd_single.py:app", "fnd_single"),
    ],
)
def test_the_app_is_found_and_its_tasks_are_named_as_elsewhere(place: Path, spec: str, module: str) -> None:
    assert list(find_app(spec, place).tasks) == [f"{module}.greet"]


def test_a_whole_path_is_found(place: Path) -> None:
    assert find_app(str(place / "fnd_single.py"), Path("/")).tasks


def test_another_attribute_is_found(place: Path) -> None:
    assert find_app("fnd_shop.tasks:other", place) is sys.modules["fnd_shop.tasks"].other


def test_a_factory_is_called(place: Path) -> None:
    made = find_app("fnd_shop.tasks:make", place)
    assert made is not sys.modules["fnd_shop.tasks"].app


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "--app is empty"),
        ("   ", "--app is empty"),
        (":app", "names no module before the colon"),
        (
            "fnd_shop.tasks:ap",
            "has no attribute 'ap'; the Rota apps in fnd_shop.tasks: fnd_shop.tasks:app, fnd_shop.tasks:other",
        ),
        ("fnd_shop.tasks:number", "'number' is of type int, not a Rota app; the Rota apps in"),
        ("fnd_shop.tasks:Thing", "is the class Thing"),
        ("fnd_shop.tasks:Rota", "is the class Rota"),
        ("fnd_shop.tasks:greet", "of type Task"),
        ("fnd_shop.tasks:make_five", "make_five() answered what is of type int"),
        ("fnd_shop.tasks:make_of", "cannot be called without arguments"),
        ("fnd_shop.tasks:amake", "of type coroutine"),
        ("fnd_shop", "no Rota app at its top; its modules: fnd_shop.tasks"),
        ("fnd_shop/", "no Rota app at its top"),
        ("fnd_shop.nope", "fnd_shop has no attribute 'nope'"),
        ("fnd_nope.tasks:app", "there is no module 'fnd_nope' in {place}"),
        ("fnd_inner.tasks:app", "src/ has one: pass --app-dir src"),
        (".", "is a directory without __init__.py"),
        ("fnd_nope/x.py", "there is no file {place}/fnd_nope/x.py"),
        ("fnd-dash.py", "'fnd-dash' is no name that Python can import"),
        ("fnd-dash:app", "'fnd-dash' is no name of a module"),
        ("fnd_shop.tasks:app:more", "is no name of a module"),
        ("queue.py", "the name 'queue' is taken by"),
    ],
)
def test_what_is_not_found_is_told_in_one_line(place: Path, spec: str, said: str) -> None:
    with pytest.raises(AppNotFound) as caught:
        find_app(spec, place)
    assert said.format(place=place) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("x = (\n", "SyntaxError"),
        ("import fnd_missing_dependency\n", "No module named 'fnd_missing_dependency'"),
        ("from fnd_shop.nope import x\n", "No module named 'fnd_shop.nope'"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_an_error_in_the_apps_code_shows_where_in_that_code(
    place: Path, capsys: pytest.CaptureFixture[str], source: str, shown: str
) -> None:
    (place / "fnd_bad.py").write_text(source)
    with pytest.raises(AppBroken, match="see above") as caught:
        find_app("fnd_bad:app", place)
    told = capsys.readouterr().err
    assert shown in told
    assert "fnd_bad.py" in told
    assert "rota/cli" not in told
    assert caught.value.exit_code == 1


def test_a_module_that_exits_says_so(place: Path) -> None:
    (place / "fnd_exits.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(AppBroken, match=r"called sys\.exit\(3\)"):
        find_app("fnd_exits:app", place)


def test_a_broken_factory_shows_its_traceback(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AppBroken, match="make_broken\\(\\) failed"):
        find_app("fnd_shop.tasks:make_broken", place)
    assert "in the factory" in capsys.readouterr().err


def test_a_worker_of_a_module_that_cannot_be_imported_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import a_dependency_that_is_missing\n")
    ended = run("worker", "--app", "shop:app", cwd=tmp_path)
    assert ended.returncode == 1
    assert "a_dependency_that_is_missing" in ended.stderr
    assert 'shop.py", line 1' in ended.stderr


def test_an_app_that_is_not_there_ends_with_status_2_and_one_line(tmp_path: Path) -> None:
    ended = run("worker", "--app", "nowhere:app", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert str(tmp_path) in ended.stderr


def test_the_app_is_named_by_option_or_variable_before_or_after_the_command(place: Path) -> None:
    (place / "queue.py").unlink()  # `python -m` would take it for Python's own
    for args, env in (
        (("stats", "--app", "fnd_single:app"), {}),
        (("--app", "fnd_single:app", "stats"), {}),
        (("stats",), {"ROTA_APP": "fnd_single:app"}),
        (("stats", "--app", "fnd_single:app"), {"ROTA_APP": "nowhere:app"}),
        (("stats", "--url", "memory://"), {"ROTA_APP": "nowhere:app"}),
        (("stats", "--app", "fnd_inner.tasks:app", "--app-dir", "src"), {}),
    ):
        ended = run(*args, cwd=place, env=environment(**env))
        assert (ended.returncode, ended.stderr) == (0, "")
