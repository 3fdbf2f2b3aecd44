"""An interpreter for each contender: peers get virtual environments of their own, made on first use."""

from __future__ import annotations

import subprocess
import sys
from compileall import compile_dir
from functools import cache
from pathlib import Path

import rota
from bench.contenders import ADAPTERS, Contender

WORK = Path(__file__).resolve().parents[1] / ".bench"
"""Everything a run leaves behind but its results: environments, the server, databases, raw figures."""


class Unavailable(Exception):
    """A contender that cannot be measured here, and why."""


def programs(contender: Contender) -> Path:
    """The folder of the contender's programs, its `python` among them. Made if missing. Raises `Unavailable`."""
    _compile()
    if not contender.needs:
        return Path(sys.executable).parent
    return _make(contender.environment, contender.needs)


@cache
def _make(name: str, needs: tuple[str, ...]) -> Path:
    folder = WORK / name
    made = folder / "needs.txt"
    wanted = "\n".join(needs)
    if not made.exists() or made.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", *needs], capture_output=True, text=True)
        if pip.returncode:
            raise Unavailable(f"{name} could not be installed: {pip.stderr.strip().splitlines()[-1]}")
        made.write_text(wanted)
    return folder / "bin"


@cache
def _compile() -> None:
    """Compile what runs from its source. For the peers pip has done so, and Python may be told to keep no bytecode."""
    for folder in (Path(rota.__file__).parent, ADAPTERS):
        compile_dir(folder, quiet=1)


@cache
def version(package: str, folder: Path) -> str:
    """The installed version of a package."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    found = subprocess.run([str(folder / "python"), "-c", code], capture_output=True, text=True)
    return found.stdout.strip() or "?"
