"""Limits hold over all workers: who is let in, who is held, and how what ends makes room for what waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rota.clock import SECOND, Micros
from rota.ids import new_id
from rota.model import Ask, Claimed, Ended, LimitRow, NewJob, Round, State, Succeeded
from rota.rules.admission import Usage, opens_at
from rota.rules.instances import Instance, instances_of
from rota.rules.limits import in_force, limits_of
from rota.rules.sizes import Concurrency, Rate, Size
from rota.stores.base import Store
from rota.testing.contract.scene import (
    NOW,
    claim,
    join,
    new,
    put,
    state,
)
from rota.testing.limits import VECTORS, Vector, Waiting

HELD = (State.HELD,)
MAIL = "concurrency of mail"
RATE = "rate of mail"


class Declares:
    """The limits that some code declares: the options of each task, by its name."""

    def __init__(self, tasks: Mapping[str, Mapping[str, Any]], huge: bool = False) -> None:
        self._limits = {task: limits_of(task, **options) for task, options in tasks.items()}
        self._huge = huge

    def sizes(self, overrides: Mapping[str, Size]) -> dict[str, Size]:
        sizes = in_force([limit for limits in self._limits.values() for limit in limits], overrides)
        return {name: _huge(size) for name, size in sizes.items()} if self._huge else sizes

    def instances(self, job: str, task: str, args: str) -> tuple[Instance, ...]:
        return instances_of(self._limits.get(task, ()), json.loads(args)[1])


def _huge(size: Size) -> Size:
    return Rate(1_000_000, SECOND) if isinstance(size, Rate) else Concurrency(1_000_000)


def mail(**options: Any) -> Declares:
    """What the task `mail` alone is declared with."""
    return Declares({"mail": options})


TWO = mail(concurrency=2)
ONE = mail(concurrency=1)
NONE = mail()


def job(task: str = "mail", **options: Any) -> NewJob:
    arguments = options.pop("arguments", {})
    return new(task=task, args=json.dumps([[], arguments]), **options)


def worker_of(store: Store, *tasks: str, now: Micros = NOW, **fields: Any) -> str:
    return join(store, now, tasks=list(tasks or ("mail", "post", "other")), **fields)


def admit(
    store: Store,
    worker: str,
    limits: Declares,
    slots: int = 100,
    now: Micros | None = NOW,
    queues: Sequence[str] = ("default",),
    limit: int | None = None,
) -> Round:
    return store.admit(Ask(worker, tuple(queues), slots if limit is None else limit, slots), limits, now=now)


def settled(store: Store, worker: str, limits: Declares, now: Micros | None = NOW, slots: int = 100) -> list[Claimed]:
    """What claims take until there is nothing more to look at now."""
    taken: list[Claimed] = []
    for _ in range(1_000):
        found = admit(store, worker, limits, slots - len(taken), now)
        taken += found.claimed
        if len(taken) == slots or not (found.more or found.next_in == 0):
            return taken
    raise AssertionError("a claim sees more to look at without end")


def end(store: Store, worker: str, *jobs: Claimed, now: Micros | None = NOW, **fields: Any) -> None:
    """These attempts succeed, and give back what they took."""
    store.finish(worker, [Ended(each.id, each.claim, Succeeded(), limited=True, **fields) for each in jobs], now=now)


def close(store: Store, rooms: Sequence[Instance], span: Micros, now: Micros) -> None:
    """Close rooms, as a job reports that met somebody else's limit."""
    worker = join(store, now)
    put(store, new(queue="closing"), now=now)
    [claimed] = claim(store, worker, queues=("closing",), now=now)
    closes = tuple((room.limit, room.key) for room in rooms)
    store.finish(worker, [Ended(claimed.id, claimed.claim, Succeeded(), keep=False, closes=closes, closes_for=span)], now=now)
    store.leave(worker, now=now)


def room(store: Store, name: str, key: str = "") -> LimitRow:
    """A room as the store knows it."""
    found = [each for each in store.rooms() if (each.name, each.key) == (name, key)]
    return found[0] if found else LimitRow(name, key, 0, 0)


def running_and_held(store: Store, name: str, key: str = "") -> tuple[int, int]:
    each = room(store, name, key)
    return each.running, each.held


# -- the table ----------------------------------------------------------------------------------


class _Replay:
    """One vector on a store: what was before is brought about, then one claim is made at `NOW`."""

    def __init__(self, store: Store, vector: Vector) -> None:
        self.store = store
        self.vector = vector
        self.worker = worker_of(store, *vector.tasks, now=NOW - 2 * SECOND)
        self.limits = Declares(vector.tasks)
        self.ids = dict(zip(sorted(each.id for each in vector.waiting), sorted(new_id() for _ in vector.waiting), strict=True))

    def round(self) -> Round:
        self._earlier()
        for name, size in self.vector.overrides.items():
            self.store.set_limit(name, _size(size), now=NOW)
        self._put([each for each in self.vector.waiting if each.held])
        self._hold()
        rooms = {f"{room}": room for each in self.vector.waiting for room in self.vector.instances(each)}
        for text, until in self.vector.closed.items():
            begin = min(0, until) - SECOND
            close(self.store, [rooms[text]], until - begin, NOW + begin)
        self._put([each for each in self.vector.waiting if not each.held])
        return admit(self.store, self.worker, self.limits, self.vector.slots)

    def _earlier(self) -> None:
        """Jobs that started before, under limits that let all in."""
        huge = Declares(self.vector.tasks, huge=True)
        for earlier in self.vector.earlier:
            put(self.store, job(earlier.task, arguments=dict(earlier.arguments)), now=NOW + earlier.at)
            [claimed] = admit(self.store, self.worker, huge, now=NOW + earlier.at).claimed
            if not earlier.running:
                end(self.store, self.worker, claimed, now=NOW + earlier.at)

    def _put(self, waiting: Sequence[Waiting]) -> None:
        jobs = [
            NewJob(
                self.ids[each.id],
                each.task,
                "default",
                json.dumps([[], dict(each.arguments)]),
                priority=each.priority,
                run_at=NOW + each.due,
            )
            for each in waiting
        ]
        if jobs:
            put(self.store, *jobs)

    def _hold(self) -> None:
        """Hold what is queued by closing its rooms until the moment of the claim, whatever limits it had then."""
        waiting = [each for each in self.vector.waiting if each.held]
        tasks = {task: dict(options) or {"concurrency": 2} for task, options in self.vector.tasks.items()}
        before = Declares(tasks)
        rooms = {
            room
            for each in waiting
            for room in before.instances(self.ids[each.id], each.task, json.dumps([[], dict(each.arguments)]))
        }
        if waiting:
            close(self.store, sorted(rooms), 1, NOW - 1)
            assert admit(self.store, self.worker, before, now=NOW - 1).claimed == []
            assert {state(self.store, self.ids[each.id]) for each in waiting} == {State.HELD}


def _size(text: str) -> Size:
    from rota.rules.sizes import read_size

    return read_size(text)


class Limiting:
    @pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
    def test_a_claim_does_what_the_table_says(self, store: Store, vector: Vector) -> None:
        replay = _Replay(store, vector)
        found = replay.round()
        letters = {id: letter for letter, id in replay.ids.items()}
        assert [letters[each.id] for each in found.claimed] == list(vector.admitted)
        rows = {letters[each.id]: each for each in store.get(list(letters))}
        held = {id: f"{Instance(*each.held_by)}" for id, each in rows.items() if each.held_by is not None}
        assert held == {id: name for id, (name, _) in vector.held.items()}
        assert {id for id, each in rows.items() if each.state is State.HELD} == held.keys()
        assert {id for id, each in rows.items() if each.state is State.RUNNING} == set(vector.admitted)
        known = {Instance(each.name, each.key): each for each in store.rooms()}
        assert {f"{each}": kept.running for each, kept in known.items() if kept.running} == vector.running
        openings = {f"{each}": _opening(known.get(each), rate) for each, rate in vector.rates.items()}
        assert {text: at for text, at in openings.items() if at > 0} == vector.next_at
        assert found.next_in == vector.again_at
        assert not found.more


def _opening(found: LimitRow | None, rate: Rate) -> Micros:
    """How long until a rate's room opens."""
    at = opens_at(rate, Usage(0, found.started_at, found.closed_until) if found else Usage(), NOW)
    assert at is not None
    return at - NOW
