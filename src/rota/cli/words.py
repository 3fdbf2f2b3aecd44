"""How states, moments and numbers are put for people."""

from __future__ import annotations

from collections.abc import Mapping

from rota.cli.durations import brief
from rota.cli.tables import Cell, screen_width
from rota.clock import SECOND, Micros
from rota.model import JobRow, State

_NARROW = 100
"""A terminal of fewer characters has hardly room for more than the names beside a whole id."""
COLOURS = {
    State.SCHEDULED: "cyan",
    State.QUEUED: "blue",
    State.HELD: "magenta",
    State.RUNNING: "yellow",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "bright_black",
}


def when(row: JobRow, now: Micros) -> str:
    """How long ago a job finished, how long it has waited or run, or how long until it is due."""
    if row.finished_at is not None:
        return f"{ago(row.finished_at, now)} ago"
    if row.state is State.SCHEDULED and row.due > now:  # once its time has come, the next worker that looks queues it
        return f"in {ago(now, row.due)}"
    if row.state is State.RUNNING and row.claimed_at is not None:
        return f"for {ago(row.claimed_at, now)}"
    return f"for {ago(row.due, now)}"


def ago(earlier: Micros, later: Micros) -> str:
    """How long it is from one moment to the other; nothing where clocks say that the later one came first."""
    return brief(max(0, later - earlier) / SECOND)


def number_cells(numbers: Mapping[State, int]) -> dict[str, Cell | str]:
    """How many jobs are in each state, in the columns of a table."""
    return {state: Cell(str(numbers[state]), COLOURS[state]) if numbers.get(state) else "-" for state in State}


def short_id(id: str) -> str:
    """A job's id; on a terminal that is narrow only its end, which all commands take as well."""
    width = screen_width()
    return id.rpartition("-")[2] if width is not None and width < _NARROW else id


def many(number: int, noun: str = "job") -> str:
    """
    >>> many(1), many(2)
    ('1 job', '2 jobs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def by_state(numbers: Mapping[State, int]) -> str:
    """
    >>> by_state({State.FAILED: 2, State.CANCELLED: 0})
    '2 failed'
    """
    return ", ".join(f"{numbers[state]} {state}" for state in State if numbers.get(state))
