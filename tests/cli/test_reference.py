"""docs/cli.md mentions every command and every option, and every command's help has examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rota.cli.group import rota

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield f"{path} {name}", found
        if isinstance(found, click.Group):
            yield from commands(found, f"{path} {name}")


COMMANDS = dict(commands(rota, "rota"))


def section(path: str) -> str:
    found = re.search(rf"^## `{re.escape(path)}`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/cli.md has no section on `{path}`"
    return found[1]


@pytest.mark.parametrize("path", COMMANDS)
def test_the_page_mentions_each_option_of_each_command(path: str) -> None:
    text = section(path)
    options = [name for param in COMMANDS[path].params if isinstance(param, click.Option) for name in param.opts]
    missing = [name for name in options if not re.search(rf"`{re.escape(name)}[ `]", text)]
    assert not missing
    assert f"$ {path}" in text


def test_the_page_has_no_command_that_is_not_there() -> None:
    assert set(re.findall(r"^## `(rota[^`]*)`", PAGE, re.MULTILINE)) == set(COMMANDS)


def test_the_page_gives_the_options_as_they_are() -> None:
    for path, command in COMMANDS.items():
        for param in command.params:
            if (
                isinstance(param, click.Option)
                and param.default not in (None, False, ())
                and isinstance(param.default, str | int)
            ):
                assert re.search(rf"`{param.opts[0]}[^|]*\|[^|]*`?{param.default}", section(path)), (path, param.opts)


@pytest.mark.parametrize("path", COMMANDS)
def test_each_commands_help_has_examples(path: str) -> None:
    command = COMMANDS[path]
    assert command.help is not None
    assert "Examples:" in command.help
    assert f"  {path}" in command.help
    assert command.short_help
