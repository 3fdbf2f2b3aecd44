"""What Rota sets out to reach, as ratios between figures of one run, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures import Results

BEST_PEER = "the best peer"
ITSELF = "rota"


@dataclass(frozen=True)
class Target:
    """Rota's figure, what it is compared with, and the bound. Without `against` the figure itself is bounded."""

    store: str
    says: str
    figure: str
    at_least: float | None = None
    at_most: float | None = None
    against: str | None = None
    """The figure to compare with; it may be the same one of another contender."""
    of: str = ITSELF
    """Whose figure that is."""


@dataclass(frozen=True)
class Verdict:
    target: Target
    value: float
    """The ratio, or the bounded figure itself."""

    @property
    def met(self) -> bool:
        low, high = self.target.at_least, self.target.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)


def ratio(store: str, says: str, figure: str, at_least: float, against: str, of: str = ITSELF) -> Target:
    return Target(store, says, figure, at_least, None, against, of)


def against_best(store: str, says: str, figure: str, at_least: float | None = None, at_most: float | None = None) -> Target:
    return Target(store, says, figure, at_least, at_most, figure, BEST_PEER)


def bounded(store: str, says: str, figure: str, at_most: float) -> Target:
    return Target(store, says, figure, None, at_most)


FEW, MANY, HEAPS, MANY_BY_TWO = "throughput 5000 x1", "throughput 20000 x1", "throughput 200000 x1", "throughput 20000 x2"

POSTGRES = (
    ratio("postgres", "5,000 jobs, one worker: twice pgqueuer", FEW, 2.0, FEW, "pgqueuer"),
    ratio("postgres", "20,000 jobs, one worker: twice pgqueuer", MANY, 2.0, MANY, "pgqueuer"),
    ratio("postgres", "5,000 jobs: 70 % of the store's floor", FEW, 0.7, "floor"),
    ratio("postgres", "two workers more than pgqueuer's two", MANY_BY_TWO, 1.0, MANY_BY_TWO, "pgqueuer"),
    ratio("postgres", "a transaction held open elsewhere: 80 %", "held with", 0.8, "held without"),
    against_best("postgres", "enqueue one by one: no slower than the best peer", "enqueue", 1.0),
    ratio("postgres", "bulk: three times pgqueuer", "bulk", 3.0, "bulk", "pgqueuer"),
    ratio("postgres", "eight clients: no slower than without NOTIFY (5 % are noise)", "clients", 0.95, "clients silent"),
    *(
        against_best(
            "postgres", f"latency {share} from enqueue's {begin}: 0.7 of the best peer", f"latency {begin} {share}", None, 0.7
        )
        for begin in ("return", "call")
        for share in ("p50", "p95")
    ),
)

SQLITE = (
    ratio("sqlite", "5,000 jobs, one worker: ten times huey", FEW, 10.0, FEW, "huey"),
    ratio(
        "sqlite",
        "enqueue one by one: no slower than huey (tinyjobs does not wait for the disk)",
        "enqueue",
        1.0,
        "enqueue",
        "huey",
    ),
    bounded("sqlite", "bulk of 100,000 under 2 s", "bulk seconds", 2.0),
    bounded("sqlite", "latency p95 from enqueue's call under 15 ms", "latency call p95", 15.0),
)


REDIS = (
    Target("redis", "20,000 jobs, one worker: six times the best peer (its 5,000)", MANY, 6.0, None, against=FEW, of=BEST_PEER),
    against_best("redis", "enqueue one by one: faster than the best peer", "enqueue", 1.0),
    against_best("redis", "32 async callers: faster than the best peer", "enqueue async", 1.0),
    *(
        against_best("redis", f"latency {share} from enqueue's call: below the best peer's", f"latency call {share}", None, 1.0)
        for share in ("p50", "p95")
    ),
    *(
        Target(
            "redis",
            f"latency {share} from enqueue's return: below huey's (taskiq's returns late, often after the body began)",
            *(f"latency return {share}", None, 1.0, f"latency return {share}", "huey"),
        )
        for share in ("p50", "p95")
    ),
    Target("redis", "an idle worker's polls at least 5 s apart (2 % for the clocks)", "idle pause", 4.9),
    bounded("redis", "a queued job under 500 bytes", "bytes a job", 500),
    bounded("redis", "a finished job under 500 bytes", "bytes a finished job", 500),
)


def on_both_databases(store: str) -> Target:
    """What sharing commits brings; Redis has none to share."""
    return ratio(store, "32 async callers: eight times one by one", "enqueue async", 8.0, "enqueue")


def on_all(store: str) -> tuple[Target, ...]:
    """What is asked of each store."""
    return (
        ratio(store, "20,000 queued: 95 % of the rate at 5,000", MANY, 0.95, FEW),
        ratio(store, "200,000 queued: 95 % of the rate at 5,000", HEAPS, 0.95, FEW),
        ratio(store, "two workers more than one (20,000)", MANY_BY_TWO, 1.0, MANY),
        ratio(
            store, "a limit that is never full: 70 % of the rate without", "under a limit never full", 0.7, "without a limit"
        ),
        ratio(
            store, "beside many jobs that a limit holds: 90 % of the rate", "beside many held jobs", 0.9, "beside no held jobs"
        ),
        ratio(
            store,
            "out of many jobs that a limit holds: 90 % of the rate out of few",
            "out of many held jobs",
            0.9,
            "out of few held jobs",
        ),
        *(
            Target(
                store, f"claims beside many {state} jobs: 1.2 times", f"claim with {state}", None, 1.2, f"claim beside {state}"
            )
            for state in ("finished", "scheduled", "queued")
        ),
        bounded(store, "idle worker under 0.5 % of a core", "idle cpu", 0.5),
        bounded(store, "idle worker under 40 MB", "memory", 40.0),
        bounded(store, "import under 0.15 s", "import", 0.15),
        bounded(store, "cold start under 0.4 s", "cold", 0.4),
    )


TARGETS = (
    *(*POSTGRES, on_both_databases("postgres"), *on_all("postgres")),
    *(*REDIS, *on_all("redis")),
    *(*SQLITE, on_both_databases("sqlite"), *on_all("sqlite")),
)


def judge(results: Results) -> list[Verdict]:
    """The verdict on each target whose figures were measured."""
    values = ((target, _value(target, results)) for target in TARGETS)
    return [Verdict(target, value) for target, value in values if value is not None]


def _value(target: Target, results: Results) -> float | None:
    mine = results.get(target.store, target.figure, "rota")
    if target.against is None or mine is None:
        return mine
    if target.of == BEST_PEER:
        best = results.best_peer(target.store, target.against)
        other = best and results.get(target.store, target.against, best)
    else:
        other = results.get(target.store, target.against, target.of)
    return mine / other if other else None
