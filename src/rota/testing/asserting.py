"""What was enqueued, and assertions about it. They need no test framework, and raise `AssertionError` that says what is there.

What became of a job since does not matter: one that has run was enqueued. Jobs of a transaction that is still open are seen
on its own connection alone: say `task.using(connection=connection)`, or assert inside of `app.within(connection)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rota.app import Rota
from rota.block import Block
from rota.handle import Job
from rota.model import Filter, JobRow, State
from rota.stores import rows
from rota.stores.database import Steps
from rota.testing.expected import Expected, Target, arguments_of, called

_PAGE = 1_000
_SHOWN = 10
"""So many jobs a failed assertion shows."""


def enqueued(
    app: Rota,
    *,
    task: Target | str | None = None,
    args: Mapping[str, object] | None = None,
    queue: str | None = None,
    status: str | Sequence[str] = (),
) -> list[Job[Any]]:
    """The jobs that were enqueued, the oldest first: those of a task or its name, with these arguments, on this queue.

    `args` has arguments by name; others that a job has do not matter. Inside of `app.within(connection)` for a connection that
    blocks, what that connection sees counts.

    >>> app = Rota("memory://")
    >>> @app.task
    ... def greet(name: str, loud: bool = False) -> None: ...
    >>> jobs = greet.enqueue_many([("Ada",), ("Bo", True)])
    >>> enqueued(app, task=greet, args={"name": "Bo"}) == [jobs[1]]
    True
    >>> app.close()
    """
    name = task if task is None or isinstance(task, str) else Expected.of(task, (), {}).task
    found: list[Job[Any]] = []
    page: list[Job[Any]] = app.jobs(task=name, status=status, limit=_PAGE)
    if (block := Block.of(app._desk)) is not None:
        among = (status,) if isinstance(status, str) else tuple(status)
        seen = [
            row for row in _through(app, block.connection) if name in (None, row.task) and (not among or row.state in among)
        ]
        page, found = [], [Job(app._desk, row.id, row) for row in reversed(seen)]
    while page:
        found += page
        page = app.jobs(task=name, status=status, limit=_PAGE, before=page[-1].id)
    return [
        job
        for job in reversed(found)
        if queue in (None, job.queue) and (args is None or args.items() <= dict(arguments_of(app, job.row)).items())
    ]


def assert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """Assert that a job of the task was enqueued with these arguments, without any with whatever arguments, and answer it.

    Options count where the task is given with them: `assert_enqueued(greet.using(queue="mail", delay=60), "Ada")`. Of several
    such jobs the last one is answered. Raises `AssertionError` that shows in what the jobs of the task differ from this one,
    and `ArgumentsError` where the task takes no such arguments.
    """
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    return _one(expected, _rows(expected))


async def aassert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """`assert_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    return _one(expected, await _arows(expected))


def assert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """Assert that no job was enqueued that `assert_enqueued` would find, and show it where there is one."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    _none(expected, _rows(expected))


async def aassert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """`assert_not_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    _none(expected, await _arows(expected))


def assert_nothing_enqueued(app: Rota) -> None:
    """Assert that no job at all was enqueued, and show those that were."""
    __tracebackhide__ = True
    jobs = enqueued(app)
    if jobs:
        lines = [f"  {_said(app, job.row)}" for job in jobs[:_SHOWN]]
        were = "was" if len(jobs) == 1 else "were"
        raise _failure([f"nothing was to be enqueued, and {_many(len(jobs))} {were}:", *lines, *_more(len(jobs))])


# -- what is there ------------------------------------------------------------------------------


def _rows(expected: Expected) -> list[JobRow]:
    """Every job, oldest first, as the expected one's connection sees them, where it has one."""
    connection = _connection(expected)
    if connection is None:
        return [job.row for job in enqueued(expected.app)]
    return _through(expected.app, connection)


def _through(app: Rota, connection: object) -> list[JobRow]:
    """Every job that this connection sees, oldest first."""
    from rota.within import blocking, work

    return work(app.store, blocking(connection, "assert_enqueued"), _all())


async def _arows(expected: Expected) -> list[JobRow]:
    connection = _connection(expected)
    if connection is None:
        return await expected.app._desk.in_thread(lambda: [job.row for job in enqueued(expected.app)])
    from rota.within import awork, of_coroutines

    return await awork(expected.app.store, of_coroutines(connection, "assert_enqueued"), _all())


def _connection(expected: Expected) -> object:
    block = Block.of(expected.app._desk)
    return expected.connection if expected.connection is not None or block is None else block.connection


def _all() -> Steps[list[JobRow]]:
    found: list[JobRow] = []
    before: str | None = None
    while True:
        page = yield "find", rows.find_params(Filter(tuple(State)), _PAGE, before)
        found += [rows.job(row) for row in page]
        if len(page) < _PAGE:
            return found[::-1]
        before = found[-1].id


# -- what to say of it --------------------------------------------------------------------------


def _one(expected: Expected, found: list[JobRow]) -> Job[Any]:
    __tracebackhide__ = True
    same = [row for row in found if row.task == expected.task]
    unlike = [(row, expected.differences(row)) for row in same]
    for row, differences in reversed(unlike):
        if not differences:
            return Job(expected.app._desk, row.id, row)
    lines = [f"no such job was enqueued: {expected}"]
    if same:
        lines.append(f"of this task there {_are(len(same))}:")
        for row, differences in sorted(unlike, key=lambda pair: len(pair[1]))[:_SHOWN]:
            lines += [f"  {_said(expected.app, row)}", *(f"      {line}" for line in differences)]
    else:
        others = found[-_SHOWN:]
        lines.append("of this task there is none, but:" if others else "nothing was enqueued at all")
        lines += [f"  {_said(expected.app, row)}" for row in others]
    raise _failure([*lines, *_more(len(same) or len(found))])


def _none(expected: Expected, found: list[JobRow]) -> None:
    __tracebackhide__ = True
    same = [row for row in found if row.task == expected.task and not expected.differences(row)]
    if same:
        lines = [f"  {_said(expected.app, row)}" for row in same[:_SHOWN]]
        raise _failure([f"no such job was to be enqueued: {expected}", f"there {_are(len(same))}:", *lines, *_more(len(same))])


def _said(app: Rota, row: JobRow) -> str:
    return f"{row.task}({called(arguments_of(app, row))}) on queue {row.queue!r}, {row.state}"


def _are(number: int) -> str:
    return "is one job" if number == 1 else f"are {number} jobs"


def _many(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"


def _more(number: int) -> list[str]:
    return [f"  … and {number - _SHOWN} more"] if number > _SHOWN else []


def _failure(lines: list[str]) -> AssertionError:
    return AssertionError("\n".join(lines))
