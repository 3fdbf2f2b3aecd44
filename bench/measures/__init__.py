"""What can be measured, in the order in which it is."""

from __future__ import annotations

from bench.measures import claims, clients, cold, enqueue, floor, footprint, held, idle, imports, latency, limits, throughput
from bench.session import Measure

MEASURES: tuple[Measure, ...] = (
    *throughput.MEASURES,
    floor.MEASURE,
    held.MEASURE,
    *limits.MEASURES,
    *enqueue.MEASURES,
    clients.MEASURE,
    latency.MEASURE,
    cold.MEASURE,
    imports.MEASURE,
    idle.MEASURE,
    *footprint.MEASURES,
    claims.MEASURE,
)

NAMES = tuple(dict.fromkeys(measure.name for measure in MEASURES))
