"""A look at a deployment as lines of text: cut to a screen, or whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.cli.glance import Glance, Rates
from rota.cli.queues import STATES, paused_cell, state_cells
from rota.cli.saying import Styled, styled
from rota.cli.tables import Cell, Column, ellipsis, table_lines
from rota.cli.words import ago, many
from rota.cli.workers import lease_cell, served
from rota.clock import at
from rota.codec.text import clean, visible
from rota.model import State

_LEAST_ROWS = 3
"""A section is shown with at least so many of its rows, where there is room for it at all."""


@dataclass(frozen=True)
class _Section:
    """A table under the head. What matters most comes first in it."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]


def overview(seen: Glance, width: int | None, height: int | None) -> list[str]:
    """The lines of a look, styled; at most `height` of them, each of at most `width` characters (`None`: all)."""
    lines = _head(seen, width)
    sections = [each for each in (_queues(seen), _workers(seen), _rooms(seen), _failures(seen)) if each.rows]
    for at_, section in enumerate(sections):
        shown = len(section.rows)
        if height is not None:
            # The sections after this one get their least; what they do not need is this one's.
            others = sum(2 + min(len(each.rows), _LEAST_ROWS) for each in sections[at_ + 1 :])
            shown = min(shown, max(min(shown, _LEAST_ROWS), height - len(lines) - 2 - others))
        left = len(section.rows) - shown
        if left:
            shown -= 1  # for the line that says how many there are besides
            left += 1
        lines += ["", *table_lines(section.columns, section.rows[:shown], width)]
        if left:
            lines.append(styled(f"{ellipsis()} and {many(left, section.name)} more", dim=True))
    return lines if height is None else lines[:height]


def _head(seen: Glance, width: int | None) -> list[str]:
    total, live = seen.total, [row for row in seen.workers if row.lease_until > seen.now and not row.fallen]
    slots = sum(row.concurrency for row in live)
    running = sum(queue.states[State.RUNNING] for queue in seen.queues)
    waits = [queue.oldest for queue in seen.queues if queue.oldest is not None and not queue.paused]
    oldest = f", the oldest waits {ago(min(waits), seen.now)}" if waits else ""
    due = sum(queue.due for queue in seen.queues)
    store = visible(seen.store)
    clock = f"{at(seen.now):%H:%M:%S} UTC"
    if width is not None and len(store) + len(clock) + 2 > width:
        store = store[: width - len(clock) - 3] + ellipsis()
    gap = 2 if width is None else max(2, width - len(store) - len(clock))
    return [
        Styled(styled(store, bold=True) + " " * gap + clock),
        _cut(f"{many(len(live), 'worker')}, {many(running)} running on {many(slots, 'slot')}; {due} due{oldest}", width),
        _cut(
            f"a second: {_number(total.enqueued)} in, {_number(total.succeeded)} succeeded, {_number(total.failed)} failed, "
            f"{_number(total.cancelled)} cancelled (over {seen.window:g} s)",
            width,
        ),
    ]


def _queues(seen: Glance) -> _Section:
    states = [state for state in STATES if state is not State.HELD or any(queue.states[state] for queue in seen.queues)]
    drops = {State.SCHEDULED: 2}
    columns = [
        Column("queue", flexible=True),
        *(Column(state, right=True, drop=drops.get(state, 0)) for state in states),
        Column("oldest", right=True),
        Column("in/s", right=True),
        Column("out/s", right=True),
        Column("paused", flexible=True, drop=1),
    ]
    rows: list[list[Cell | str]] = []
    for queue in sorted(seen.queues, key=lambda queue: (-queue.due, -queue.jobs, queue.name)):
        rates = seen.rates.get(queue.name, Rates())
        waited = "-" if queue.oldest is None else ago(queue.oldest, seen.now)
        numbers = [waited, _number(rates.enqueued), _number(rates.ended)]
        name = Cell(queue.name, "yellow" if queue.paused else None, bold=True)
        rows.append([name, *state_cells(queue, states), *numbers, paused_cell(queue, seen.now)])
    return _Section("queue", columns, rows)


def _workers(seen: Glance) -> _Section:
    columns = [
        Column("worker", flexible=True),
        Column("queues", flexible=True, drop=1),
        Column("jobs", right=True),
        Column("slots", right=True),
        Column("done/s", right=True),
        Column("failed/s", right=True),
        Column("lease", right=True),
    ]
    rows: list[list[Cell | str]] = []
    for row in sorted(seen.workers, key=lambda row: (row.lease_until > seen.now, -seen.in_hand.get(row.id, 0), row.name)):
        rates, has = seen.working.get(row.id, Rates()), seen.in_hand.get(row.id, 0)
        jobs = Cell(str(has), "yellow") if has else "-"
        numbers = [str(row.concurrency), _number(rates.succeeded), _number(rates.failed)]
        rows.append([Cell(row.name, bold=True), served(row), jobs, *numbers, lease_cell(row, seen.now)])
    return _Section("worker", columns, rows)


def _rooms(seen: Glance) -> _Section:
    columns = [
        Column("limit", flexible=True),
        Column("key", flexible=True),
        Column("size", right=True),
        Column("running", right=True),
        Column("held", right=True),
    ]
    rows: list[list[Cell | str]] = [
        [Cell(room.name, bold=True), room.key or "-", room.size or "?", str(room.running), Cell(str(room.held), "magenta")]
        for room in seen.rooms
    ]
    return _Section("limit", columns, rows)


def _failures(seen: Glance) -> _Section:
    columns = [Column("failed", right=True), Column("job"), Column("task", flexible=True), Column("reason", flexible=True)]
    rows: list[list[Cell | str]] = [
        [
            "-" if job.finished_at is None else f"{ago(job.finished_at, seen.now)} ago",
            job.id.rpartition("-")[2],
            job.task,
            Cell(clean(job.reason or "", 300), "red"),
        ]
        for job in seen.failures
    ]
    return _Section("failure", columns, rows)


def _number(rate: float) -> str:
    """
    >>> _number(0), _number(0.04), _number(3.14), _number(1234.5)
    ('-', '<0.1', '3.1', '1234')
    """
    if not rate:
        return "-"
    return "<0.1" if rate < 0.05 else f"{rate:.1f}" if rate < 100 else f"{rate:.0f}"


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 1] + ellipsis()
