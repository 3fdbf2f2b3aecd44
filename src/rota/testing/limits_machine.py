"""Random claims under limits, ends, deaths, changes of sizes and code, and moves of the clock, held against the rule.

    def test_my_store_keeps_limits(store):
        keep_limits(store, examples=200, steps=20)

Each claim must keep every bound, by what the machine itself knows of who runs and when whoever started; and once claims see
nothing more to look at, nobody may wait whom no limit keeps.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from rota.clock import SECOND, Micros
from rota.ids import new_id
from rota.model import (
    Again,
    Ask,
    Cancelled,
    Claimed,
    Edit,
    Ended,
    Failed,
    Filter,
    JobRow,
    Move,
    NewJob,
    Outcome,
    Places,
    Released,
    Report,
    Round,
    Snoozed,
    State,
    Succeeded,
    WorkerRow,
)
from rota.rules.admission import Usage, opens_at
from rota.rules.instances import Instance
from rota.rules.limits import Limit
from rota.rules.sizes import Concurrency, Size, read_size
from rota.stores.base import Store
from rota.testing.limits import Declares
from rota.testing.machine import ALL, BROKEN, LEASE, START, picks

QUEUES = ("x", "y")


def _tenant(tenant: object) -> object:
    return tenant


CODES = (
    Declares(
        {
            "each": {"concurrency": [Limit(1, key=_tenant), 3]},
            "both": {"concurrency": [1, Limit(2, name="partner")], "rate": Limit("1/5s", name="pace")},
            "post": {"concurrency": Limit(2, name="partner")},
            "slow": {"rate": Limit("6/m", key=_tenant)},
            "paced": {"rate": Limit("1/5s", name="pace")},
            "free": {},
        }
    ),
    Declares(
        {
            "each": {"concurrency": [Limit(2, key=_tenant), 2]},
            "both": {"concurrency": Limit(1, name="partner")},
            "post": {"concurrency": [Limit(1, name="partner"), 3]},
            "slow": {},
            "paced": {"rate": Limit("1/s", name="pace")},
            "free": {},
        }
    ),
)
"""What is deployed, and what may be deployed instead."""

TASKS = ("each", "both", "post", "slow", "paced", "free")
OVERRIDES = (("partner", "3"), ("partner", "1"), ("pace", "1/2s"), ("concurrency of each", "1"), ("partner", "1/m"))

jobs = st.builds(
    NewJob,
    id=st.builds(new_id),
    task=st.sampled_from(TASKS),
    queue=st.sampled_from(QUEUES),
    args=st.sampled_from([json.dumps([[], {"tenant": tenant}]) for tenant in (1, 2)]),
    priority=st.sampled_from((0, 0, 1)),
    max_attempts=st.sampled_from((1, 3)),
)
outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    (
        Succeeded(),
        Failed(BROKEN),
        Again(BROKEN, 0),
        Again(BROKEN, SECOND),
        Snoozed(SECOND),
        Released("stopping"),
        Cancelled(),
    )
)


def keep_limits(store: Store, examples: int, steps: int) -> None:
    """Run so many random sequences against this empty store, the same each time; raises the first breach, made small."""
    run_state_machine_as_test(
        lambda: LimitsMachine(store),  # type: ignore[arg-type]
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


class LimitsMachine(RuleBasedStateMachine):
    """One sequence. It leaves the store without jobs, workers and sizes, and begins a day after the last one ended."""

    latest: Micros = START
    """How far the clock was moved so far."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.now = LimitsMachine.latest + 86_400 * SECOND  # no start of an earlier sequence counts any more
        self.code = CODES[0]
        self.overrides: dict[str, Size] = {}
        self.workers: list[str] = []
        self.sent: list[NewJob] = []
        self.running: dict[str, tuple[str, Claimed, Places]] = {}
        """The worker, the claim, and the places that it took, by job."""
        self.places: dict[str, list[Instance]] = {}
        self.usage: dict[Instance, Usage] = {}
        """What started when, and until when what is closed; who runs is told by the places."""

    def teardown(self) -> None:
        LimitsMachine.latest = self.now
        for worker in self.workers:
            self.store.leave(worker, now=self.now)
        left = [row.id for row in self.store.find(Filter(), ALL)]
        assert all(each.after is None for each in self.store.change(Move.DELETE, left, now=self.now))
        for name in self.store.overrides():
            self.store.set_limit(name, None, now=self.now)

    # -- what may happen ------------------------------------------------------------------------

    @initialize(some=st.lists(jobs, max_size=8))
    def begin(self, some: list[NewJob]) -> None:
        self.join()
        self.join()
        if some:
            self.insert(some)

    @rule(some=st.lists(jobs, min_size=1, max_size=8))
    def insert(self, some: list[NewJob]) -> None:
        self.sent += some
        self.store.insert(some, now=self.now)

    @rule(span=st.sampled_from((1, SECOND, 5 * SECOND, 30 * SECOND, 7_200 * SECOND)))
    def time_passes(self, span: Micros) -> None:
        """The workers beat meanwhile."""
        self.now += span
        for worker in self.workers:
            self.store.beat(
                worker, [Report(id, each.claim) for id, (by, each, _) in self.running.items() if by == worker], now=self.now
            )
        self.store.promote(ALL, now=self.now)
        self.store.prune({}, 100, now=self.now)

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def join(self) -> None:
        worker = WorkerRow(new_id(), "w", "here", 1, None, list(TASKS), 8, LEASE, "1")
        self.store.join(worker, now=self.now)
        self.workers.append(worker.id)

    @precondition(lambda self: len(self.workers) > 1)
    @rule()
    def leave(self) -> None:
        worker = self.workers.pop(0)
        self.store.leave(worker, now=self.now)
        self._ended([id for id, (by, _, _) in self.running.items() if by == worker])

    @rule()
    def deploy(self) -> None:
        """Other code starts, then the old one stops."""
        self.code = CODES[1 - CODES.index(self.code)]
        old = self.workers.copy()
        worker = WorkerRow(new_id(), "w", "here", 1, None, list(TASKS), 8, LEASE, "1")
        self.store.join(worker, now=self.now)
        for each in old:
            self.store.leave(each, now=self.now)
        self.workers = [worker.id]
        self._ended(list(self.running))

    @rule(which=st.integers(0, 2), queues=st.sampled_from((("x",), ("y",), QUEUES)), slots=st.sampled_from((1, 2, 5)))
    def admit(self, which: int, queues: tuple[str, ...], slots: int) -> None:
        self._admit(self._worker(which), queues, slots, slots)

    @rule(which=st.integers(0, 2), slots=st.sampled_from((0, 1, 2)))
    def admit_ahead(self, which: int, slots: int) -> None:
        """A worker that has room for more jobs than it can start now."""
        self._admit(self._worker(which), QUEUES, slots, slots + 3)

    @rule(which=st.integers(0, 2), at_once=st.sampled_from((0, 1, 2)))
    def admit_to_wait(self, which: int, at_once: int) -> None:
        """A worker that lets jobs under limits wait for its slots."""
        self._admit(self._worker(which), QUEUES, at_once + 3, at_once + 3, at_once)

    @rule(which=st.integers(0, 2), queues=st.sampled_from((("x",), ("y",), QUEUES)))
    def settle(self, which: int, queues: tuple[str, ...]) -> None:
        """Claims go on until there is nothing more to look at. Nobody waits then whom no limit keeps."""
        worker = self._worker(which)
        for _ in range(100):
            found = self._admit(worker, queues, 1_000, 1_000)
            if not (found.more or found.next_in == 0):
                break
        else:
            raise AssertionError("there is more to look at without end")
        sizes = self.code.sizes(self.overrides)
        for row in self.store.find(Filter(states=(State.QUEUED, State.HELD)), ALL):
            if row.queue in queues:
                self._is_kept(row, found, sizes)

    @precondition(lambda self: self.running)
    @rule(which=picks, outcome=outcomes, keep=st.booleans())
    def finish(self, which: list[int], outcome: Outcome, keep: bool) -> None:
        ids = list(self.running)
        chosen = {ids[number % len(ids)] for number in which}
        worker = self.running[min(chosen)][0]
        ends = [
            Ended(id, self.running[id][1].claim, outcome, keep=keep, places=self.running[id][2])
            for id in sorted(chosen)
            if self.running[id][0] == worker
        ]
        assert self.store.finish(worker, ends, now=self.now).counted == {end.id for end in ends}
        self._ended([end.id for end in ends])

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9), span=st.sampled_from((SECOND, 40 * SECOND)))
    def close(self, which: int, span: Micros) -> None:
        """A job reports that it met the limits of others."""
        id = list(self.running)[which % len(self.running)]
        worker, claimed, places = self.running[id]
        rooms = self.code.instances(id, claimed.task, claimed.args)
        closes = tuple((room.limit, room.key) for room in rooms)
        end = Ended(id, claimed.claim, Again(BROKEN, span), places=places, closes=closes, closes_for=span)
        self.store.finish(worker, [end], now=self.now)
        self._ended([id])
        for room in rooms:
            used = self.usage.get(room, Usage())
            self.usage[room] = Usage(0, used.started_at, max(used.closed_until or 0, self.now + span))

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 9))
    def finish_too_late(self, which: int) -> None:
        """An attempt that somebody else has by now changes nothing."""
        id = list(self.running)[which % len(self.running)]
        worker, claimed, places = self.running[id]
        end = Ended(id, claimed.claim - 1, Succeeded(), places=places)
        assert self.store.finish(worker, [end], now=self.now).counted == set()

    @precondition(lambda self: len(self.workers) > 1)
    @rule()
    def die(self) -> None:
        dead = self.workers.pop(0)
        self.now += LEASE
        for worker in self.workers:
            self.store.beat(worker, [], now=self.now)
        while self.store.lost(2, now=self.now).next_in == 0:
            pass
        self._ended([id for id, (by, _, _) in self.running.items() if by == dead])

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 2), kept=picks)
    def reconcile(self, which: int, kept: list[int]) -> None:
        worker = self._worker(which)
        ids = list(self.running)
        in_hand = {ids[number % len(ids)] for number in kept}
        self.store.reconcile(worker, sorted(in_hand), now=self.now)
        self._ended([id for id, (by, _, _) in self.running.items() if by == worker and id not in in_hand])

    @precondition(lambda self: self.sent)
    @rule(
        which=picks,
        move=st.sampled_from((Move.CANCEL, Move.RETRY, Move.DELETE)),
        state=st.sampled_from((State.QUEUED, State.HELD, None)),
        looked=st.booleans(),
    )
    def change(self, which: list[int], move: Move, state: State | None, looked: bool) -> None:
        """Somebody changes jobs, perhaps just after a claim that took none had let some out."""
        if looked:
            self._admit(self._worker(0), QUEUES, 0, 0)
        rows = self.store.find(Filter(states=(state,) if state else ()), ALL)
        if rows:
            self.store.change(move, sorted({rows[number % len(rows)].id for number in which}), now=self.now)

    @precondition(lambda self: self.sent)
    @rule(
        which=picks,
        edit=st.sampled_from(
            (Edit(priority=2), Edit(queue="x"), Edit(queue="y", priority=-1), Edit(delay=0), Edit(delay=SECOND))
        ),
        looked=st.booleans(),
    )
    def edit(self, which: list[int], edit: Edit, looked: bool) -> None:
        """Somebody edits jobs that wait, perhaps just after a claim that took none had let some out."""
        if looked:
            self._admit(self._worker(0), QUEUES, 0, 0)
        rows = self.store.find(Filter(states=(State.QUEUED, State.HELD, State.SCHEDULED)), ALL)
        if rows:
            self.store.edit(edit, sorted({rows[number % len(rows)].id for number in which}), now=self.now)

    @rule(override=st.sampled_from(OVERRIDES), unset=st.booleans())
    def set_limit(self, override: tuple[str, str], unset: bool) -> None:
        name, text = override
        size = None if unset else read_size(text)
        self.store.set_limit(name, size, now=self.now)
        self.overrides.pop(name, None)
        if size is not None:
            self.overrides[name] = size
        assert self.store.overrides() == self.overrides

    # -- what always holds ----------------------------------------------------------------------

    @invariant()
    def places_are_those_of_running_jobs(self) -> None:
        running: dict[Instance, int] = {}
        for room in (room for places in self.places.values() for room in places):
            running[room] = running.get(room, 0) + 1
        rooms = self.store.rooms()
        assert {Instance(each.name, each.key): each.running for each in rooms if each.running} == running
        held: dict[tuple[str, str], int] = {}
        for row in self.store.find(Filter(states=(State.HELD,)), ALL):
            assert row.held_by is not None
            held[row.held_by] = held.get(row.held_by, 0) + 1
        assert {(each.name, each.key): each.held for each in rooms if each.held} == held

    # -- how it is done -------------------------------------------------------------------------

    def _admit(self, worker: str, queues: tuple[str, ...], slots: int, limit: int, at_once: int | None = None) -> Round:
        found = self.store.admit(Ask(worker, queues, limit, slots, at_once), self.code, now=self.now)
        assert len(found.claimed) <= limit
        sizes = self.code.sizes(self.overrides)
        before = Counter(room for places in self.places.values() for room in places)
        entered: Counter[Instance] = Counter()
        for position, claimed in enumerate(found.claimed):
            assert claimed.queue in queues
            needs = [room for room in self.code.instances(claimed.id, claimed.task, claimed.args) if room.limit in sizes]
            assert not needs or position < slots
            for room in needs:
                assert self._opening(room, sizes) == self.now, f"{room} lets in more than it may"
            for room in needs:
                self.usage[room] = Usage(0, self.now, self.usage.get(room, Usage()).closed_until)
            places = [room for room in needs if isinstance(sizes[room.limit], Concurrency)]
            taken = tuple((room.limit, room.key) for room in places)
            assert found.places.get(claimed.id, ()) == taken
            assert claimed.id not in self.running
            self.running[claimed.id] = (worker, claimed, taken)
            if places:
                self.places[claimed.id] = places
            entered.update(needs)
        for room, count in entered.items() if at_once is not None else ():
            size = sizes[room.limit]
            ahead = size.most // 2 - before[room] if isinstance(size, Concurrency) else 0
            assert count - max(0, ahead) <= (at_once or 0), f"too many wait for a slot in {room}"
        return found

    def _is_kept(self, row: JobRow, found: Round, sizes: Mapping[str, Size]) -> None:
        """A job waits for a room that has none, or may have some for it at a moment at which a claim is to be made.

        The room that held it counts although its task may have given that limit up, where other tasks have it still.
        """
        assert row.state is State.HELD, f"{row.task} waits on {row.queue} although it may be claimed"
        assert row.held_by is not None
        needed = {Instance(*row.held_by), *self.code.instances(row.id, row.task, row.args)}
        openings = {room: self._opening(room, sizes) for room in needed if room.limit in sizes}
        assert any(at != self.now for at in openings.values()), f"{row.task} is held by {row.held_by} although nothing keeps it"
        opening = openings.get(Instance(*row.held_by))
        if opening is not None:
            assert found.next_in is not None
            assert found.next_in <= opening - self.now

    def _opening(self, room: Instance, sizes: Mapping[str, Size]) -> Micros | None:
        used = self.usage.get(room, Usage())
        running = sum(room in places for places in self.places.values())
        return opens_at(sizes[room.limit], Usage(running, used.started_at, used.closed_until), self.now)

    def _ended(self, ids: Sequence[str]) -> None:
        for id in ids:
            del self.running[id]
            self.places.pop(id, None)

    def _worker(self, which: int) -> str:
        return self.workers[which % len(self.workers)]
