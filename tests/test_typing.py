"""A wrong argument to `enqueue` is an error in both type checkers, and a right one is not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typed"
WRONG = {number for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")}


def mypy(file: str) -> set[int]:
    """The lines of a file that mypy finds wrong."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-incremental", str(HERE / file)]
    said = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False)
    assert not said.stderr, said.stderr
    return {int(line) for line in re.findall(rf"{file}:(\d+): error:", said.stdout)}


def pyright(file: str) -> set[int]:
    """The lines of a file that pyright finds wrong."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(HERE / file)]
    said = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False)
    found = json.loads(said.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_right_calls_are_accepted(checker) -> None:
    assert checker("correct.py") == set()


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_each_wrong_call_is_an_error(checker) -> None:
    assert WRONG
    assert checker("wrong.py") == WRONG
