"""The jobs that a test can look at: as the store sees them, or a connection of the test's own, and those that are to come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from rota.app import Rota
from rota.block import Block
from rota.clock import Micros
from rota.codec.wire import brief
from rota.errors import ConfigError, NotSupported
from rota.model import Filter, JobRow, NewJob, State
from rota.stores import rows
from rota.stores.database import Steps
from rota.testing.expected import Expected

ALL = tuple(State)
_PAGE = 1_000
"""Jobs that are read together."""


def check_app(app: object) -> None:
    if not isinstance(app, Rota):
        raise ConfigError(f"{brief(app)} is no app: pass the Rota whose jobs are to be looked at, and what else by its name")


def connection_of(app: Rota, expected: Expected | None = None) -> object:
    """The connection whose view counts; `None` for the store's own."""
    check_app(app)
    if app.eager:
        raise NotSupported(
            "eager mode has no store, so what was enqueued is not known afterwards: "
            "use rota.testing.fresh_store(app) or the fixture rota_app, under which the app keeps its jobs"
        )
    block = Block.of(app._desk)
    return expected.connection if expected is not None and expected.connection is not None else block and block.connection


def rows_of(app: Rota, connection: object, task: str | None = None, states: tuple[State, ...] = ALL) -> list[JobRow]:
    """Every job, or those of a task, oldest first, as the connection sees them."""
    if connection is None:
        return _kept(app, task, states)
    from rota.within import Elsewhere, blocking, work

    foreign = blocking(connection, "assert_enqueued")
    try:
        return work(app.holding.open_beside(), foreign, _all(task, states))
    except (Elsewhere, NotSupported):
        to_come: Callable[[], list[object]] | None = getattr(foreign, "to_come", None)
        if to_come is None:
            raise
        handed_over = _handed_over(app, to_come())
        return _kept(app, task, states) + [row for row in handed_over if row.state in states and task in (None, row.task)]


async def arows_of(app: Rota, connection: object, task: str | None = None, states: tuple[State, ...] = ALL) -> list[JobRow]:
    if connection is None:
        return await app._desk.in_thread(lambda: _kept(app, task, states))
    from rota.within import awork, of_coroutines

    foreign = of_coroutines(connection, "assert_enqueued")
    return await awork(await app._desk.in_thread(app.holding.open_beside), foreign, _all(task, states))


def awaiting(app: Rota, connection: object) -> list[JobRow]:
    """The jobs that the store gets once open transactions of Django's are committed, where nobody looks through one of these.

    A test that is rolled back at its end commits none, so that they would seem never to be enqueued.
    """
    if connection is not None or "django.db" not in sys.modules:
        return []
    from rota.within.django import to_come

    return _handed_over(app, to_come())


def _handed_over(app: Rota, to_come: Iterable[object]) -> list[JobRow]:
    """The jobs that the app's store gets once a transaction elsewhere is committed, as they would be by now."""
    from rota.within.inserting import Handover

    open_ = [each for each in to_come if isinstance(each, Handover) and not each.done and each.store is app.store]
    if not open_:
        return []
    now = app.store.vitals().now if (told := app.now()) is None else told
    return [_as_of(new, now) for handover in open_ for new in handover.jobs]


def _as_of(new: NewJob, now: Micros) -> JobRow:
    due = now + new.delay if new.run_at is None else new.run_at
    return JobRow(
        new.id,
        new.task,
        new.queue,
        State.SCHEDULED if due > now else State.QUEUED,
        new.priority,
        due,
        created_at=now,
        claim=0,
        excused=0,
        max_attempts=new.max_attempts,
        args=new.args,
        key=new.key,
        key_waiting=new.key_waiting,
    )


def _kept(app: Rota, task: str | None, states: tuple[State, ...]) -> list[JobRow]:
    found: list[JobRow] = []
    page = app.store.find(Filter(states, task=task), _PAGE)
    while page:
        found += page
        page = app.store.find(Filter(states, task=task), _PAGE, page[-1].id) if len(page) == _PAGE else []
    return found[::-1]


def _all(task: str | None, states: tuple[State, ...]) -> Steps[list[JobRow]]:
    found: list[JobRow] = []
    before: str | None = None
    while True:
        page = yield "find", rows.find_params(Filter(states, task=task), _PAGE, before)
        found += [rows.job(row) for row in page]
        if len(page) < _PAGE:
            return found[::-1]
        before = found[-1].id
