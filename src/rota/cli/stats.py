"""`rota stats`: the deployment at a glance."""

from __future__ import annotations

import sys

import click

from rota.cli.durations import brief
from rota.cli.place import now_of, reach_existing, reaches_app
from rota.cli.records import stats_record, write_json
from rota.cli.saying import Styled, say, styled
from rota.cli.tables import Cell, Column, Row, chosen, name_column, screen_width, write_table
from rota.cli.words import COLOURS, many, number_cells
from rota.cli.workers import COLUMNS, worker_cells
from rota.clock import SECOND, Micros
from rota.model import State, WorkerRow
from rota.operate import Stats

_NARROW = 78
"""On a terminal of fewer characters there is no room for a column for each state."""


@click.command(short_help="Queues, states and workers at a glance.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reaches_app
@click.pass_context
def stats(ctx: click.Context, as_json: bool) -> None:
    """Show how many jobs are in each state, by queue, how long the oldest waits, and who works.

    \b
    Examples:
      rota stats --url sqlite:///jobs.db
      rota stats --app shop.tasks:app --json | jq .states.failed
    """
    app = reach_existing(ctx)
    found = app.stats()
    if as_json:
        write_json(stats_record(found))
        return
    say(styled(many(sum(found.states.values())), bold=True), f" in {app.store.url}")
    _bar(found)
    _queues(found)
    if found.oldest_wait is not None:
        say(f"\nThe oldest due job has waited for {brief(found.oldest_wait / SECOND)}.")
    _workers(found.workers, now_of(app))


def _bar(found: Stats) -> None:
    """One bar of all jobs, a stretch for each state, on a terminal."""
    width, total = screen_width(), sum(found.states.values())
    if width is None or not total:
        return
    block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
    there = {state: number for state, number in found.states.items() if number}
    room = min(width, 100) - len(there)
    lengths = {state: 1 + number * room // total for state, number in there.items()}
    say(*(styled(block * length, fg=COLOURS[state]) for state, length in lengths.items()))
    line, used = "", 0
    for state, number in there.items():
        text = f"{number} {state}"
        if used and used + 2 + len(text) > width:
            say(Styled(line))
            line, used = "", 0
        line += "  " * bool(used) + styled(text, fg=COLOURS[state])
        used += len(text) + 2 * bool(used)
    say(Styled(line), "\n")


def _queues(found: Stats) -> None:
    numbers: dict[str, dict[State, int]] = {}
    for count in found.counts:
        states = numbers.setdefault(count.queue, {})
        states[count.state] = states.get(count.state, 0) + count.jobs
    if not numbers:
        return
    shown = [state for state in State if state is not State.HELD or found.states[State.HELD]]
    width = screen_width()
    if width is not None and width < _NARROW:
        _queues_long(numbers)
        return
    columns = [name_column("queue"), *(Column(state, right=True) for state in shown)]
    write_table(columns, [{"queue": name} | number_cells(states) for name, states in sorted(numbers.items())])


def _queues_long(numbers: dict[str, dict[State, int]]) -> None:
    """A line for each queue and state, where there is no room for a column for each state."""
    columns = [name_column("queue"), Column("status"), Column("jobs", right=True)]
    rows: list[Row] = [
        {"queue": name, "status": Cell(state, COLOURS[state]), "jobs": str(states[state])}
        for name, states in sorted(numbers.items())
        for state in State
        if states.get(state)
    ]
    write_table(columns, rows)


def _workers(workers: list[WorkerRow], now: Micros) -> None:
    if not workers:
        say("\nNo worker is at work.")
        return
    say()
    columns = chosen(COLUMNS, "worker", "queues", "slots", "since", "lease", "version")
    write_table(columns, [worker_cells(row, now) for row in workers])
