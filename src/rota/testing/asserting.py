"""What was enqueued, and assertions about it. They need no test framework, and raise `AssertionError` that says what is there.

What became of a job since does not matter: one that has run was enqueued. Jobs of a transaction that is still open are seen
on its own connection alone: say `task.using(connection=connection)`, or assert inside of `app.within(connection)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rota import operate
from rota.app import Rota
from rota.codec.wire import brief
from rota.errors import ArgumentsError, ConfigError, NotSupported
from rota.handle import Job
from rota.model import FINAL, JobRow, State
from rota.testing.arguments import alike, called, check_names, named, stored, wanted
from rota.testing.expected import Expected, Target, Unlike
from rota.testing.looking import ALL, arows_of, awaiting, check_app, connection_of, rows_of

__unittest = True  # unittest shows nothing of modules that say so, as pytest shows nothing of functions that do
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
    found = rows_of(app, connection_of(app, expected), None if expected is None else expected.task, states)
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
    found = await arows_of(app, connection_of(app, expected), None if expected is None else expected.task, states)
    return _among(app, found, expected, args, queue)


def assert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """Assert that a job of the task was enqueued with these arguments, without any with whatever arguments, and answer it.

    Options count where the task is given with them: `assert_enqueued(greet.using(queue="mail", delay=60), "Ada")`. Of several
    such jobs the last one is answered. Raises `AssertionError` that shows in what the jobs of the task differ from this one,
    and `ArgumentsError` where the task takes no such arguments.
    """
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, connection_of(expected.app, expected)
    found = rows_of(app, connection, expected.task)
    return _one(expected, found, [] if found else rows_of(app, connection), awaiting(app, connection))


async def aassert_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> Job[Any]:
    """`assert_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, connection_of(expected.app, expected)
    found = await arows_of(app, connection, expected.task)
    return _one(expected, found, [] if found else await arows_of(app, connection), awaiting(app, connection))


def assert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """Assert that no job was enqueued that `assert_enqueued` would find, and show it where there is one.

    It also fails where that is no longer known: a job that was put back since does not tell with what delay it was enqueued,
    and one that was claimed has lost a key that counted until then. What was edited counts as it is now. Raises `NotSupported`
    where the app deletes jobs as they finish.
    """
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, connection_of(expected.app, expected)
    _none(expected, rows_of(app, connection, expected.task), awaiting(app, connection))


async def aassert_not_enqueued(task: Target, /, *args: Any, **kwargs: Any) -> None:
    """`assert_not_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    expected = Expected.of(task, args, kwargs)
    app, connection = expected.app, connection_of(expected.app, expected)
    _none(expected, await arows_of(app, connection, expected.task), awaiting(app, connection))


def assert_nothing_enqueued(app: Rota) -> None:
    """Assert that no job at all was enqueued, and show those that were."""
    __tracebackhide__ = True
    connection = connection_of(app)
    _nothing(app, rows_of(app, connection), awaiting(app, connection))


async def aassert_nothing_enqueued(app: Rota) -> None:
    """`assert_nothing_enqueued` for coroutines, and for connections that are awaited."""
    __tracebackhide__ = True
    connection = connection_of(app)
    _nothing(app, await arows_of(app, connection), awaiting(app, connection))


# -- which of them -----------------------------------------------------------------------------


def _asked(app: Rota, task: Target | str | None, status: str | Sequence[str]) -> tuple[Expected | None, tuple[State, ...]]:
    check_app(app)
    states = operate.where(status).states or ALL
    if task is None:
        return None, states
    expected = Expected.of(app.named(task) if isinstance(task, str) else task)
    if expected.app is not app:
        raise ConfigError(f"{expected.task} is a task of another app: pass the app that it was declared in")
    return expected, states


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


def _one(expected: Expected, same: list[JobRow], others: list[JobRow], to_come: list[JobRow]) -> Job[Any]:
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
    lines += _more(len(same) or len(others))
    if soon := [row for row in to_come if row.task == expected.task and not expected.differences(row)]:
        lines += _at_commit(expected.app, soon)
    raise _failure(lines)


def _none(expected: Expected, found: list[JobRow], to_come: list[JobRow]) -> None:
    __tracebackhide__ = True
    _check_kept(expected.app)
    unlike = [(row, expected.differences(row)) for row in found]
    if same := [row for row, differences in unlike if not differences]:
        lines = [f"  {_said(expected.app, row)}" for row in same[:_SHOWN]]
        raise _failure([f"no such job was to be enqueued: {expected}", f"there {_are(len(same))}:", *lines, *_more(len(same))])
    if doubtful := _doubtful(unlike):
        raise _failure([f"no such job was to be enqueued: {expected}", *_in_doubt(expected, doubtful)])
    if soon := [row for row in to_come if row.task == expected.task and not expected.differences(row)]:
        raise _failure([f"no such job was to be enqueued: {expected}", *_at_commit(expected.app, soon)])


def _nothing(app: Rota, found: list[JobRow], to_come: list[JobRow]) -> None:
    __tracebackhide__ = True
    _check_kept(app)
    if found:
        lines = [f"  {_said(app, row)}" for row in found[:_SHOWN]]
        were = "1 job was" if len(found) == 1 else f"{len(found)} jobs were"
        raise _failure([f"nothing was to be enqueued, and {were}:", *lines, *_more(len(found))])
    if to_come:
        raise _failure(["nothing was to be enqueued", *_at_commit(app, to_come)])


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


def _at_commit(app: Rota, to_come: list[JobRow]) -> list[str]:
    return [
        f"there {_are(len(to_come))} that the store gets once an open transaction of Django's is committed:",
        *(f"  {_said(app, row)}" for row in to_come[:_SHOWN]),
        *_more(len(to_come)),
        "look through that with task.using(connection=connection), or commit: captureOnCommitCallbacks(execute=True)",
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
