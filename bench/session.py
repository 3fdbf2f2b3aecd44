"""One run of the bench: what has been measured so far, and the tools that measures use."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.contenders import Contender
from bench.stores import Stores
from bench.workers import Run, prepared

_began = time.monotonic()


@dataclass(frozen=True)
class Measure:
    """Something to measure. `act` measures it once for one contender and notes samples in the session."""

    name: str
    act: Callable[[Session, Contender], None]
    who: Callable[[Contender], bool] = lambda contender: True
    rounds: int | None = None
    """How often at the most, however many rounds are asked for."""


@dataclass
class Session:
    stores: Stores
    quick: bool
    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By store, figure and contender."""
    troubles: list[str] = field(default_factory=list)

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @contextmanager
    def run(self, contender: Contender) -> Iterator[Run]:
        """The contender on a fresh place, its tables made."""
        with self.stores.fresh(contender.store) as place, prepared(contender, place) as run:
            yield run

    def note(self, contender: Contender, figure: str, *values: float) -> None:
        self.samples[contender.store, figure, contender.name].extend(values)
        shown = sorted(values)[len(values) // 2]
        say(f"{contender.store:8} {contender.name:13} {figure:28} {shown:14,.4g}")

    def trouble(self, contender: Contender, measure: str, why: object) -> None:
        line = f"{contender.name} on {contender.store}, {measure}: {why}"
        self.troubles.append(line)
        say("! " + line)


def say(line: str) -> None:
    """Progress, on stderr."""
    print(f"{time.monotonic() - _began:7.1f} s  {line}", file=sys.stderr, flush=True)


def rate(answers: list[dict[str, float]]) -> float:
    """Jobs a second over processes that ran side by side: from the first start to the last end."""
    start, end = min(a["start"] for a in answers), max(a["end"] for a in answers)
    return sum(a["jobs"] for a in answers) / (end - start) * 1e9


def is_rota(contender: Contender) -> bool:
    return contender.name == "rota"
