"""Jobs go from one store to another, sealed, dumped and loaded whole: they are there what they were, and go on as they did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from rota.clock import SECOND
from rota.errors import StoreError
from rota.ids import new_id
from rota.model import (
    AttemptRow,
    Failure,
    Filter,
    JobRow,
    LimitRow,
    Move,
    Released,
    RoomRow,
    State,
    Succeeded,
    TaskRow,
    Whole,
)
from rota.rules.limits import Limit
from rota.stores.base import Store
from rota.testing.contract.extremes import some_text
from rota.testing.contract.limits import admit, end, job, mail, settled, worker_of
from rota.testing.contract.races import at_once
from rota.testing.contract.scene import (
    BROKEN,
    CLAIMED_FIRST,
    LEASE,
    MINUTE,
    NOW,
    OUTCOMES,
    STATES,
    change,
    claim,
    finish,
    ids,
    job_in,
    join,
    new,
    put,
    queued,
    row,
    state,
    worker_row,
)
from rota.testing.contract.sealing import AWAY, HERE, dumped

WAITING: dict[State, dict[str, Any]] = {
    State.SCHEDULED: {"due": NOW + MINUTE, "key": "k", "key_waiting": True},
    State.QUEUED: {"due": NOW - 5, "claim": 3, "excused": 1, "reason": "it broke", "progress": '{"done":1}', "key": "k"},
    State.HELD: {"due": NOW - 4, "held_by": ("mail", '"7"')},
    State.RUNNING: {"worker": "w", "claim": 2, "claimed_at": NOW - 3, "cancelling": True, "progress": '{"done":2}'},
}
"""What an unfinished job in each state may have besides the usual."""
OVER: dict[str, Any] = {"claim": 7, "excused": 3, "claimed_at": NOW - 9, "finished_at": NOW - 2, "took": 7, "key": "k"}
MOVED: dict[State, dict[str, Any]] = WAITING | {
    State.SUCCEEDED: OVER | {"result": '{"a":[1,null]}', "progress": "1"},
    State.FAILED: OVER | {"reason": "it broke"},
    State.CANCELLED: {"finished_at": NOW - 2, "reason": "cancelled"},
}
STATES_MOVED = pytest.mark.parametrize("wanted", MOVED)


def whole(wanted: State = State.QUEUED, attempts: Sequence[AttemptRow] = (), looks: int = 0, **fields: Any) -> Whole:
    """A job as it arrives from another store."""
    usual: dict[str, Any] = {"id": new_id(), "task": "tests.task", "queue": "default", "state": wanted, "priority": 0}
    usual |= {"due": NOW, "created_at": NOW - MINUTE, "claim": 0, "excused": 0, "max_attempts": 5, "args": '{"a":1}'}
    places = fields.pop("places", ())
    return Whole(JobRow(**usual | MOVED[wanted] | fields), tuple(attempts), looks, places)


def attempt(number: int, outcome: str = "again", failure: Failure | None = BROKEN) -> AttemptRow:
    return AttemptRow(number, number, "w", NOW - MINUTE + number, outcome, number, failure)


def load(store: Store, *jobs: Whole) -> int:
    """Take these in from another store, and have nothing sealed afterwards."""
    store.seal(HERE)
    try:
        return store.load(HERE.id, jobs, now=NOW)
    finally:
        assert store.unseal(HERE.id)


def load_rooms(store: Store, *rooms: RoomRow) -> int:
    store.seal(HERE)
    try:
        return store.load_rooms(HERE.id, rooms)
    finally:
        assert store.unseal(HERE.id)


class Moving:
    # -- dumping --------------------------------------------------------------------------------

    def test_an_empty_store_dumps_nothing(self, store: Store) -> None:
        assert store.dump(None, 10) == []
        assert store.dump_rooms(None, 10) == []
        assert store.declarations() == []

    @pytest.mark.parametrize("size", [1, 3, 1_000])
    def test_every_job_is_dumped_once_in_the_order_of_the_ids(self, store: Store, size: int) -> None:
        worker = join(store)
        jobs = [job_in(store, wanted, worker).id for wanted in CLAIMED_FIRST for _ in range(2)]
        found = dumped(store, size)
        assert [each.job.id for each in found] == sorted(jobs)
        assert [each.job for each in found] == [row(store, id) for id in sorted(jobs)]

    def test_a_dump_goes_on_behind_any_id(self, store: Store) -> None:
        jobs = [new() for _ in range(4)]
        put(store, jobs[1], jobs[3])
        assert [each.job.id for each in store.dump(jobs[0].id, 10)] == [jobs[1].id, jobs[3].id]
        assert [each.job.id for each in store.dump(jobs[2].id, 10)] == [jobs[3].id]
        assert store.dump(jobs[3].id, 10) == []

    def test_a_job_is_dumped_with_its_attempts_and_looks(self, store: Store) -> None:
        worker = join(store)
        id = queued(store)
        for number, outcome in enumerate([OUTCOMES["again"], OUTCOMES["snoozed"]]):
            [claimed] = claim(store, worker, now=NOW + number * MINUTE)
            finish(store, worker, claimed, outcome, now=NOW + number * MINUTE, took=5)
            store.promote(10, now=NOW + number * MINUTE + SECOND)
        [claimed] = claim(store, worker, now=NOW + 2 * MINUTE)
        finish(store, worker, claimed, Released("unknown", looks=4), now=NOW + 2 * MINUTE)
        [found] = store.dump(None, 10)
        assert found == Whole(row(store, id), tuple(store.attempts(id)), looks=4)
        assert [each.outcome for each in found.attempts] == ["again", "snoozed", "released"]

    def test_a_running_job_is_dumped_with_the_places_that_it_has(self, store: Store) -> None:
        worker = worker_of(store)
        put(store, job(arguments={"tenant": 7}), job(), job("post"))
        limits = mail(concurrency=[Limit(5, name="all"), Limit(1, key=lambda tenant=None: tenant, name="tenants")])
        assert len(admit(store, worker, limits).claimed) == 3
        places = [each.places for each in dumped(store)]
        assert [len(each) for each in places] == [2, 2, 0]
        assert places[0] == (("all", ""), ("tenants", "7"))

    def test_heavy_jobs_come_fewer_at_a_time(self, store: Store) -> None:
        big = json.dumps(["x" * 3_000_000])
        jobs = [new(args=big) for _ in range(7)]
        put(store, *jobs)
        page = store.dump(None, 1_000)
        assert 1 <= len(page) < 7
        assert [(each.job.id, each.job.args) for each in dumped(store)] == [(each.id, big) for each in jobs]

    # -- loading --------------------------------------------------------------------------------

    @STATES_MOVED
    def test_a_job_arrives_as_it_was(self, store: Store, wanted: State) -> None:
        worker = "w" if wanted in (State.RUNNING, State.FAILED) else None
        many = [attempt(1), attempt(2, "snoozed", None), attempt(3, "released", Failure("", "shutting down"))]
        sent = whole(wanted, many, priority=-3, worker=worker, context='{"tenant":"7"}', looks=2 if not wanted.final else 0)
        assert load(store, sent) == 1
        assert dumped(store) == [sent]
        assert row(store, sent.job.id) == sent.job
        assert tuple(store.attempts(sent.job.id)) == sent.attempts
        assert [(each.state, each.jobs) for each in store.counts()] == [(wanted, 1)]
        if not wanted.final:
            assert [(each.state, each.worker, each.jobs) for each in store.unfinished()] == [(wanted, worker, 1)]

    def test_what_is_there_stays_and_is_not_counted(self, store: Store) -> None:
        jobs = [whole(each, [attempt(1)], key=None) for each in MOVED]
        assert load(store, *jobs[:4]) == 4
        assert load(store, *jobs) == 3
        changed = [replace(each, job=replace(each.job, args="[]", priority=9)) for each in jobs]
        assert load(store, *changed, *changed) == 0
        assert dumped(store) == sorted(jobs, key=lambda each: each.job.id)

    def test_a_job_that_ended_meanwhile_does_not_come_back(self, store: Store) -> None:
        sent = whole(State.QUEUED)
        load(store, sent)
        worker = join(store)
        [claimed] = claim(store, worker)
        finish(store, worker, claimed, Succeeded())
        assert load(store, sent) == 0
        assert state(store, sent.job.id) is State.SUCCEEDED
        assert len(dumped(store)) == 1

    def test_all_of_a_load_arrive_or_none(self, store: Store) -> None:
        queued(store, key="k")
        before = dumped(store)
        with pytest.raises(StoreError):
            load(store, whole(State.FAILED, [attempt(1)]), whole(State.QUEUED, key="k"), whole(State.SUCCEEDED))
        assert dumped(store) == before
        assert [each.jobs for each in store.counts()] == [1]

    def test_nothing_is_loaded_but_beneath_its_own_seal(self, store: Store) -> None:
        with pytest.raises(StoreError, match="not sealed"):
            store.load(HERE.id, [whole()])
        with pytest.raises(StoreError, match="not sealed"):
            store.load_rooms(HERE.id, [RoomRow("mail", "", NOW)])
        store.seal(AWAY)
        with pytest.raises(StoreError, match="being moved"):
            store.load("another", [whole()])
        with pytest.raises(StoreError, match="being moved"):
            queued(store)
        assert store.load(AWAY.id, []) == 0
        assert dumped(store) == []

    def test_a_load_lifts_the_seal_for_nobody_else(self, store: Store) -> None:
        store.seal(HERE)
        store.load(HERE.id, [whole()], now=NOW)
        with pytest.raises(StoreError, match="being moved into"):
            queued(store)
        store.load_rooms(HERE.id, [RoomRow("mail", "", NOW)])
        with pytest.raises(StoreError, match="being moved into"):
            queued(store)

    def test_loads_at_once_add_each_job_once(self, store: Store) -> None:
        jobs = [whole(wanted, [attempt(1)], key=None) for wanted in (State.QUEUED, State.FAILED) for _ in range(50)]
        store.seal(HERE)

        def take(twin: Store) -> int:
            added = 0
            for start in range(0, len(jobs), 10):
                while True:
                    try:
                        added += twin.load(HERE.id, jobs[start : start + 10], now=NOW)
                    except StoreError:  # the other was at the same ones
                        continue
                    break
            return added

        assert sum(at_once(store, [take] * 3)) == len(jobs)
        assert dumped(store) == sorted(jobs, key=lambda each: each.job.id)

    @some_text
    def test_any_text_arrives(self, store: Store, text: str) -> None:
        args = json.dumps([[text], {"a": text}], ensure_ascii=False)
        said = AttemptRow(1, 1, text, NOW, "failed", 1, Failure(text, text, text))
        fields: dict[str, Any] = {"args": args, "result": args, "progress": args, "context": args, "reason": text}
        sent = [
            whole(State.SUCCEEDED, [said], task=text, queue=text, key=text, worker=text, **fields),
            whole(State.HELD, [said], task=text, queue=text, args=args, key=text, held_by=(text or "x", text)),
        ]
        assert load(store, *sent) == 2
        assert dumped(store) == sent
        load_rooms(store, RoomRow(text or "x", text, NOW, NOW, NOW))
        assert RoomRow(text or "x", text, NOW, NOW, NOW) in store.dump_rooms(None, 10)

    @pytest.mark.parametrize("args", [r'{"a":"\u0000"}', r'{"\u0000":"\ud800"}', '{"a":[1.50,1e400,-0]}'])
    def test_arguments_arrive_letter_by_letter(self, store: Store, args: str) -> None:
        sent = [whole(args=args), whole(State.SUCCEEDED, args=args, result=args)]
        load(store, *sent)
        assert dumped(store) == sent

    def test_thousands_arrive_at_once(self, store: Store) -> None:
        jobs = [whole(list(STATES)[number % len(STATES)], key=None) for number in range(3_000)]
        assert load(store, *jobs) == len(jobs)
        assert [each.job.id for each in dumped(store)] == [each.job.id for each in jobs]
        assert sum(each.jobs for each in store.counts()) == len(jobs)

    # -- what becomes of them -------------------------------------------------------------------

    def test_queued_jobs_are_claimed_in_their_order_with_what_they_had(self, store: Store) -> None:
        late, early = whole(due=NOW - 1, key=None), whole(due=NOW - 2, key=None)
        urgent = whole(priority=1, looks=3, context="{}")
        load(store, late, early, urgent)
        assert store.queues() == ["default"]
        worker = join(store)
        claims = claim(store, worker)
        assert ids(claims) == [urgent.job.id, early.job.id, late.job.id]
        assert (claims[0].claim, claims[0].attempt, claims[0].looks, claims[0].context) == (4, 3, 3, "{}")
        assert finish(store, worker, claims[0], OUTCOMES["failed"])
        assert [each.claim for each in store.attempts(urgent.job.id)] == [4]

    def test_scheduled_jobs_become_due(self, store: Store) -> None:
        sent = whole(State.SCHEDULED)
        load(store, sent)
        assert store.promote(10, now=NOW).next_in == MINUTE
        assert store.promote(10, now=NOW + MINUTE).count == 1
        assert ids(claim(store, join(store), now=NOW + MINUTE)) == [sent.job.id]

    @pytest.mark.parametrize("wanted", [State.SCHEDULED, State.QUEUED, State.RUNNING])
    def test_keys_hold_where_they_arrived(self, store: Store, wanted: State) -> None:
        sent = whole(wanted, key="k")
        load(store, sent)
        assert [(each.id, each.existed) for each in put(store, new(key="k"))] == [(sent.job.id, True)]
        assert [each.id for each in store.find(Filter(key="k"), 10)] == [sent.job.id]

    def test_a_key_that_counts_while_waiting_is_free_once_its_job_is_claimed(self, store: Store) -> None:
        load(store, whole(State.QUEUED, key="k", key_waiting=True))
        assert [each.existed for each in put(store, new(key="k"))] == [True]
        claim(store, join(store))
        assert [each.existed for each in put(store, new(key="k"))] == [False]

    def test_a_job_of_a_lost_worker_is_taken_back_once_that_worker_is_known(self, store: Store) -> None:
        lost = worker_row()
        again, last = (whole(State.RUNNING, worker=lost.id, max_attempts=most, cancelling=False) for most in (5, 2))
        load(store, again, last)
        assert store.lost(10, now=NOW).lost == []
        store.join(lost, now=NOW - LEASE)
        assert {each.id: each.state for each in store.lost(10, now=NOW).lost} == {
            again.job.id: State.QUEUED,
            last.job.id: State.FAILED,
        }
        assert [each.outcome for each in store.attempts(again.job.id)] == ["lost"]
        assert store.workers() == []
        assert [each.claim for each in claim(store, join(store))] == [3]

    def test_a_running_job_keeps_its_place_until_it_ends(self, store: Store) -> None:
        lost = worker_row()
        limits = mail(concurrency=Limit(1, name="mail"))
        sent = whole(State.RUNNING, task="mail", worker=lost.id, places=(("mail", ""),))
        load(store, sent)
        assert store.rooms() == [LimitRow("mail", "", 1, 0)]
        worker = worker_of(store)
        waiting = job()
        put(store, waiting)
        assert settled(store, worker, limits) == []
        assert state(store, waiting.id) is State.HELD
        store.join(lost, now=NOW - LEASE)
        assert len(store.lost(10, now=NOW).lost) == 1
        assert ids(settled(store, worker, limits)) == [waiting.id]

    def test_held_jobs_are_held_until_a_claim_finds_room(self, store: Store) -> None:
        limits = mail(concurrency=Limit(1, name="mail"))
        jobs = [whole(State.HELD, task="mail", args="[[],{}]", held_by=("mail", ""), due=NOW - 9 + n) for n in range(3)]
        load(store, *jobs)
        assert store.rooms() == [LimitRow("mail", "", 0, 3)]
        worker = worker_of(store)
        taken = []
        while claimed := settled(store, worker, limits):
            taken += ids(claimed)
            end(store, worker, *claimed)
        assert taken == [each.job.id for each in jobs]

    def test_finished_jobs_are_pruned_by_their_age_and_run_again_on_request(self, store: Store) -> None:
        old, young = (whole(State.FAILED, [attempt(1)], finished_at=NOW - age, key=None) for age in (MINUTE, 1))
        load(store, old, young)
        assert ids(store.latest(State.FAILED, 10)) == [young.job.id, old.job.id]
        assert store.prune({State.FAILED: SECOND}, 10, now=NOW) == {State.FAILED: 1}
        assert (state(store, old.job.id), store.attempts(old.job.id)) == (None, [])
        assert change(store, Move.RETRY, young.job.id).after is State.QUEUED
        assert [(each.id, each.claim, each.attempt) for each in claim(store, join(store))] == [(young.job.id, 8, 1)]

    @pytest.mark.parametrize("wanted", [each for each in MOVED if each is not State.RUNNING])
    def test_a_job_that_arrived_can_be_deleted_without_a_trace(self, store: Store, wanted: State) -> None:
        sent = whole(wanted, [attempt(1)])
        load(store, sent)
        assert change(store, Move.DELETE, sent.job.id).after is None
        assert (dumped(store), store.counts(), store.attempts(sent.job.id)) == ([], [], [])
        assert [each.existed for each in put(store, new(key="k"))] == [False]

    # -- rooms and tasks ------------------------------------------------------------------------

    def test_rooms_are_dumped_page_by_page_and_arrive_as_they_were(self, store: Store) -> None:
        rooms = [RoomRow("rate", f'"{n}"', NOW - n, NOW + n, None if n % 2 else NOW + MINUTE) for n in range(25)]
        assert load_rooms(store, *rooms) == 25
        found: list[RoomRow] = []
        while page := store.dump_rooms(found[-1] if found else None, 4):
            assert len(page) <= 4
            found += page
        assert len(found) == 25
        assert {each.key: each for each in found} == {each.key: each for each in rooms}
        assert load_rooms(store, *rooms) == 0

    def test_a_room_remembers_the_later_of_two_moments(self, store: Store) -> None:
        load_rooms(store, RoomRow("mail", "", NOW, NOW + 5, None))
        assert load_rooms(store, RoomRow("mail", "", NOW - 1, NOW + 4, None)) == 0
        assert load_rooms(store, RoomRow("mail", "", NOW - 1, NOW + 6, NOW + 7)) == 1
        assert store.dump_rooms(None, 10) == [RoomRow("mail", "", NOW, NOW + 6, NOW + 7)]

    def test_a_rate_goes_on_where_it_was(self, store: Store) -> None:
        limits = mail(rate=Limit("1/m", name="mail"))
        worker = worker_of(store, now=NOW)
        put(store, job(), job())
        [first] = settled(store, worker, limits)
        [seen] = store.dump_rooms(None, 10)
        assert (seen.name, seen.started_at) == ("mail", NOW)
        assert seen.keep_until is not None
        assert seen.keep_until >= NOW + MINUTE
        end(store, worker, first)

    def test_a_rate_that_arrived_lets_none_in_too_early(self, store: Store) -> None:
        load_rooms(store, RoomRow("mail", "", NOW, NOW + MINUTE, None))
        limits = mail(rate=Limit("1/m", name="mail"))
        worker = worker_of(store)
        waiting = job()
        put(store, waiting)
        store.prune({}, 10, now=NOW + SECOND)
        assert settled(store, worker, limits, now=NOW + SECOND) == []
        assert ids(settled(store, worker, limits, now=NOW + MINUTE)) == [waiting.id]

    def test_a_closed_room_arrives_closed(self, store: Store) -> None:
        load_rooms(store, RoomRow("mail", "", None, None, NOW + MINUTE))
        limits = mail(concurrency=Limit(1, name="mail"))
        worker = worker_of(store)
        put(store, job())
        assert settled(store, worker, limits) == []
        assert len(settled(store, worker, limits, now=NOW + MINUTE)) == 1

    def test_every_declared_task_is_told(self, store: Store) -> None:
        tasks = [TaskRow("b", "mail", 3, 7), TaskRow("a", "default", 0, 5)]
        store.declare(tasks)
        assert store.declarations() == tasks[::-1]
        store.declare([replace(tasks[0], priority=4)])
        assert store.declarations() == [tasks[1], replace(tasks[0], priority=4)]
