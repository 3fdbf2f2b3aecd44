"""How many jobs a worker takes in hand follows from how fast it ends them."""

from __future__ import annotations

import pytest

from rota.rules.pace import AHEAD_SECONDS, MOST_AHEAD, WEIGHT_AHEAD, Pace


def settled(slots: int, rate: float) -> Pace:
    """The pace of a worker that has ended jobs at this rate for long."""
    pace = Pace(slots)
    for _ in range(60):
        pace = pace.after(round(rate), 1.0)
    return pace


def test_a_worker_of_slow_jobs_claims_no_more_than_it_has_slots() -> None:
    pace = settled(8, rate=40)
    assert pace.target == 8
    assert [pace.room(in_hand) for in_hand in (0, 5, 8)] == [8, 3, 0]


def test_a_worker_of_quick_jobs_claims_ahead_what_it_ends_in_the_window() -> None:
    assert settled(8, rate=10_000).target == 8 + 10_000 * AHEAD_SECONDS


def test_no_worker_claims_ahead_without_bound() -> None:
    assert settled(8, rate=10_000_000).target == 8 + MOST_AHEAD


def test_the_first_claims_are_small_and_grow_fast() -> None:
    pace, targets = Pace(8), []
    for _ in range(5):
        pace = pace.after(50_000, 1.0)
        targets.append(pace.target)
    assert targets == [64, 512, 8 + MOST_AHEAD, 8 + MOST_AHEAD, 8 + MOST_AHEAD]


def test_a_worker_whose_jobs_became_slow_soon_claims_less() -> None:
    pace = settled(8, rate=50_000)
    for _ in range(12):
        pace = pace.after(8, 1.0)
    assert pace.target == 8


def test_a_free_slot_is_filled_at_once() -> None:
    assert settled(8, rate=10_000).room(in_hand=7) > 0


def test_a_worker_with_enough_in_hand_does_not_make_small_claims() -> None:
    pace = settled(8, rate=10_000)
    assert pace.room(in_hand=pace.target // 2 + 1) == 0
    assert pace.room(in_hand=pace.target // 2) == pace.target - pace.target // 2


@pytest.mark.parametrize(("waiting", "at"), [(0, 1), (1, 1), (10, 5), (500, 250)])
def test_the_store_hears_of_outcomes_at_once_when_nothing_waits_for_a_slot(waiting: int, at: int) -> None:
    assert Pace(8).ring_at(waiting) == at


def test_a_stretch_without_length_teaches_nothing() -> None:
    pace = settled(8, rate=100)
    assert pace.after(5, 0.0) == pace


def test_a_worker_claims_few_heavy_jobs_ahead() -> None:
    pace = settled(8, rate=50_000).weighed(8 * 1_000_000, jobs=8)
    assert pace.room(0) <= 8 + WEIGHT_AHEAD / 1_000_000
    assert pace.after(100, 1.0).room(0) <= 8 + WEIGHT_AHEAD / 1_000_000


def test_heavy_jobs_are_noticed_at_once_and_forgotten_by_and_by() -> None:
    pace = settled(8, rate=50_000).weighed(100, jobs=10).weighed(8_000_000, jobs=8)
    assert pace.weight == 1_000_000
    for _ in range(20):
        pace = pace.weighed(100, jobs=10)
    assert pace.room(0) == settled(8, rate=50_000).room(0)


def test_jobs_of_usual_weight_make_no_difference() -> None:
    pace = settled(8, rate=10_000)
    assert pace.weighed(100 * 500, jobs=500).room(0) == pace.room(0)
