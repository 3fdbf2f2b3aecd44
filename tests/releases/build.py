"""Build the wheel of an earlier Rota, whose workers the tests run on the tables of this one.

It is given a commit: `python tests/releases/build.py ffdfc18`. The wheel is kept beside this file, so the tests need neither
the history nor a network.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def build(commit: str) -> None:
    archive = subprocess.run(["git", "archive", commit], cwd=HERE.parents[1], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(HERE), folder], check=True
        )


if __name__ == "__main__":
    build(sys.argv[1])
