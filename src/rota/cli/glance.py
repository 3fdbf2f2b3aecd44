"""What `rota top` shows, gathered by a few reads that cost the same however many finished jobs there are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple

from rota.app import Rota
from rota.cli.place import now_of
from rota.cli.records import job_record, moment, queue_record, room_record, worker_record
from rota.clock import SECOND, Micros
from rota.model import Flow, JobRow, State, Unfinished, WorkerRow
from rota.queues import Queue, listed
from rota.rules.rooms import Room

_FAILURES = 20
"""So many of the last failures are shown."""


class Rates(Struct, frozen=True):
    """How many jobs a second come in, succeed, fail, and are cancelled."""

    enqueued: float = 0.0
    succeeded: float = 0.0
    failed: float = 0.0
    cancelled: float = 0.0

    @property
    def ended(self) -> float:
        return self.succeeded + self.failed + self.cancelled


class Glance(Struct, frozen=True):
    """The deployment at one moment."""

    store: str
    now: Micros
    window: float
    """Over how many seconds the rates are taken."""
    took: float
    """How many seconds it took to look."""
    queues: list[Queue]
    rates: Mapping[str, Rates]
    """By queue."""
    workers: list[WorkerRow]
    working: Mapping[str, Rates]
    """By the worker's id."""
    in_hand: Mapping[str, int]
    """How many jobs each worker has, those included that it claimed ahead."""
    rooms: list[Room]
    """Of limits that hold jobs, those first that hold most."""
    failures: list[JobRow]
    """The jobs that failed last."""

    @property
    def total(self) -> Rates:
        each_of = [astuple(each) for each in self.rates.values()]
        return Rates(*(round(sum(part), 3) for part in zip(*each_of, strict=True)))


def look(app: Rota, window: float) -> Glance:
    """Look at everything once. Reads each unfinished job, those that came in or ended within the window, and no others."""
    began, store = time.monotonic(), app.store
    now = now_of(app)
    unfinished, workers = store.unfinished(), store.workers()
    flow = store.flow(int(window * SECOND), app.now())
    known = {task.options.queue for task in app.tasks.values()}
    return Glance(
        store=store.url,
        now=now,
        window=window,
        queues=listed(unfinished, store.pauses(), workers, known, now),
        rates={name: _rates([each for each in flow if each.queue == name], window) for name in {each.queue for each in flow}},
        workers=workers,
        working={row.id: _rates([each for each in flow if each.worker == row.id], window) for row in workers},
        in_hand=_in_hand(unfinished),
        rooms=sorted((room for room in app.limits() if room.held), key=lambda room: (-room.held, room.name, room.key)),
        failures=store.latest(State.FAILED, _FAILURES),
        took=time.monotonic() - began,
    )


def glance_record(seen: Glance) -> dict[str, Any]:
    """What `--json` prints. Rates are jobs a second over the `window`."""
    return {
        "at": moment(seen.now),
        "store": seen.store,
        "window": seen.window,
        "took": round(seen.took, 4),
        "rates": _rates_record(seen.total),
        "queues": [queue_record(each) | {"rates": _rates_record(seen.rates.get(each.name, Rates()))} for each in seen.queues],
        "workers": [
            worker_record(each)
            | {"jobs": seen.in_hand.get(each.id, 0), "rates": _rates_record(seen.working.get(each.id, Rates()))}
            for each in seen.workers
        ],
        "limits": [room_record(each) for each in seen.rooms],
        "failures": [job_record(each) for each in seen.failures],
    }


def _rates_record(rates: Rates) -> dict[str, float]:
    return asdict(rates)


def _rates(flow: Sequence[Flow], window: float) -> Rates:
    def per_second(state: State | None) -> float:
        return round(sum(each.jobs for each in flow if each.state is state) / window, 3)

    return Rates(per_second(None), per_second(State.SUCCEEDED), per_second(State.FAILED), per_second(State.CANCELLED))


def _in_hand(unfinished: Sequence[Unfinished]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in unfinished:
        if each.worker is not None:
            found[each.worker] = found.get(each.worker, 0) + each.jobs
    return found
