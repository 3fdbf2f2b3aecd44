"""The demo from beginning to end: a store, workers, the shop, what is shown meanwhile, and the sums."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rota.app import Rota
from rota.demo import effects
from rota.demo.sums import Sum, sums
from rota.demo.workers import Place, Workers
from rota.ids import new_id
from rota.model import Filter, JobRow, State

_FRAME = 0.1
_QUIET = 0.8
"""Seconds that the workers are watched after the last job, for what should not run any more."""
_LATE = 20.0
"""Seconds after the shop's closing at which the demo gives up."""


@dataclass
class Scene:
    """What there is to show at one moment."""

    passed: float
    states: dict[State, int]
    done: int
    total: int
    reports: list[tuple[str, float]]
    """Running reports and how much of each is done, from 0 to 1."""
    workers: list[Place]
    changed: list[Place]
    """The workers that died or were started anew since the last scene."""
    told: list[dict[str, Any]]
    """What workers logged since the last scene."""


class Show(Protocol):
    """Who shows it: a screen, or plain lines."""

    def __enter__(self) -> Show: ...
    def __exit__(self, *error: object) -> None: ...
    def begin(self, where: str) -> None: ...
    def show(self, scene: Scene) -> None: ...
    def end(self, checked: Sequence[Sum], took: float, next_steps: Sequence[str]) -> None: ...


def play(url: str | None, seconds: float, show: Show) -> bool:
    """Run the demo on the store of `url`, or on a SQLite file that is removed at the end, and answer whether all adds up."""
    with tempfile.TemporaryDirectory(prefix="rota-demo-") as folder:
        where = url or f"sqlite:///{Path(folder) / 'jobs.db'}"
        record = Path(folder) / "effects.jsonl"
        os.environ["ROTA_URL"] = where  # the tasks' module reads it, here and in the workers
        from rota.demo.shop import Shop
        from rota.demo.tasks import app

        app.url = where
        with app, show:
            began = time.monotonic()
            show.begin(app.store.url)  # without its password
            shop = Shop(new_id(), seconds)
            before = _states(app)
            shop.open()
            with Workers({"ROTA_URL": where, effects.VARIABLE: str(record)}) as workers:
                _work(app, shop, workers, show, before)
                took = time.monotonic() - began
            books = shop.books
            checked = sums(books, _rows(app, list(books.expected)), effects.read(record))
            show.end(checked, took, next_steps(None if url is None else app.store.url))
        return all(each.holds for each in checked)


def _work(app: Rota, shop: Any, workers: Workers, show: Show, before: dict[State, int]) -> None:
    """Enqueue and show until every job is final and stays so for a moment, or it is too late for that."""
    began = time.monotonic()
    quiet_since: float | None = None
    closed_at: float | None = None
    while quiet_since is None or time.monotonic() - quiet_since < _QUIET:
        passed = time.monotonic() - began
        shop.tick(passed)
        states = {state: number - before[state] for state, number in _states(app).items()}
        changed = workers.look()
        told = [workers.told.popleft() for _ in range(len(workers.told))]
        done = sum(number for state, number in states.items() if state.final)
        show.show(Scene(passed, states, done, shop.total, _reports(app), workers.places, changed, told))
        if shop.closed:
            closed_at = passed if closed_at is None else closed_at
            ours = list(shop.books.expected)
            # Counts may hold jobs of an earlier demo in the same store, so they only say when a closer look is worth it.
            finished = done >= len(ours) and all(row.state.final for row in _rows(app, ours))
            quiet_since = (quiet_since or time.monotonic()) if finished else None
            if passed - closed_at > _LATE:
                return
        time.sleep(_FRAME)


def _states(app: Rota) -> dict[State, int]:
    states = dict.fromkeys(State, 0)
    for count in app.store.counts():
        if count.task.startswith("demo."):
            states[count.state] += count.jobs
    return states


def _reports(app: Rota) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for row in app.store.find(Filter((State.RUNNING,), task="demo.build_report"), 10):
        if row.progress is not None:
            said = msgspec.json.decode(row.progress)
            found.append((str(said["note"]), float(said["done"] / said["total"])))
    return sorted(found)


def _rows(app: Rota, ids: Sequence[str]) -> list[JobRow]:
    rows = []
    for start in range(0, len(ids), 500):
        rows += app.store.get(ids[start : start + 500])
    return rows


def next_steps(url: str | None) -> list[str]:
    """What to try after the demo, in commands that work where it was started."""
    rota = _command()
    place = shlex.quote(url or "sqlite:///demo.db")
    look = [] if url else [f"{rota} demo --url {place}        the same in a store that stays, to look at:"]
    return [
        *look,
        f"{rota} jobs --url {place} --status failed",
        f"{rota} stats --url {place}",
        f"{rota} worker --app yourmodule:app         your own: put @app.task on a function, call its .enqueue(…)",
    ]


def _command() -> str:
    if shutil.which("rota"):
        return "rota"
    script = sys.argv[0]  # of a virtual environment that is not active, as after `make demo`
    return shlex.quote(script) if Path(script).stem == "rota" else f"{shlex.quote(sys.executable)} -m rota"
