"""What was enqueued, and assertions about it. They need no test framework, and raise `AssertionError` that says what is there.

What became of a job since does not matter: one that has run was enqueued. Jobs of a transaction that is still open are seen
on its own connection alone: say `task.using(connection=connection)`, or assert inside of `app.within(connection)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rota import operate
from rota.app import Rota
from rota.block import Block
from rota.clock import Micros
from rota.errors import ArgumentsError, ConfigError, NotSupported
from rota.handle import Job
from rota.model import FINAL, Filter, JobRow, NewJob, State
from rota.stores import rows
from rota.stores.database import Steps
from rota.testing.arguments import alike, brief, called, check_names, named, stored, wanted
from rota.testing.expected import Expected, Target, Unlike

__unittest = True  # unittest shows nothing of modules that say so, as pytest shows nothing of functions that do
_PAGE = 1_000
_SHOWN = 10
"""So many jobs a failed assertion shows."""
_EXPLAINED = 3
"""Of so many of these it shows in how much they differ, line by line."""


def enqueued(
    app: Rota,
    *,
    task: Target | str | None = None,
    args: Mapping[str, object] | None = None,
    queue: str | None = None,
    status: str | Sequence[str] = (),
) -> list[Job[Any]]:
    """The jobs that were enqueued, the oldest first: those of a task or its name, with these arguments, on this queue.

    `args` has arguments by name; others that a job has do not matter. Options count where the task is given with them, and so
    does its connection, as in `assert_enqueued`. Inside of `app.within(connection)` what that connection sees counts. Raises
    `ArgumentsError` for an argument that the task does not take, and `NotSupported` where it is no longer known of a job
    whether it is one of them.

    >>> app = Rota("memory://")
    >>> @app.task
    ... def greet(name: str, loud: bool = False) -> None: ...
    >>> jobs = greet.enqueue_many([("Ada",), ("Bo", True)])
    >>> enqueued(app, task=greet, args={"name": "Bo"}) == [jobs[1]]
    True
    >>> app.close()
    """
    expected, states = _asked(app, task, status)
    found = _rows(app, _connection(app, expected), None if expected is None else expected.task, states)
    return _among(app, found, expected, args, queue)


async def aenqueued(
    app: Rota,
    *,
    task: Target | str | None = None,
    args: Mapping[str, object] | None = None,
    queue: str | None = None,
    status: str | Sequence[str] = (),
) -> list[Job[Any]]:
    """`enqueued` for coroutines, and for connections that are awaited."""
    expected, states = _asked(app, task, status)
    found = await _arows(app, _connection(app, expected), None if expected is None else expected.task, states)
    return _among(app, found, expected, args, queue)


def assert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """Assert that a job of the task was enqueued with these arguments, without any with whatever arguments, and answer it.

    Options count where the task is given with them: `assert_enqueued(greet.using(queue="mail", delay=60), "Ada")`. Of several
    such jobs the last one is answered. Raises `AssertionError` that shows in what the jobs of the task differ from this one,
    and `ArgumentsError` where the task takes no such arguments.
    """
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, _connection(expected.app, expected)
    found = _rows(app, connection, expected.task)
    return _one(expected, found, [] if found else _rows(app, connection))


async def aassert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """`assert_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, _connection(expected.app, expected)
    found = await _arows(app, connection, expected.task)
    return _one(expected, found, [] if found else await _arows(app, connection))


def assert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """Assert that no job was enqueued that `assert_enqueued` would find, and show it where there is one.

    It also fails where that is no longer known: a job that was put back since does not tell with what delay it was enqueued,
    and one that was claimed has lost a key that counted until then. What was edited counts as it is now. Raises `NotSupported`
    where the app deletes jobs as they finish.
    """
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    _none(expected, _rows(expected.app, _connection(expected.app, expected), expected.task))


async def aassert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """`assert_not_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    _none(expected, await _arows(expected.app, _connection(expected.app, expected), expected.task))


def assert_nothing_enqueued(app: Rota) -> None:
    """Assert that no job at all was enqueued, and show those that were."""
    __tracebackhide__ = True
    _nothing(app, _rows(app, _connection(app)))


async def aassert_nothing_enqueued(app: Rota) -> None:
    """`assert_nothing_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    _nothing(app, await _arows(app, _connection(app)))


# -- what is there ------------------------------------------------------------------------------


def _asked(app: Rota, task: Target | str | None, status: str | Sequence[str]) -> tuple[Expected | None, tuple[State, ...]]:
    _check_app(app)
    states = operate.where(status).states or tuple(State)
    if task is None:
        return None, states
    expected = Expected.of(app.named(task) if isinstance(task, str) else task)
    if expected.app is not app:
        raise ConfigError(f"{expected.task} is a task of another app: pass the app that it was declared in")
    return expected, states


def _connection(app: Rota, expected: Expected | None = None) -> object:
    """The connection whose view counts; `None` for the store's own."""
    _check_app(app)
    if app.eager:
        raise NotSupported(
            "eager mode has no store, so what was enqueued is not known afterwards: "
            "use rota.testing.fresh_store(app) or the fixture rota_app, under which the app keeps its jobs"
        )
    block = Block.of(app._desk)
    return expected.connection if expected is not None and expected.connection is not None else block and block.connection


def _check_app(app: object) -> None:
    if not isinstance(app, Rota):
        raise ConfigError(f"{brief(app)} is no app: pass the Rota whose jobs are to be looked at, and what else by its name")


def _rows(app: Rota, connection: object, task: str | None = None, states: tuple[State, ...] = tuple(State)) -> list[JobRow]:
    """Every job, or those of a task, oldest first, as the connection sees them."""
    if connection is None:
        return _kept(app, task, states)
    from rota.within import Elsewhere, blocking, work

    foreign = blocking(connection, "assert_enqueued")
    try:
        return work(app.store_beside, foreign, _all(task, states))
    except (Elsewhere, NotSupported):
        to_come: Callable[[], list[object]] | None = getattr(foreign, "to_come", None)
        if to_come is None:
            raise
        handed_over = _handed_over(app, to_come())
        return _kept(app, task, states) + [row for row in handed_over if row.state in states and task in (None, row.task)]


async def _arows(
    app: Rota, connection: object, task: str | None = None, states: tuple[State, ...] = tuple(State)
) -> list[JobRow]:
    if connection is None:
        return await app._desk.in_thread(lambda: _kept(app, task, states))
    from rota.within import awork, of_coroutines

    foreign = of_coroutines(connection, "assert_enqueued")
    return await awork(await app._desk.in_thread(lambda: app.store_beside), foreign, _all(task, states))


def _kept(app: Rota, task: str | None, states: tuple[State, ...]) -> list[JobRow]:
    found: list[JobRow] = []
    page = app.store.find(Filter(states, task=task), _PAGE)
    while page:
        found += page
        page = app.store.find(Filter(states, task=task), _PAGE, page[-1].id) if len(page) == _PAGE else []
    return found[::-1]


def _handed_over(app: Rota, to_come: list[object]) -> Iterator[JobRow]:
    """The jobs that the app's store gets once a transaction elsewhere is committed, as they would be by now."""
    from rota.within.inserting import Handover

    now = app.store.vitals().now if (told := app.now()) is None else told
    for handover in to_come:
        if isinstance(handover, Handover) and handover.store is app.store and not handover.done:
            yield from (_as_of(new, now) for new in handover.jobs)


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


def _all(task: str | None, states: tuple[State, ...]) -> Steps[list[JobRow]]:
    found: list[JobRow] = []
    before: str | None = None
    while True:
        page = yield "find", rows.find_params(Filter(states, task=task), _PAGE, before)
        found += [rows.job(row) for row in page]
        if len(page) < _PAGE:
            return found[::-1]
        before = found[-1].id


def _among(
    app: Rota, found: list[JobRow], expected: Expected | None, args: Mapping[str, object] | None, queue: str | None
) -> list[Job[Any]]:
    """Those of these jobs that are asked for."""
    _check_kept(app)
    among = found if queue is None else [row for row in found if row.queue == queue]
    if args is not None and not isinstance(args, Mapping):
        raise ArgumentsError(f"args={brief(args)}: pass arguments by name, for example args={{'order_id': 42}}")
    if args:
        task = None if expected is None else app.tasks.get(expected.task)
        if task is not None:
            args = wanted(task, args)
        pairs = [(row, named(app, row.task, row.args)) for row in among]
        if expected is None:
            check_names(app, args, (has for _, has in pairs))
        as_stored = stored(args)
        among = [row for row, has in pairs if _has(has, args, as_stored)]
    if expected is not None and expected.given:
        unlike = [(row, expected.differences(row)) for row in among]
        if doubtful := _doubtful(unlike):
            raise NotSupported("\n".join(_in_doubt(expected, doubtful)))
        among = [row for row, differences in unlike if not differences]
    return [Job(app._desk, row.id, row) for row in among]


def _check_kept(app: Rota) -> None:
    """Refuse to say that a job is not there where the app deletes some as they finish."""
    if gone := sorted(FINAL - app.settings.kept):
        raise NotSupported(
            f"this app deletes jobs as soon as they have {' or '.join(gone)} (keep_{gone[0]}=0), so what is there does not say "
            "what was enqueued: use rota.testing.fresh_store(app) or the fixture rota_app, under which they stay"
        )


def _has(arguments: Mapping[str, object], some: Mapping[str, object], some_stored: Mapping[str, bytes | None]) -> bool:
    return all(name in arguments and alike(arguments[name], value, some_stored[name]) for name, value in some.items())


# -- what to say of it --------------------------------------------------------------------------


def _one(expected: Expected, same: list[JobRow], others: list[JobRow]) -> Job[Any]:
    """The last of the jobs of the task that is the expected one; `others` are there where the task has none."""
    __tracebackhide__ = True
    unlike = [(row, expected.differences(row)) for row in same]
    for row, differences in reversed(unlike):
        if not differences:
            return Job(expected.app._desk, row.id, row)
    lines = [f"no such job was enqueued: {expected}"]
    if same:
        lines.append(f"of this task there {_are(len(same))}:")
        nearest = sorted(unlike, key=lambda pair: len(pair[1]))[:_SHOWN]
        lines += _explained(expected.app, nearest)
    else:
        lines.append("of this task there is none, but:" if others else "nothing was enqueued at all")
        lines += [f"  {_said(expected.app, row)}" for row in others[-_SHOWN:]]
    raise _failure([*lines, *_more(len(same) or len(others))])


def _none(expected: Expected, found: list[JobRow]) -> None:
    __tracebackhide__ = True
    _check_kept(expected.app)
    unlike = [(row, expected.differences(row)) for row in found]
    if same := [row for row, differences in unlike if not differences]:
        lines = [f"  {_said(expected.app, row)}" for row in same[:_SHOWN]]
        raise _failure([f"no such job was to be enqueued: {expected}", f"there {_are(len(same))}:", *lines, *_more(len(same))])
    if doubtful := _doubtful(unlike):
        raise _failure([f"no such job was to be enqueued: {expected}", *_in_doubt(expected, doubtful)])


def _nothing(app: Rota, found: list[JobRow]) -> None:
    __tracebackhide__ = True
    _check_kept(app)
    if found:
        lines = [f"  {_said(app, row)}" for row in found[:_SHOWN]]
        were = "1 job was" if len(found) == 1 else f"{len(found)} jobs were"
        raise _failure([f"nothing was to be enqueued, and {were}:", *lines, *_more(len(found))])


Pairs = list[tuple[JobRow, list[Unlike]]]
"""Jobs, and in what each differs from the expected one."""


def _doubtful(unlike: Pairs) -> Pairs:
    """The jobs that may be the expected one, for all that is known."""
    return [(row, differences) for row, differences in unlike if differences and not any(each.known for each in differences)]


def _in_doubt(expected: Expected, doubtful: Pairs) -> list[str]:
    names = ", ".join(dict.fromkeys(each.name for _, differences in doubtful for each in differences))
    which = "of one job" if len(doubtful) == 1 else f"of {len(doubtful)} jobs"
    return [
        f"{which} it is not known whether it is one:",
        *_explained(expected.app, doubtful[:_SHOWN]),
        *_more(len(doubtful)),
        f"look before it runs, or leave out {names}",
    ]


def _explained(app: Rota, unlike: Pairs) -> list[str]:
    """Jobs, with what is different in each; of long arguments that are different only the nearest jobs show how."""
    lines = []
    for number, (row, differences) in enumerate(unlike):
        lines.append(f"  {_said(app, row)}")
        for each in differences:
            lines += [f"      {line}" for line in (each.lines() if number < _EXPLAINED else each.briefly())]
    return lines


def _said(app: Rota, row: JobRow) -> str:
    return f"{row.task}({called(named(app, row.task, row.args))}) on queue {row.queue!r}, {row.state}"


def _are(number: int) -> str:
    return "is one job" if number == 1 else f"are {number} jobs"


def _more(number: int) -> list[str]:
    return [f"  … and {number - _SHOWN} more"] if number > _SHOWN else []


def _failure(lines: list[str]) -> AssertionError:
    return AssertionError("\n".join(lines))
