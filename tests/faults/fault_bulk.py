"""Enqueue so many jobs at once, and stop half-way: a file says so, and nobody lets it go on."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from rota import Rota


def calls(number: int, half: Path) -> Iterator[tuple[int]]:
    for each in range(number):
        if each == number // 2:
            half.touch()
            threading.Event().wait()
        yield (each,)


if __name__ == "__main__":
    with Rota(os.environ["FAULT_URL"]) as app:
        app.named("quick").enqueue_many(calls(int(sys.argv[1]), Path(sys.argv[2])))
