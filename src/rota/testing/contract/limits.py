"""Limits hold over all workers: who is let in, who is held, and how what ends makes room for what waits.

It is long because one class is what a store's own tests take up; its headings are the parts of what is promised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rota.clock import SECOND, Micros
from rota.ids import new_id
from rota.model import Ask, Claimed, Ended, Filter, JobRow, LimitRow, Move, NewJob, Outcome, Places, Round, State, Succeeded
from rota.rules.admission import Usage, opens_at
from rota.rules.instances import Instance
from rota.rules.limits import Limit
from rota.rules.sizes import Concurrency, Rate, read_size
from rota.stores.base import Store
from rota.testing.contract.scene import (
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    change,
    claim,
    finish,
    ids,
    join,
    new,
    put,
    row,
    state,
    worker_row,
)
from rota.testing.limits import VECTORS, Declares, Vector, Waiting

HELD = (State.HELD,)
MAIL = "concurrency of mail"
RATE = "rate of mail"


def mail(**options: Any) -> Declares:
    """What the task `mail` alone is declared with."""
    return Declares({"mail": options})


TWO = mail(concurrency=2)
ONE = mail(concurrency=1)
NONE = mail()


def job(task: str = "mail", **options: Any) -> NewJob:
    arguments = options.pop("arguments", {})
    return new(task=task, args=json.dumps([[], arguments]), **options)


def worker_of(store: Store, *tasks: str, now: Micros | None = NOW, **fields: Any) -> str:
    worker = worker_row(tasks=list(tasks or ("mail", "post", "other")), **fields)
    store.join(worker, now=now)
    return worker.id


def admit(
    store: Store,
    worker: str,
    limits: Declares,
    slots: int = 100,
    now: Micros | None = NOW,
    queues: Sequence[str] = ("default",),
    limit: int | None = None,
    at_once: int | None = None,
) -> Round:
    found = store.admit(Ask(worker, tuple(queues), slots if limit is None else limit, slots, at_once), limits, now=now)
    _taken.update(found.places)
    return found


_taken: dict[str, Places] = {}
"""What each job took, as its worker remembers it."""


def ended(claimed: Claimed | JobRow, outcome: Outcome | None = None, **fields: Any) -> Ended:
    """The end of an attempt that was admitted, with what it took."""
    return Ended(claimed.id, claimed.claim, outcome or Succeeded(), places=_taken.get(claimed.id, ()), **fields)


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
    store.finish(worker, [ended(each, **fields) for each in jobs], now=now)


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
            self.store.set_limit(name, read_size(size), now=NOW)
        self._put([each for each in self.vector.waiting if each.held])
        self._hold()
        rooms = {f"{room}": room for each in self.vector.waiting for room in self.vector.instances(each)}
        for text, until in self.vector.closed.items():
            begin = min(0, until) - SECOND
            close(self.store, [rooms[text]], until - begin, NOW + begin)
        self._put([each for each in self.vector.waiting if not each.held])
        return admit(self.store, self.worker, self.limits, self.vector.slots, at_once=self.vector.at_once)

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


# -- what else is promised ----------------------------------------------------------------------


def _finished(outcome: str) -> Callable[[Store, str, Claimed], None]:
    def out(store: Store, worker: str, claimed: Claimed) -> None:
        assert store.finish(worker, [ended(claimed, OUTCOMES[outcome])], now=NOW).counted == {claimed.id}

    return out


def _dropped(store: Store, worker: str, claimed: Claimed) -> None:
    store.finish(worker, [ended(claimed, keep=False)], now=NOW)


def _put_back_and_cancelled(store: Store, worker: str, claimed: Claimed) -> None:
    change(store, Move.CANCEL, claimed.id)
    _finished("again")(store, worker, claimed)
    assert state(store, claimed.id) is State.CANCELLED


def _left(store: Store, worker: str, claimed: Claimed) -> None:
    store.leave(worker, now=NOW)
    change(store, Move.CANCEL, claimed.id)


def _lost(store: Store, worker: str, claimed: Claimed) -> None:
    assert [lost.id for lost in store.lost(10, now=NOW + LEASE).lost] == [claimed.id]
    change(store, Move.CANCEL, claimed.id)


def _lost_and_cancelled(store: Store, worker: str, claimed: Claimed) -> None:
    change(store, Move.CANCEL, claimed.id)
    store.lost(10, now=NOW + LEASE)
    assert state(store, claimed.id) is State.CANCELLED


def _reconciled(store: Store, worker: str, claimed: Claimed) -> None:
    assert store.reconcile(worker, [], now=NOW) == 1
    change(store, Move.CANCEL, claimed.id)


WAYS_OUT: dict[str, Callable[[Store, str, Claimed], None]] = {
    **{outcome: _finished(outcome) for outcome in OUTCOMES if outcome != "released"},
    "dropped": _dropped,
    "put back and cancelled": _put_back_and_cancelled,
    "left": _left,
    "lost": _lost,
    "lost and cancelled": _lost_and_cancelled,
    "reconciled": _reconciled,
}
"""Every way out of running, after which the job is not queued."""


class Holding:
    """What a limit does besides its bound: how places come back, and what becomes of those who wait."""

    @pytest.mark.parametrize("way", WAYS_OUT)
    def test_a_job_gives_its_place_back_once_whatever_ends_it(self, store: Store, way: str) -> None:
        first, other = worker_of(store), worker_of(store, lease=10 * LEASE)
        jobs = [job() for _ in range(4)]
        put(store, *jobs)
        [claimed] = settled(store, first, ONE, slots=1)
        assert settled(store, other, ONE) == []
        assert running_and_held(store, MAIL) == (1, 3)
        WAYS_OUT[way](store, first, claimed)
        assert ids(settled(store, other, ONE, now=NOW + LEASE)) == [jobs[1].id]
        assert running_and_held(store, MAIL) == (1, 2)
        assert settled(store, other, ONE, now=NOW + LEASE) == []

    def test_a_worker_that_returns_from_the_dead_gives_nothing_back(self, store: Store) -> None:
        first, other = worker_of(store), worker_of(store, lease=10 * LEASE)
        put(store, *(job() for _ in range(3)))
        [claimed] = settled(store, first, ONE, slots=1)
        store.lost(10, now=NOW + LEASE)
        [again] = settled(store, other, ONE, now=NOW + LEASE)
        assert again.id == claimed.id
        end(store, first, claimed, now=NOW + LEASE)
        assert settled(store, other, ONE, now=NOW + LEASE) == []
        assert running_and_held(store, MAIL) == (1, 2)
        end(store, other, again, now=NOW + LEASE)
        end(store, first, claimed, now=NOW + LEASE)
        assert len(settled(store, other, ONE, now=NOW + LEASE)) == 1

    def test_held_jobs_are_told_with_what_holds_them(self, store: Store) -> None:
        worker = worker_of(store)
        limits = mail(concurrency=Limit(1, key=lambda tenant: tenant, name="tenants"))
        jobs = [job(arguments={"tenant": 7}) for _ in range(3)]
        put(store, *jobs)
        found = admit(store, worker, limits)
        assert (ids(found.claimed), found.held) == ([jobs[0].id], 2)
        assert found.places == {jobs[0].id: (("tenants", "7"),)}
        assert [(each.state, each.held_by) for each in store.get([jobs[1].id])] == [(State.HELD, ("tenants", "7"))]
        assert {each.id: each.held_by for each in store.find(Filter(states=HELD), 10)} == {
            each.id: ("tenants", "7") for each in jobs[1:]
        }
        assert {(each.state, each.jobs) for each in store.counts()} == {(State.RUNNING, 1), (State.HELD, 2)}
        assert store.rooms() == [LimitRow("tenants", "7", 1, 2)]
        end(store, worker, *found.claimed)
        assert row(store, jobs[0].id).held_by is None

    def test_a_held_job_is_not_claimed_without_limits(self, store: Store) -> None:
        worker = worker_of(store)
        put(store, job(), job())
        admit(store, worker, ONE)
        assert claim(store, worker) == []

    def test_an_unknown_worker_is_let_in_nowhere(self, store: Store) -> None:
        queued = job()
        put(store, queued)
        assert admit(store, new_id(), ONE) == Round([], {}, 0, False, False, None)
        assert state(store, queued.id) is State.QUEUED

    @pytest.mark.parametrize("move", [Move.CANCEL, Move.DELETE])
    def test_a_held_job_is_cancelled_or_deleted_like_a_queued_one(self, store: Store, move: Move) -> None:
        worker = worker_of(store)
        jobs = [job() for _ in range(3)]
        put(store, *jobs)
        [claimed] = settled(store, worker, ONE)
        changed = change(store, move, jobs[1].id)
        assert (changed.before, changed.after) == (State.HELD, State.CANCELLED if move is Move.CANCEL else None)
        end(store, worker, claimed)
        assert ids(settled(store, worker, ONE)) == [jobs[2].id]

    @pytest.mark.parametrize("move", [Move.CANCEL, Move.DELETE])
    def test_a_job_that_was_let_out_and_taken_away_leaves_its_turn_to_the_next(self, store: Store, move: Move) -> None:
        worker = worker_of(store)
        jobs = [job() for _ in range(3)]
        put(store, *jobs)
        [claimed] = settled(store, worker, ONE)
        end(store, worker, claimed)
        admit(store, worker, ONE, slots=0)  # which looks at the room, and takes nobody
        assert state(store, jobs[1].id) is State.QUEUED
        change(store, move, jobs[1].id)
        assert ids(settled(store, worker, ONE)) == [jobs[2].id]

    def test_a_retried_held_job_is_queued_and_held_again_in_its_place(self, store: Store) -> None:
        worker = worker_of(store)
        jobs = [job(run_at=NOW - 3), job(run_at=NOW - 2), job(run_at=NOW - 1)]
        put(store, *jobs)
        [claimed] = settled(store, worker, ONE)
        assert change(store, Move.RETRY, jobs[1].id, now=NOW + 5).after is State.QUEUED
        assert (row(store, jobs[1].id).due, row(store, jobs[1].id).held_by) == (NOW - 2, None)
        assert settled(store, worker, ONE) == []
        assert state(store, jobs[1].id) is State.HELD
        end(store, worker, claimed)
        assert ids(settled(store, worker, ONE)) == [jobs[1].id]

    @pytest.mark.parametrize("waiting", [False, True])
    def test_a_held_job_keeps_its_key(self, store: Store, waiting: bool) -> None:
        worker = worker_of(store)
        first, second = job(), job(key="k", key_waiting=waiting)
        put(store, first, second)
        [claimed] = settled(store, worker, ONE)
        assert [each.existed for each in put(store, job(key="k"))] == [True]
        end(store, worker, claimed)
        [claimed] = settled(store, worker, ONE)
        assert (claimed.id, claimed.key) == (second.id, None if waiting else "k")
        assert [each.existed for each in put(store, job(key="k"))] == [not waiting]

    def test_thousands_of_held_jobs_of_a_key_delay_no_other_keys_job(self, store: Store) -> None:
        worker = worker_of(store)
        limits = mail(concurrency=Limit(1, key=lambda tenant: tenant))
        put(store, *(job(arguments={"tenant": 1}) for _ in range(10_000)))
        assert len(settled(store, worker, limits, slots=5)) == 1
        other = job(arguments={"tenant": 2}, priority=-1)
        put(store, other)
        found = admit(store, worker, limits, slots=1)
        assert ids(found.claimed) == [other.id]
        assert running_and_held(store, f"{MAIL} by tenant", "1") == (1, 9_999)

    def test_a_job_that_waits_for_a_worker_of_its_queue_keeps_no_other_queue_waiting(self, store: Store) -> None:
        worker = worker_of(store)
        first, there, here = job(), job(queue="elsewhere", priority=1), job(priority=-1)
        put(store, first)
        [claimed] = settled(store, worker, ONE)
        put(store, there, here)
        admit(store, worker, ONE, queues=("default", "elsewhere"))
        assert running_and_held(store, MAIL) == (1, 2)
        end(store, worker, claimed)
        assert ids(settled(store, worker, ONE)) == [here.id]

    def test_a_job_that_goes_from_one_room_to_another_keeps_nobody_behind_it(self, store: Store) -> None:
        worker = worker_of(store)
        limits = Declares(
            {
                "mail": {"concurrency": [Limit(1, name="first"), Limit(1, name="second")]},
                "post": {"concurrency": Limit(1, name="first")},
                "other": {"concurrency": Limit(1, name="second")},
            }
        )
        put(store, job("post"))
        [claimed] = settled(store, worker, limits)
        behind = job("post")
        put(store, *(job("mail") for _ in range(20)), behind)
        assert settled(store, worker, limits) == []
        put(store, job("other"))
        assert len(settled(store, worker, limits)) == 1
        end(store, worker, claimed)
        assert ids(settled(store, worker, limits)) == [behind.id]

    # -- other sizes ----------------------------------------------------------------------------

    def test_a_size_that_is_set_raised_and_cleared_counts_from_the_next_claim(self, store: Store) -> None:
        worker = worker_of(store)
        put(store, *(job() for _ in range(10)))
        assert len(settled(store, worker, ONE)) == 1
        store.set_limit(MAIL, Concurrency(4), now=NOW)
        assert store.overrides() == {MAIL: Concurrency(4)}
        assert len(settled(store, worker, ONE)) == 3
        store.set_limit(MAIL, Concurrency(2), now=NOW)
        assert settled(store, worker, ONE) == []
        store.set_limit(MAIL, Concurrency(6), now=NOW)
        assert len(settled(store, worker, ONE)) == 2
        store.set_limit(MAIL, None, now=NOW)
        assert store.overrides() == {}
        assert settled(store, worker, ONE) == []

    def test_a_lower_size_holds_until_enough_ended(self, store: Store) -> None:
        worker = worker_of(store)
        put(store, *(job() for _ in range(10)))
        claims = settled(store, worker, mail(concurrency=4))
        assert len(claims) == 4
        for claimed in claims[:3]:
            assert settled(store, worker, ONE) == []
            end(store, worker, claimed)
        assert settled(store, worker, ONE) == []
        end(store, worker, claims[3])
        assert len(settled(store, worker, ONE)) == 1

    def test_a_worker_that_joins_with_a_larger_size_lets_more_in(self, store: Store) -> None:
        put(store, *(job() for _ in range(10)))
        assert len(settled(store, worker_of(store), ONE)) == 1
        assert len(settled(store, worker_of(store), mail(concurrency=5))) == 4

    def test_a_worker_that_joins_without_the_limit_takes_what_it_held(self, store: Store) -> None:
        old = worker_of(store)
        put(store, *(job() for _ in range(1_000)))
        [claimed] = settled(store, old, ONE)
        store.leave(old, now=NOW)
        taken = settled(store, worker_of(store), NONE, slots=2_000)
        assert len(taken) == 1_000
        assert len(store.find(Filter(states=HELD), 1)) == 0
        assert claimed.id in ids(taken)

    def test_a_worker_that_does_not_know_the_task_leaves_its_held_jobs_alone(self, store: Store) -> None:
        worker = worker_of(store)
        put(store, *(job() for _ in range(3)))
        settled(store, worker, ONE)
        stranger = worker_of(store, "post")
        assert settled(store, stranger, Declares({"post": {"concurrency": 1}})) == []
        assert running_and_held(store, MAIL) == (1, 2)

    def test_a_room_that_was_overlooked_is_looked_at_within_a_minute(self, store: Store) -> None:
        worker = worker_of(store, lease=10 * LEASE)
        put(store, *(job() for _ in range(2)))
        [claimed] = settled(store, worker, ONE)
        assert finish(store, worker, claimed, OUTCOMES["succeeded"])  # it does not tell of its place, which a store may know
        taken = settled(store, worker, ONE)
        assert len(taken or settled(store, worker, ONE, now=NOW + MINUTE)) == 1
        assert running_and_held(store, MAIL) == (1, 0)

    # -- time -----------------------------------------------------------------------------------

    def test_a_rate_drains_at_the_rate_asked_for(self, store: Store) -> None:
        worker = worker_of(store, lease=100 * MINUTE)
        limits = mail(rate="10/m")
        jobs = [job() for _ in range(5)]
        put(store, *jobs)
        now, starts = NOW, []
        for _ in jobs:
            found = admit(store, worker, limits, now=now)
            starts += [(each.id, now - NOW) for each in found.claimed]
            assert found.places == {}
            assert found.next_in == 6 * SECOND
            now += found.next_in
        assert starts == [(each.id, number * 6 * SECOND) for number, each in enumerate(jobs)]

    def test_a_job_that_reports_a_limit_of_others_closes_its_rooms(self, store: Store) -> None:
        worker = worker_of(store, lease=10 * LEASE)
        jobs = [job() for _ in range(3)]
        put(store, *jobs)
        [claimed] = settled(store, worker, ONE)
        end(store, worker, claimed, closes=((MAIL, ""),), closes_for=30 * SECOND)
        assert settled(store, worker, ONE, now=NOW + SECOND) == []
        assert room(store, MAIL).closed_until == NOW + 30 * SECOND
        found = admit(store, worker, ONE, now=NOW + SECOND)
        assert found.next_in == 29 * SECOND
        assert ids(settled(store, worker, ONE, now=NOW + 30 * SECOND)) == [jobs[1].id]

    def test_a_shorter_closing_does_not_cut_a_longer_one_short(self, store: Store) -> None:
        close(store, [Instance(RATE)], MINUTE, NOW)
        close(store, [Instance(RATE)], SECOND, NOW)
        assert room(store, RATE).closed_until == NOW + MINUTE

    # -- what a claim takes ---------------------------------------------------------------------

    def test_jobs_under_limits_take_slots_alone_and_others_may_wait_in_the_worker(self, store: Store) -> None:
        worker = worker_of(store)
        free = [job("other", priority=2) for _ in range(3)]
        limited = [job(priority=1) for _ in range(3)]
        put(store, *free, *limited, job("other"))
        found = admit(store, worker, mail(concurrency=10), slots=2, limit=5)
        assert ids(found.claimed) == [
            each.id for each in free
        ]  # the third waits in the worker; behind it stands one that may not
        assert not found.more
        assert {state(store, each.id) for each in limited} == {State.QUEUED}
        found = admit(store, worker, mail(concurrency=10), slots=2, limit=5)
        assert ids(found.claimed) == [each.id for each in limited[:2]]

    def test_a_claim_says_that_it_left_jobs_which_would_only_have_waited(self, store: Store) -> None:
        worker = worker_of(store)
        jobs = [job() for _ in range(5)]
        put(store, *jobs)
        found = admit(store, worker, mail(concurrency=4), at_once=0)
        assert (ids(found.claimed), found.reserved, found.more) == ([each.id for each in jobs[:2]], True, False)
        found = admit(store, worker, mail(concurrency=4), at_once=1)
        assert (ids(found.claimed), found.reserved, found.held) == ([jobs[2].id], True, 0)
        found = admit(store, worker, mail(concurrency=4))
        assert (ids(found.claimed), found.reserved, found.held) == ([jobs[3].id], False, 1)

    def test_a_claim_under_limits_brings_all_that_a_worker_needs(self, store: Store) -> None:
        worker = worker_of(store)
        heavy = '[[],{"a":"%s"}]' % ("x" * 100_000)
        given = [
            new(task="mail", args=heavy, priority=2, max_attempts=3, key="k", run_at=NOW - 5),
            new(task="other", args=heavy, priority=1, key="l", key_waiting=True),
        ]
        put(store, *given)
        first, second = admit(store, worker, TWO).claimed
        assert (first.id, first.task, first.queue, first.args) == (given[0].id, "mail", "default", heavy)
        assert (first.claim, first.excused, first.attempt, first.max_attempts) == (1, 0, 1, 3)
        assert (first.priority, first.due, first.key) == (2, NOW - 5, "k")
        assert (second.args, second.key) == (heavy, None)
        kept = row(store, first.id)
        assert (kept.state, kept.worker, kept.claim, kept.claimed_at) == (State.RUNNING, worker, 1, NOW)

    def test_rooms_that_nothing_holds_on_to_are_pruned(self, store: Store) -> None:
        worker = worker_of(store, lease=10_000 * MINUTE)
        limits = mail(concurrency=Limit(1, key=lambda tenant: tenant), rate="1/m")
        put(store, job(arguments={"tenant": 1}))
        [claimed] = admit(store, worker, limits).claimed
        store.prune({}, 100, now=NOW + MINUTE)
        assert room(store, RATE).started_at == NOW
        store.prune({}, 100, now=NOW + 600 * MINUTE)
        assert [each.name for each in store.rooms()] == [f"{MAIL} by tenant"]
        end(store, worker, claimed)
        assert store.rooms() == []

    def test_more_rooms_than_jobs_may_be_deleted_are_pruned_at_once(self, store: Store) -> None:
        worker = worker_of(store, lease=10_000 * MINUTE)
        limits = mail(rate=Limit("60/m", key=lambda tenant: tenant))
        put(store, *(job(arguments={"tenant": number}) for number in range(50)))
        claimed = store.admit(Ask(worker, ("default",), 50, 50), limits, now=NOW).claimed
        for each in claimed:
            end(store, worker, each)
        assert len(store.rooms()) == len(claimed) == 50
        store.prune({}, 10, now=NOW + 600 * MINUTE)
        assert store.rooms() == []
