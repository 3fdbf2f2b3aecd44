"""A wrong argument to `enqueue` is an error in both type checkers, and a right one is not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typed"
FILES = [str(HERE / name) for name in ("correct.py", "wrong.py")]
WRONG = {number for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")}


def mypy() -> set[tuple[str, int]]:
    """The file and the line of all that mypy finds wrong."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-incremental", *FILES]
    said = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False)
    assert not said.stderr, said.stderr
    return {(name, int(line)) for name, line in re.findall(r"typed/(\w+\.py):(\d+): error:", said.stdout)}


def pyright() -> set[tuple[str, int]]:
    """The file and the line of all that pyright finds wrong."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *FILES]
    said = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False)
    found = json.loads(said.stdout)["generalDiagnostics"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found if one["severity"] == "error"}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_each_wrong_call_is_an_error_and_no_right_one(checker: Callable[[], set[tuple[str, int]]]) -> None:
    assert WRONG
    assert checker() == {("wrong.py", line) for line in WRONG}
