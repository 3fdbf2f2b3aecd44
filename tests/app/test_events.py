"""What became of a job, as a line for people and in the log."""

from __future__ import annotations

import logging

import pytest

from rota import Event, Kind, State
from rota.events import ended, lost, tell
from rota.model import Again, Cancelled, Claimed, Ended, Failed, Failure, Lost, Outcome, Released, Snoozed, Succeeded

JOB = Claimed("id", "ship", "goods", "{}", claim=3, excused=1, max_attempts=5)
NO = Failure("ValueError", "no")
LINES: list[tuple[Outcome, Kind, str, int]] = [
    (Succeeded(), Kind.SUCCEEDED, "ran ship", logging.INFO),
    (Failed(NO), Kind.FAILED, "failed ship on attempt 2: no", logging.ERROR),
    (Again(NO, 5_000_000), Kind.AGAIN, "failed ship on attempt 2: no", logging.WARNING),
    (Snoozed(1_500_000), Kind.SNOOZED, "snoozed ship for 1.5 s", logging.INFO),
    (Released("the worker was shut down"), Kind.RELEASED, "handed back ship: the worker was shut down", logging.INFO),
    (Cancelled(), Kind.CANCELLED, "cancelled ship on attempt 2", logging.INFO),
]


@pytest.mark.parametrize(("outcome", "kind", "line", "level"), LINES, ids=[str(kind) for _, kind, _, _ in LINES])
def test_each_outcome_has_its_line_and_level(
    outcome: Outcome, kind: Kind, line: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    event = ended(JOB, Ended("id", 3, outcome, took=7))
    assert (event.kind, str(event), event.attempt, event.max_attempts, event.took) == (kind, line, 2, 5, 7)
    with caplog.at_level(logging.DEBUG, "rota"):
        tell([event])
    assert [(record.levelno, record.message) for record in caplog.records] == [(level, line)]


@pytest.mark.parametrize(
    ("state", "then"), [(State.QUEUED, "queued again"), (State.FAILED, "now failed"), (State.CANCELLED, "now cancelled")]
)
def test_a_lost_job_says_where_it_went(state: State, then: str) -> None:
    event = lost(Lost("id", "ship", "goods", 2, "w1", state))
    assert str(event) == f"lost ship on attempt 2: worker w1 was lost; {then}"


def test_a_lost_worker_is_told_by_its_name() -> None:
    event = lost(Lost("id", "ship", "goods", 2, "w1", State.QUEUED, "front-1"))
    assert str(event) == "lost ship on attempt 2: worker front-1 (w1) was lost; queued again"


def test_every_kind_has_a_line() -> None:
    for kind in Kind:
        assert "ship" in str(Event(kind, "id", "ship", "goods", 1, 5, reason="no"))
