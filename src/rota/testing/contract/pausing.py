"""Queues that are paused: what the store keeps of it, and how it tells those who work."""

from __future__ import annotations

import pytest

from rota.clock import SECOND
from rota.model import Paused, PauseRow, State
from rota.stores.base import Store
from rota.testing.contract.lines import SOON
from rota.testing.contract.scene import MINUTE, NOW, claim, found, ids, join, new, put, queued, state
from rota.testing.contract.sleeping import sleeper_on, twin_of

NONE = Paused(frozenset(), None)


def paused(store: Store, now: int = NOW) -> set[str]:
    return set(store.paused(now=now).queues)


class Pausing:
    def test_no_queue_is_paused_at_first(self, store: Store) -> None:
        assert (store.paused(now=NOW), store.pauses()) == (NONE, [])

    def test_a_queue_is_paused_until_it_is_resumed(self, store: Store) -> None:
        store.pause("mail", by="Ada", now=NOW)
        assert store.paused(now=NOW + 1_000 * MINUTE) == Paused(frozenset({"mail"}), None)
        assert store.pauses() == [PauseRow("mail", NOW, None, "Ada")]
        assert store.resume("mail", now=NOW + 5)
        assert (store.paused(now=NOW + 5), store.pauses()) == (NONE, [])

    def test_a_pause_until_a_moment_ends_at_it(self, store: Store) -> None:
        store.pause("mail", until=NOW + MINUTE, now=NOW)
        assert store.paused(now=NOW + MINUTE - 1) == Paused(frozenset({"mail"}), 1)
        assert store.paused(now=NOW + MINUTE) == NONE

    def test_a_pause_for_a_span_counts_from_now(self, store: Store) -> None:
        store.pause("mail", span=MINUTE, now=NOW + 3)
        assert store.pauses() == [PauseRow("mail", NOW + 3, NOW + 3 + MINUTE, "")]

    def test_by_the_stores_own_clock_a_pause_ends_as_well(self, store: Store) -> None:
        store.pause("mail", span=1_000 * MINUTE)
        store.pause("post", until=NOW - MINUTE)
        left = store.paused()
        assert left.queues == {"mail"}
        assert left.next_in is not None
        assert 900 * MINUTE < left.next_in <= 1_000 * MINUTE

    def test_the_next_end_is_told_of_several_pauses(self, store: Store) -> None:
        for name, minutes in (("a", 3), ("b", 1), ("c", 2)):
            store.pause(name, span=minutes * MINUTE, now=NOW)
        store.pause("d", now=NOW)
        assert store.paused(now=NOW) == Paused(frozenset("abcd"), MINUTE)
        assert store.paused(now=NOW + MINUTE) == Paused(frozenset("acd"), MINUTE)
        assert [each.queue for each in store.pauses()] == ["a", "b", "c", "d"]

    def test_a_second_pause_takes_the_place_of_the_first_and_began_with_it(self, store: Store) -> None:
        store.pause("mail", span=MINUTE, by="Ada", now=NOW)
        store.pause("mail", by="Bob", now=NOW + SECOND)
        assert store.pauses() == [PauseRow("mail", NOW, None, "Bob")]

    def test_a_pause_after_one_that_is_over_begins_anew(self, store: Store) -> None:
        store.pause("mail", span=SECOND, now=NOW)
        store.pause("mail", now=NOW + SECOND)
        assert store.pauses() == [PauseRow("mail", NOW + SECOND, None, "")]

    def test_a_resume_tells_whether_there_was_a_pause(self, store: Store) -> None:
        store.pause("mail", span=SECOND, now=NOW)
        assert not store.resume("post", now=NOW)
        assert not store.resume("mail", now=NOW + SECOND)
        assert not store.resume("mail", now=NOW)

    @pytest.mark.parametrize("name", ["Mail Out", "ÄÖÜ-queue", "a'b\"c", "%s", "q" * 200, "*", "a:b", "{x}"])
    def test_a_queue_of_any_name_is_paused(self, store: Store, name: str) -> None:
        store.pause(name, by=name, now=NOW)
        assert (paused(store), store.pauses()[0].by) == ({name}, name)
        assert store.resume(name, now=NOW)

    def test_jobs_come_in_and_become_due_while_their_queue_is_paused(self, store: Store) -> None:
        store.pause("default", now=NOW)
        now, later = queued(store), queued(store, delay=SECOND)
        assert store.promote(10, now=NOW + SECOND).count == 1
        assert [state(store, id) for id in (now, later)] == [State.QUEUED, State.QUEUED]
        assert set(found(store, queue="default")) == {now, later}

    def test_what_waited_starts_by_priority_once_it_is_asked_for(self, store: Store) -> None:
        store.pause("default", now=NOW)
        jobs = [new(priority=priority) for priority in (1, 5, 3, 2, 4)]
        put(store, *jobs)
        store.resume("default", now=NOW)
        assert [claimed.priority for claimed in claim(store, join(store))] == [5, 4, 3, 2, 1]

    def test_a_worker_that_has_not_heard_of_it_still_claims(self, store: Store) -> None:
        store.pause("default", now=NOW)
        job = queued(store)
        assert ids(claim(store, join(store))) == [job]

    def test_pausing_rings_a_worker_that_rests(self, store: Store) -> None:
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper, twin_of(store) as other:
            other.pause("mail")
            assert sleeper.rung(SOON)

    def test_resuming_rings_a_worker_that_rests(self, store: Store) -> None:
        store.pause("mail")
        store.rest(join(store), True)
        with sleeper_on(store) as sleeper, twin_of(store) as other:
            other.resume("mail")
            assert sleeper.rung(SOON)
