"""`rota worker` with several processes: what the options mean for the supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from rota.cli.place import named
from rota.supervisor import Plan, Supervisor
from rota.supervisor.memory import MEASURABLE


def supervise(
    ctx: click.Context,
    *,
    processes: int | None,
    name: str | None,
    lease: float,
    shutdown_timeout: float,
    wedged_after: float | None,
    max_jobs: int | None,
    max_memory: int | None,
    reload: bool,
    reload_dirs: Sequence[str],
) -> int:
    """Run the same command line again in processes of its own, until they have ended, and answer the exit status."""
    spec, folder = named(ctx)
    if max_memory is not None and not MEASURABLE:
        raise click.UsageError("--max-memory: this system does not tell how much memory a process has; use --max-jobs")
    silence = 2 * lease if wedged_after is None else wedged_after
    if silence < lease:
        raise click.UsageError(
            f"--wedged-after must not be shorter than --lease, which is {lease:g} s: its jobs are its own so long"
        )
    plan = Plan(
        command=[sys.executable, *sys.orig_argv[1:]],
        processes=processes or 1,
        name=name,
        shutdown_timeout=shutdown_timeout,
        silence=silence,
        max_jobs=max_jobs,
        max_memory=max_memory,
        reload=_watched(spec, folder, reload_dirs) if reload else (),
    )
    _fill_standard_streams()
    return Supervisor(plan).run()


def _fill_standard_streams() -> None:
    """Have something open where a standard stream was closed: else a pipe to a worker would get its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


def _watched(spec: str, folder: Path, given: Sequence[str]) -> list[Path]:
    """The directories whose files are watched: those that were given, or the one that the app's own code is in."""
    if given:
        return [Path(each).absolute() for each in given]
    where = spec.strip().replace("\\", "/")
    if "/" in where or where.split(":")[0].endswith(".py"):
        place = (folder / where.split(":")[0]).parent
        while all((each / "__init__.py").is_file() for each in (place, place.parent)):  # up to the top of its package
            place = place.parent
        return [place if place.is_dir() else folder]
    package = folder / where.split(":")[0].split(".")[0]
    return [package if package.is_dir() else folder]
