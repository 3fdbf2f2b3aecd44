"""A look at a deployment as lines of text: cut to a screen, or whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rota.cli import limits, workers
from rota.cli.glance import Glance, Rates
from rota.cli.queues import queue_cells, queue_columns
from rota.cli.saying import Styled, styled
from rota.cli.tables import Cell, Column, Row, chosen, ellipsis, name_column, table_lines
from rota.cli.words import ago, many
from rota.clock import at
from rota.codec.text import clean, visible
from rota.model import State

_HEADS = 2
"""An empty line and the heads of the columns come before the rows of a section."""
_LEAST_ROWS = 3
"""A section is shown with at least so many of its rows, where there is room for it at all."""


@dataclass(frozen=True)
class _Section:
    """A table under the head. What matters most comes first in it."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Row]


def overview(seen: Glance, width: int | None, height: int | None) -> list[str]:
    """The lines of a look, styled; at most `height` of them, each of at most `width` characters (`None`: all)."""
    lines = _head(seen, width)
    sections = [each for each in (_queues(seen), _workers(seen), _rooms(seen), _failures(seen)) if each.rows]
    counts = [len(section.rows) for section in sections]
    for section, shown in zip(sections, counts if height is None else _shares(counts, height - len(lines)), strict=False):
        left = len(section.rows) - shown
        if left:
            shown -= 1  # for the line that says how many there are besides
            left += 1
        lines += ["", *table_lines(section.columns, section.rows[:shown], width)]
        if left:
            lines.append(styled(f"{ellipsis()} and {many(left, section.name)} more", dim=True))
    return lines if height is None else lines[:height]


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many rows each section is shown with: small ones whole, the others alike. The last have none where there is no room.

    >>> _shares([60, 2, 60], 30), _shares([60, 60], 13), _shares([60, 60, 60], 8)
    ([11, 2, 11], [5, 4], [6])
    """
    shown = list(wanted)
    while len(shown) > 1 and sum(_HEADS + min(each, _LEAST_ROWS) for each in shown) > room:
        shown.pop()
    left = room - _HEADS * len(shown)
    shares: dict[int, int] = {}
    for number, place in enumerate(sorted(range(len(shown)), key=lambda place: (shown[place], -place))):
        shares[place] = max(0, min(shown[place], left // (len(shown) - number)))
        left -= shares[place]
    return [shares[place] for place in range(len(shown))]


def _head(seen: Glance, width: int | None) -> list[str]:
    total, live = seen.total, [row for row in seen.workers if row.lease_until > seen.now and not row.fallen]
    down = f" ({len(seen.workers) - len(live)} down)" if len(live) < len(seen.workers) else ""
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
        _cut(f"{many(len(live), 'worker')}{down}, {many(slots, 'slot')}; {running} running, {due} due{oldest}", width),
        _cut(
            f"a second: {_rate(total.enqueued)} in, {_rate(total.succeeded)} succeeded, {_rate(total.failed)} failed, "
            f"{_rate(total.cancelled)} cancelled (over {seen.window:g} s)",
            width,
        ),
    ]


def _queues(seen: Glance) -> _Section:
    columns = queue_columns(seen.queues, Column("in/s", right=True), Column("out/s", right=True))
    rows: list[Row] = []
    for queue in sorted(seen.queues, key=lambda queue: (-queue.due, -queue.jobs, queue.name)):
        rates = seen.rates.get(queue.name, Rates())
        rows.append(queue_cells(queue, seen.now) | {"in/s": _number(rates.enqueued), "out/s": _number(rates.ended)})
    return _Section("queue", columns, rows)


def _workers(seen: Glance) -> _Section:
    worker, queues, jobs, slots, lease = chosen(workers.COLUMNS, "worker", "queues", "jobs", "slots", "lease")
    rates = (Column("done/s", right=True), Column("failed/s", right=True))
    rows: list[Row] = []
    for row in sorted(seen.workers, key=lambda row: (row.lease_until > seen.now, -seen.in_hand.get(row.id, 0), row.name)):
        did = seen.working.get(row.id, Rates())
        more = {"done/s": _number(did.succeeded), "failed/s": _number(did.failed)}
        rows.append(workers.worker_cells(row, seen.now) | {"jobs": workers.jobs_cell(seen.in_hand.get(row.id, 0))} | more)
    return _Section("worker", [worker, replace(queues, drop=1), jobs, slots, *rates, lease], rows)


def _rooms(seen: Glance) -> _Section:
    columns = chosen(limits.COLUMNS, "limit", "key", "size", "running", "held")
    return _Section("limit", columns, [limits.room_cells(room, seen.now) for room in seen.rooms])


def _failures(seen: Glance) -> _Section:
    columns = [Column("failed", right=True), Column("job"), name_column("task"), Column("reason", flexible=True)]
    rows: list[Row] = [
        {
            "failed": "-" if job.finished_at is None else f"{ago(job.finished_at, seen.now)} ago",
            "job": job.id.rpartition("-")[2],
            "task": job.task,
            "reason": Cell(clean(job.reason or "", 300), "red"),
        }
        for job in seen.failures
    ]
    return _Section("failure", columns, rows)


def _number(rate: float) -> str:
    return _rate(rate) if rate else "-"


def _rate(rate: float) -> str:
    """
    >>> _rate(0), _rate(0.04), _rate(3.14), _rate(1234.5)
    ('0', '<0.1', '3.1', '1234')
    """
    return "0" if not rate else "<0.1" if rate < 0.05 else f"{rate:.1f}" if rate < 100 else f"{rate:.0f}"


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 1] + ellipsis()
