"""From samples to figures: medians, percentiles, and what is best."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BULK = 100_000

Samples = Mapping[tuple[str, str, str], Sequence[float]]

SMALLER_IS_BETTER = ("latency", "cold", "import", "idle", "memory", "claim", "bulk seconds", "bytes")


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Results:
    """One number for each store, figure and contender."""

    samples: Samples

    def stores(self) -> set[str]:
        return {store for store, _, _ in self.samples}

    def contenders(self, store: str) -> list[str]:
        return list(dict.fromkeys(name for where, _, name in self.samples if where == store))

    def get(self, store: str, figure: str, contender: str) -> float | None:
        """The median of a figure's samples; some figures are made from others'."""
        if figure == "floor":
            floors = [self.get(store, f"floor {batch}", contender) for batch in (100, 500)]
            return max((floor for floor in floors if floor), default=None)
        if figure == "bulk seconds":
            bulk = self.get(store, "bulk", contender)
            return bulk and BULK / bulk
        for suffix, share in ((" p50", 0.5), (" p95", 0.95)):
            if figure.endswith(suffix):
                values = self.samples.get((store, figure.removesuffix(suffix), contender))
                return percentile(values, share) if values else None
        values = self.samples.get((store, figure, contender))
        return statistics.median(values) if values else None

    def best_peer(self, store: str, figure: str) -> str | None:
        """The peer whose figure is best; Rota is no peer of itself."""
        known = {
            name: value
            for name in self.contenders(store)
            if name != "rota" and (value := self.get(store, figure, name)) is not None
        }
        if not known:
            return None
        pick = min if figure.startswith(SMALLER_IS_BETTER) else max
        return pick(known, key=lambda name: known[name])
