"""`rota bench`: runs the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import rota


@click.command(short_help="Run the benchmarks of a checkout.", context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def bench(ctx: click.Context, options: tuple[str, ...]) -> None:
    """Run Rota's benchmarks, which come with its source code; OPTIONS are passed on to them.

    \b
    Examples:
      rota bench
      rota bench -- --help
    """
    folder = next((each for each in _candidates() if _is_ours(each)), None)
    if folder is None:
        click.echo(
            "rota: the benchmarks are not part of the installed package, and no checkout of Rota's source code was found in "
            f"{Path.cwd()} or above it: get one and run `rota bench` inside of it",
            err=True,
        )
        ctx.exit(1)
    ctx.exit(subprocess.call([sys.executable, "-m", "bench", *options], cwd=folder))


def _candidates() -> Iterator[Path]:
    yield Path.cwd()
    yield from Path.cwd().parents
    yield Path(rota.__file__).resolve().parents[2]


def _is_ours(folder: Path) -> bool:
    project = folder / "pyproject.toml"
    return (folder / "bench" / "__main__.py").is_file() and project.is_file() and 'name = "rota"' in project.read_text("utf-8")
