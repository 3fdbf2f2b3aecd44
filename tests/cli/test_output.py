"""Output anywhere: pipes whose reader leaves, encodings that lack characters, colour only where it is wanted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.conftest import command, environment, on_terminal, run
from rota import Rota
from rota.cli.tables import Column, _cut, _fit, _width

URL = "sqlite:///jobs.db"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a store of many jobs, some with odd characters."""
    with Rota(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        app.named("shop.grüße").using(queue="päckchen").enqueue_many((f"Zoë {number} 日本語",) for number in range(3_000))
    return tmp_path


@pytest.mark.parametrize("args", [("jobs", "--limit", "20"), ("stats",), ("check",), ("--help",), ("worker", "--help")])
@pytest.mark.parametrize("encoding", [{"PYTHONIOENCODING": "ascii:strict"}, {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_no_encoding_ends_a_command(place: Path, args: tuple[str, ...], encoding: dict[str, str]) -> None:
    ended = run(*args, cwd=place, env=environment(ROTA_URL=URL, PYTHONCOERCECLOCALE="0", **encoding))
    assert ended.returncode == (1 if args == ("check",) else 0)
    assert ended.stderr == ""
    assert ended.stdout.isascii()


def test_a_reader_that_leaves_ends_the_command_quietly(place: Path) -> None:
    with subprocess.Popen(
        command("jobs", "--limit", "3000"),
        cwd=place,
        env=environment(ROTA_URL=URL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_pipe_gets_no_colour_and_whole_values(place: Path) -> None:
    told = run("jobs", "--limit", "1", cwd=place, env=environment(ROTA_URL=URL)).stdout
    assert "\x1b" not in told
    assert "…" not in told
    assert "'Zoë 2999 日本語'" in told


def test_a_terminal_gets_colour_unless_that_is_unwanted(place: Path) -> None:
    env = environment(ROTA_URL=URL, TERM="xterm-256color")
    assert "\x1b[" in on_terminal("stats", cwd=place, env=env, columns=100)
    assert "\x1b[" not in on_terminal("stats", cwd=place, env=env | {"NO_COLOR": "1"}, columns=100)


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
@pytest.mark.parametrize("args", [("jobs", "--limit", "5"), ("stats",)])
def test_a_line_fits_the_terminal(place: Path, args: tuple[str, ...], columns: int) -> None:
    told = on_terminal(*args, cwd=place, env=environment(ROTA_URL=URL, NO_COLOR="1"), columns=columns)
    lines = [line for line in told.splitlines() if not line.startswith("perhaps more") and "jobs in" not in line]
    assert max(len(line) for line in lines) <= columns


def test_the_numbers_under_the_bar_of_all_jobs_are_not_broken(place: Path) -> None:
    with Rota(f"sqlite:///{place / 'jobs.db'}") as app:
        app.named("t").using(delay=60).enqueue().cancel()
        app.named("t").using(delay=60).enqueue()
    told = on_terminal("stats", cwd=place, env=environment(ROTA_URL=URL, NO_COLOR="1"), columns=30)
    assert told.replace("\r", "").splitlines()[2:5] == ["1 scheduled  3000 queued", "1 cancelled", ""]


def test_columns_that_may_go_go_before_others_are_cut_to_nothing() -> None:
    columns = [
        Column("id"),
        Column("task", flexible=True),
        Column("queue", flexible=True, drop=2),
        Column("what", flexible=True, drop=1),
    ]
    assert _fit(columns, [36, 30, 10, 80], None) == {0: 36, 1: 30, 2: 10, 3: 80}
    assert _fit(columns, [36, 30, 10, 80], 120) == {0: 36, 1: 30, 2: 10, 3: 38}
    assert set(_fit(columns, [36, 30, 10, 80], 66)) == {0, 1, 3}
    assert set(_fit(columns, [36, 30, 10, 80], 50)) == {0, 1}


@pytest.mark.parametrize("text", ["日本語の長い名前のキュー", "e\u0301" * 20, "👩\u200d🚀" * 8, "a.b.c.日本語の長い名前"])
@pytest.mark.parametrize("tells", [False, True])
def test_names_of_any_script_are_cut_to_the_width(text: str, tells: bool) -> None:
    for width in range(4, 14):
        line = _cut(text, width, tail=(width - 1) * 2 // 3 if tells else 0)
        assert width - 2 <= _width(line) <= width
        head, _, tail = line.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert not tail or _width(tail[0])


def test_a_closed_output_ends_nothing_with_a_traceback(place: Path) -> None:
    shell = f"{' '.join(command('stats'))} >&-"
    ended = subprocess.run(
        ["sh", "-c", shell], cwd=place, env=environment(ROTA_URL=URL), capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_version_is_told(tmp_path: Path) -> None:
    from rota import __version__

    assert run("--version", cwd=tmp_path).stdout.startswith(f"rota {__version__} (Python ")
