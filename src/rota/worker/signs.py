"""Signs of life: what a worker lets those know who watch over its process."""

from __future__ import annotations

import math
from typing import Protocol


class Signs(Protocol):
    """Told by several threads, each of its own; every call returns at once and raises nothing."""

    every: float
    """Seconds within which whoever watches wants to hear of each thread."""

    def alive(self) -> None:
        """The main thread answers."""
        ...

    def led(self) -> None:
        """The thread that leads took another step."""
        ...

    def beat(self) -> None:
        """The thread that keeps the lease began another round."""
        ...

    def joined(self, worker: str) -> None:
        """The store knows this worker, under this id."""
        ...

    def ended(self, jobs: int) -> None:
        """The outcomes of so many jobs were recorded."""
        ...

    def stopping(self) -> None:
        """Nothing more is claimed."""
        ...


class Unwatched:
    """What a worker has whose process nobody watches."""

    every = math.inf

    def alive(self) -> None: ...

    def led(self) -> None: ...

    def beat(self) -> None: ...

    def joined(self, worker: str) -> None: ...

    def ended(self, jobs: int) -> None: ...

    def stopping(self) -> None: ...
