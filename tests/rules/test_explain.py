"""Why a job is where it is, in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from rota.clock import SECOND
from rota.model import JobRow, LimitRow, State, WorkerRow
from rota.rules.explain import explain
from rota.rules.rooms import Room, look
from rota.rules.sizes import Concurrency, Rate, Size

NOW = 1_900_000_000 * SECOND
MINUTE = 60 * SECOND


def job(state: State, **facts: Any) -> JobRow:
    given: dict[str, Any] = {"due": NOW - 5 * SECOND, "claim": 0, "excused": 0, **facts}
    return JobRow("id", "ship", "goods", state, 0, created_at=NOW, max_attempts=5, args="{}", **given)


def worker(tasks: str = "ship", queues: list[str] | None = None, lease: int = MINUTE) -> WorkerRow:
    return WorkerRow("w1", "host:1", "host", 1, queues, tasks.split(), 8, MINUTE, "0.1.0", lease_until=NOW + lease)


def room(size: Size | None, running: int = 0, held: int = 1, key: str = "", **known: Any) -> Room:
    return look(LimitRow("dock", key, running, held, **known), ["ship"], size, None, NOW)


LIVE = [worker()]
HELD = job(State.HELD, held_by=("dock", ""))
SINCE = "It has been due for 5.0 s, since 2030-03-17 17:46:35+00:00."


def test_a_scheduled_job_says_when_it_is_due() -> None:
    later = job(State.SCHEDULED, due=NOW + 90 * MINUTE)
    assert str(explain(later, NOW, LIVE)) == "It is due at 2030-03-17 19:16:40+00:00, in 90 min."
    came = job(State.SCHEDULED)
    said = "It became due 5.0 s ago, at 2030-03-17 17:46:35+00:00: the next worker that looks queues it."
    assert explain(came, NOW, LIVE).sentences == [said]


def test_what_the_last_attempt_came_to_is_told() -> None:
    again = job(State.SCHEDULED, due=NOW + SECOND, claim=2, reason="the bank is busy")
    assert explain(again, NOW, LIVE).sentences[1:] == ["Its last run ended so: the bank is busy (attempts so far: 2 of 5)."]
    back = job(State.SCHEDULED, due=NOW + SECOND, claim=1, excused=1, reason="no performer is named ship")
    assert explain(back, NOW, LIVE).sentences[1:] == ["A worker handed it back: no performer is named ship."]


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "No worker is alive: start one with rota worker."),
        ([worker(lease=0)], "No worker is alive: start one with rota worker."),
        ([worker(queues=["mail"])], "No live worker serves queue 'goods': start one with --queues goods."),
        ([worker("pack")], "No live worker of its queue knows task 'ship': deploy its code, or delete the job."),
    ],
)
@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.HELD])
def test_that_no_worker_would_take_it_is_told(state: State, workers: list[WorkerRow], said: str) -> None:
    assert explain(job(state), NOW, workers).sentences[-1] == said


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (0, "It is the next of its queue, and waits for a free slot of a worker."),
        (1, "It waits for a free slot of a worker behind 1 job of its queue, with more priority or due before it."),
        (None, "It waits for a free slot of a worker, among many others of its queue."),
    ],
)
def test_a_queued_job_says_how_many_come_before_it(ahead: int | None, said: str) -> None:
    assert explain(job(State.QUEUED), NOW, LIVE, ahead=ahead).sentences == [SINCE, said]


@pytest.mark.parametrize(
    ("full", "holders", "said"),
    [
        (room(Concurrency(2), 2), ["a", "b"], "Limit 'dock' has no room: 2 of 2 run, a, b."),
        (room(Concurrency(2), 2), [], "Limit 'dock' has no room: 2 of 2 run."),
        (room(Concurrency(1), 1, key='"acme"'), ["a"], "Limit 'dock' has no room for key \"acme\": 1 of 1 run, a."),
        (
            room(Rate(10, MINUTE), started_at=NOW - 2 * SECOND),
            [],
            "Limit 'dock' has no room until 2030-03-17 17:46:44+00:00, for another 4.0 s: starts under 10/m are evenly spaced.",
        ),
        (
            room(Rate(10, MINUTE), closed_until=NOW + 30 * SECOND),
            [],
            (
                "Limit 'dock' has no room until 2030-03-17 17:47:10+00:00, for another 30 s: "
                "a job reported that a limit of somebody else was met."
            ),
        ),
        (
            room(Concurrency(2), 1),
            ["a"],
            "Limit 'dock' had no room, and has some by now: the next worker that looks queues it.",
        ),
        (room(None), [], "Limit 'dock' had no room. Which size it has is known where the code of its task is."),
        (None, [], "A limit holds it."),
    ],
)
def test_a_held_job_says_which_limit_is_full_and_who_fills_it(full: Room | None, holders: list[str], said: str) -> None:
    assert explain(HELD, NOW, LIVE, full, holders).sentences == [SINCE, said]


def test_a_held_job_says_how_many_wait_with_it_and_names_only_some_of_who_fills_it() -> None:
    found = explain(HELD, NOW, LIVE, room(Concurrency(12), 12, held=7), [f"j{number}" for number in range(12)])
    assert found.sentences[1].endswith("12 of 12 run, j0, j1, j2, j3, j4, j5, j6, j7, j8, j9 and 2 more.")
    assert found.sentences[2] == "It holds 7 jobs."
    assert len(found.holders) == 12


def test_a_running_job_says_where_and_whether_its_worker_lives() -> None:
    running = job(State.RUNNING, claim=2, claimed_at=NOW - 3 * SECOND, worker="w1")
    said = "It has been running for 3.0 s on worker host:1 (w1), attempt 2 of 5."
    assert explain(running, NOW, LIVE).sentences == [said]
    late = " The lease of that worker ran out 9.0 s ago: any other worker takes the job back."
    assert explain(running, NOW, [worker(lease=-9 * SECOND)]).sentences == [said + late]
    unknown = job(State.RUNNING, claim=1, worker="w2", cancelling=True)
    assert explain(unknown, NOW, LIVE).sentences == [
        "It has been running on worker w2, attempt 1 of 5.",
        "It was asked to stop.",
    ]


@pytest.mark.parametrize(
    ("state", "facts", "said"),
    [
        (State.SUCCEEDED, {"claim": 1, "took": 1_234_000}, "It succeeded {}, on attempt 1 of 5, after 1.23 s."),
        (State.FAILED, {"claim": 5, "took": 4, "reason": "no"}, "It failed {}, on attempt 5 of 5, after 0.004 ms: no."),
        (State.CANCELLED, {"reason": "cancelled"}, "It was cancelled {}: cancelled."),
    ],
)
def test_a_finished_job_says_when_and_how(state: State, facts: dict[str, Any], said: str) -> None:
    ended = job(state, finished_at=NOW - 300 * SECOND, **facts)
    told, *then = explain(ended, NOW).sentences
    assert told == said.format("5 min ago, at 2030-03-17 17:41:40+00:00")
    assert then == (
        [f"With rota jobs retry {ended.id} it runs again, once what was wrong is mended."] if state is State.FAILED else []
    )


def test_a_queued_job_says_that_its_limit_is_full_already() -> None:
    found = explain(job(State.QUEUED), NOW, LIVE, room(Concurrency(1), 1), ["a"], ahead=0)
    assert found.sentences[1:3] == ["Limit 'dock' has no room: 1 of 1 run, a.", "It holds 1 job."]
    assert explain(job(State.QUEUED), NOW, LIVE, room(Concurrency(2), 1), ahead=0).sentences[1].startswith("It is the next")


# -- rooms --------------------------------------------------------------------------------------


def test_a_size_that_was_set_counts_and_one_of_another_kind_does_not() -> None:
    row = LimitRow("dock", "", 2, 0)
    assert (look(row, [], Concurrency(2), Concurrency(3), NOW).size, look(row, [], None, Concurrency(3), NOW).size) == (
        "3",
        "3",
    )
    kept = look(row, [], Concurrency(2), Rate(1, MINUTE), NOW)
    assert (kept.size, kept.set, kept.declared, kept.full) == ("2", "1/m", "2", True)


def test_a_room_whose_time_of_closing_is_over_is_open() -> None:
    assert room(Rate(10, MINUTE), closed_until=NOW).closed_until is None
    assert not room(Rate(10, MINUTE), closed_until=NOW).full
    closed = look(LimitRow("dock", "", 0, 0, closed_until=NOW + 1), [], None, None, NOW)
    assert (closed.full, closed.opens_at) == (True, NOW + 1)


def test_a_room_that_only_the_end_of_a_job_opens_has_no_moment_for_that() -> None:
    assert (room(Concurrency(1), 1).full, room(Concurrency(1), 1).opens_at) == (True, None)
