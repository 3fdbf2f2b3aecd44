"""Jobs that are changed while they wait: their priority, their queue, and when they are due."""

from __future__ import annotations

import pytest

from rota.clock import Micros
from rota.model import MOVES, Again, Changed, Edit, Move, State
from rota.stores.base import Store
from rota.testing.contract.limits import HELD, MAIL, ONE, admit, ended, job, running_and_held, settled, worker_of
from rota.testing.contract.lines import SOON
from rota.testing.contract.scene import (
    BROKEN,
    MINUTE,
    NOW,
    STATES,
    claim,
    finish,
    found,
    ids,
    job_in,
    join,
    new,
    put,
    queued,
    row,
    running,
    state,
)
from rota.testing.contract.sleeping import sleeper_on, twin_of

LATER = NOW + 10 * MINUTE
ALL = Edit(priority=7, queue="other", run_at=LATER)


def edited(store: Store, id: str, now: Micros = NOW, **fields: object) -> Changed:
    (changed,) = store.edit(Edit(**fields), [id], now=now)  # type: ignore[arg-type]
    assert changed.id == id
    return changed


class Editing:
    @pytest.mark.parametrize("before", STATES)
    @pytest.mark.parametrize("edit", [ALL, Edit(delay=0)], ids=["all", "now"])
    def test_a_job_is_edited_in_the_states_that_the_table_names(self, store: Store, before: State, edit: Edit) -> None:
        made = job_in(store, before, join(store))
        kept = row(store, made.id)
        (changed,) = store.edit(edit, [made.id], now=NOW)
        assert changed == Changed(made.id, before, state(store, made.id))
        if before in MOVES[Move.EDIT]:
            assert changed.after in MOVES[Move.EDIT][before]
            assert row(store, made.id) != kept or edit == Edit(delay=0)
        else:
            assert row(store, made.id) == kept

    def test_what_is_not_named_stays_as_it_is(self, store: Store) -> None:
        id = queued(store, priority=3, queue="mail", key="k", max_attempts=9, args="[[1],{}]", delay=MINUTE)
        was = row(store, id)
        edited(store, id, priority=-2)
        now = row(store, id)
        assert now.priority == -2
        for name in ("task", "queue", "due", "state", "key", "args", "max_attempts", "created_at", "claim"):
            assert getattr(now, name) == getattr(was, name)

    def test_a_greater_priority_brings_a_job_to_the_front(self, store: Store) -> None:
        jobs = [new(), new(), new()]
        put(store, *jobs)
        edited(store, jobs[2].id, priority=1)
        edited(store, jobs[0].id, priority=-1)
        assert ids(claim(store, join(store))) == [jobs[2].id, jobs[1].id, jobs[0].id]

    def test_a_job_is_claimed_from_the_queue_that_it_was_moved_to(self, store: Store) -> None:
        worker, id = join(store), queued(store)
        edited(store, id, queue="other")
        assert claim(store, worker) == []
        (claimed,) = claim(store, worker, queues=["other"])
        assert (claimed.id, claimed.queue) == (id, "other")

    def test_a_later_moment_makes_a_queued_job_scheduled(self, store: Store) -> None:
        worker, id = join(store), queued(store)
        assert edited(store, id, run_at=LATER).after is State.SCHEDULED
        assert (claim(store, worker), row(store, id).due) == ([], LATER)
        assert store.promote(10, now=LATER - 1).next_in == 1
        assert store.promote(10, now=LATER).count == 1
        assert ids(claim(store, worker, now=LATER)) == [id]

    def test_now_makes_a_scheduled_job_queued(self, store: Store) -> None:
        id = queued(store, delay=10 * MINUTE)
        assert edited(store, id, now=NOW + 5, delay=0) == Changed(id, State.SCHEDULED, State.QUEUED)
        assert row(store, id).due == NOW + 5
        assert ids(claim(store, join(store))) == [id]

    def test_a_moment_that_is_past_is_kept_as_when_it_was_due(self, store: Store) -> None:
        id = queued(store)
        assert edited(store, id, run_at=NOW - MINUTE).after is State.QUEUED
        assert row(store, id).due == NOW - MINUTE

    def test_a_delay_counts_from_now(self, store: Store) -> None:
        id = queued(store)
        edited(store, id, now=NOW + 5, delay=MINUTE)
        assert (row(store, id).due, state(store, id)) == (NOW + 5 + MINUTE, State.SCHEDULED)

    def test_by_the_stores_own_clock_now_is_now(self, store: Store) -> None:
        id = queued(store, delay=1_000_000 * MINUTE)
        (changed,) = store.edit(Edit(delay=0), [id])
        assert changed.after is State.QUEUED
        (changed,) = store.edit(Edit(delay=MINUTE), [id])
        assert changed.after is State.SCHEDULED

    def test_a_job_that_waits_for_its_next_attempt_keeps_those_it_had(self, store: Store) -> None:
        worker = join(store)
        claimed = running(store, worker)
        finish(store, worker, claimed, Again(BROKEN, MINUTE))
        edited(store, claimed.id, delay=0, priority=1)
        assert (row(store, claimed.id).attempt, row(store, claimed.id).reason) == (1, "it broke")
        (again,) = claim(store, worker)
        assert (again.claim, again.attempt) == (2, 2)

    def test_many_are_edited_together_and_unknown_ones_are_told(self, store: Store) -> None:
        worker = join(store)
        done, unknown = job_in(store, State.SUCCEEDED, worker).id, new().id
        waiting = [queued(store), queued(store, delay=MINUTE)]
        changed = store.edit(Edit(queue="other"), [waiting[1], done, unknown, waiting[0]], now=NOW)
        assert changed == [
            Changed(waiting[1], State.SCHEDULED, State.SCHEDULED),
            Changed(done, State.SUCCEEDED, State.SUCCEEDED),
            Changed(unknown, None, None),
            Changed(waiting[0], State.QUEUED, State.QUEUED),
        ]
        assert set(found(store, queue="other")) == set(waiting)

    def test_only_jobs_in_the_states_asked_for_are_edited(self, store: Store) -> None:
        due, later = queued(store), queued(store, delay=MINUTE)
        store.edit(Edit(queue="other"), [due, later], NOW, [State.SCHEDULED])
        assert found(store, queue="other") == [later]

    def test_editing_nothing_is_fine(self, store: Store) -> None:
        assert store.edit(ALL, [], now=NOW) == []

    def test_other_jobs_are_left_alone(self, store: Store) -> None:
        other, id = queued(store), queued(store)
        kept = row(store, other)
        edited(store, id, priority=1, queue="other", delay=MINUTE)
        assert row(store, other) == kept

    def test_an_edit_that_makes_a_job_due_rings_a_worker_that_rests(self, store: Store) -> None:
        id = queued(store, delay=10 * MINUTE)
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper, twin_of(store) as other:
            edited(other, id, delay=0)
            assert sleeper.rung(SOON)


class EditingHeld:
    def test_a_held_job_is_queued_and_held_again_while_there_is_no_room(self, store: Store) -> None:
        worker, [first, second, _] = _one_runs(store)
        assert edited(store, second, priority=5) == Changed(second, State.HELD, State.QUEUED)
        assert settled(store, worker, ONE) == []
        kept = row(store, second)
        assert (kept.state, kept.priority, kept.held_by) == (State.HELD, 5, (MAIL, ""))
        assert (state(store, first), running_and_held(store, MAIL)) == (State.RUNNING, (1, 2))

    def test_a_held_job_with_a_new_priority_is_let_in_before_others(self, store: Store) -> None:
        worker, [first, _, third] = _one_runs(store)
        edited(store, third, priority=1)
        _ended(store, worker, first)
        assert ids(settled(store, worker, ONE)) == [third]

    def test_a_held_job_that_is_put_off_lets_others_in(self, store: Store) -> None:
        worker, [first, second, third] = _one_runs(store)
        assert edited(store, second, delay=MINUTE).after is State.SCHEDULED
        assert row(store, second).held_by is None
        _ended(store, worker, first)
        assert ids(settled(store, worker, ONE)) == [third]

    def test_a_job_that_a_room_let_go_leaves_it_to_others_when_it_is_moved_away(self, store: Store) -> None:
        worker, [first, second, third] = _one_runs(store)
        _ended(store, worker, first)
        admit(store, worker, ONE, queues=())  # the room is opened for the first in line, and nobody claims
        assert (state(store, second), state(store, third)) == (State.QUEUED, State.HELD)
        edited(store, second, queue="other")
        assert ids(settled(store, worker, ONE)) == [third]


def _one_runs(store: Store) -> tuple[str, list[str]]:
    """A worker, and the ids of three jobs under a limit of one: the first runs, the others are held."""
    worker, jobs = worker_of(store), [job(), job(), job()]
    put(store, *jobs)
    assert ids(settled(store, worker, ONE)) == [jobs[0].id]
    assert set(found(store, states=HELD)) == {jobs[1].id, jobs[2].id}
    return worker, [each.id for each in jobs]


def _ended(store: Store, worker: str, id: str) -> None:
    store.finish(worker, [ended(row(store, id))], now=NOW)
