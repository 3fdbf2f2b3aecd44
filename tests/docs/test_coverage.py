"""The documentation forgets nothing: every option, event, state, move and problem is in a guide, every command is real."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from rota import BoundTask, Kind, Move, Rota, State
from rota.beside import Beside
from rota.cli.group import rota as command_line
from rota.mail import Mailer, compose
from rota.rules.health import Trouble
from rota.stores.postgres import open_postgres
from rota.stores.redis.store import open_redis
from rota.stores.sqlite import open_sqlite
from rota.worker import Worker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
GUIDES = "\n".join(path.read_text("utf-8") for path in PAGES if path.name not in ("reference.md", "CHANGELOG.md"))


def options(*functions: Callable[..., object]) -> list[str]:
    """The named options of these functions."""
    return [
        f"{function.__qualname__} {parameter.name}"
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]


@pytest.mark.parametrize(
    "option",
    options(
        Rota,
        Rota.task,
        Rota.jobs,
        Rota.edit,
        BoundTask.using,
        Worker,
        Beside,
        Rota.lifespan,
        open_sqlite,
        open_postgres,
        open_redis,
        Rota.run_one,
        Mailer,
        compose,
    ),
)
def test_every_option_is_in_a_guide(option: str) -> None:
    name = option.split()[-1]
    assert re.search(rf"`{name}`|\b{name}=", GUIDES)


@pytest.mark.parametrize("word", [*Kind, *State, *Move, *Trouble])
def test_every_event_state_move_and_problem_is_in_a_guide(word: str) -> None:
    assert f"`{word}`" in GUIDES


# -- the command line ---------------------------------------------------------------------------


def command_lines() -> Iterator[tuple[str, str]]:
    """The lines of the documentation that call `rota`, each with its page."""
    for page in PAGES:
        text = page.read_text("utf-8")
        blocks = re.findall(r"^```(?:console|sh|bash|ini)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in blocks for line in block.splitlines()]
        lines += re.findall(r"`(rota [a-z][^`\n]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        for line in lines:
            if found := re.match(r"(?:\$ )?(?:ExecStart=)?(?:\S*/)?(rota [a-z-].*)", line.strip()):
                yield page.name, re.split(r" [|&#>]| && ", found[1])[0].rstrip("& ").strip()


@pytest.mark.parametrize(("page", "line"), sorted(set(command_lines())))
def test_every_command_in_the_documentation_exists(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    command: click.Command = command_line
    shared = click.Context(command_line)
    known = {name for option in command.params for name in option.opts}
    for word in words:
        if word == "--":
            return
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(shared, word)
            if found is None and command is not command_line:
                continue  # an argument of a command that has others below it
            assert found is not None, f"{page} calls {line!r}, and there is no command {word}"
            command = found
            known |= {name for option in command.params for name in option.opts} | {"--help", "-h"}
        elif word.startswith("-"):
            assert word.split("=")[0] in known, f"{page} calls {line!r}, and {command.name} has no option {word}"


# -- links --------------------------------------------------------------------------------------


def links() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" not in target:
                yield str(page.relative_to(ROOT)), target


@pytest.mark.parametrize(("page", "target"), sorted(set(links())))
def test_every_link_leads_somewhere(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    place = (ROOT / page).parent / path if path else ROOT / page
    assert place.exists()
    if anchor:
        assert anchor in anchors(place)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_names_the_two_commands_of_a_fresh_clone(command: str) -> None:
    assert f"$ {command}" in (ROOT / "README.md").read_text("utf-8")
    assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
