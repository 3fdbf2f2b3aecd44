"""What `@app.task` refuses, and in which words."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from app.words import NO_NAMES, WORDS
from rota import ConfigError, Rota
from rota.retries import Fixed, Waits, never
from rota.worker import Worker


@pytest.fixture
def app() -> Iterator[Rota]:
    with Rota("memory://") as app:
        yield app


def refused(app: Rota, **options: Any) -> str:
    """What the app says to a task with these options; it must not have registered it."""
    with pytest.raises(ConfigError) as said:

        @app.task(**options)
        def anything() -> None: ...

    assert app.tasks == {}
    return str(said.value)


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("option", ["queue", "name"])
def test_what_can_be_no_name_is_refused_at_the_declaration(app: Rota, option: str, name: Any) -> None:
    said = refused(app, **{option: name})
    assert said.startswith("task=" if option == "name" else "queue=")
    assert "1 to 200 characters" in said or "no control characters" in said
    assert len(said) < 200


@pytest.mark.parametrize("priority", [True, 1.5, "high", 2**31, -(2**31), float("nan")])
def test_a_priority_that_is_no_whole_number_is_refused(app: Rota, priority: Any) -> None:
    assert refused(app, priority=priority).startswith(f"priority={priority!r}: a priority is a whole number between")


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "5", 2**31])
def test_a_number_of_attempts_below_one_is_refused(app: Rota, count: Any) -> None:
    assert refused(app, max_attempts=count).startswith(
        f"max_attempts={count!r}: the number of attempts is a whole number from 1"
    )


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5 minutes", True, timedelta(seconds=-1)])
def test_a_timeout_that_is_no_span_is_refused(app: Rota, timeout: Any) -> None:
    assert refused(app, timeout=timeout).startswith(f"timeout={timeout!r} is ")


@pytest.mark.parametrize("timeout", [0, 1e-9, timedelta(0)])
def test_a_timeout_in_which_nothing_can_run_is_refused(app: Rota, timeout: Any) -> None:
    assert refused(app, timeout=timeout) == f"timeout={timeout!r}: no body could run; leave the timeout out for no limit"


@pytest.mark.parametrize("retry", ["often", object(), [], ValueError, {"x": 5}, -1, lambda: 5])
def test_an_unknown_retry_is_refused(app: Rota, retry: Any) -> None:
    said = refused(app, retry=retry)
    assert said.startswith(("retry", "Waits", "Fixed"))


@pytest.mark.parametrize("option", ["keep_result", "isolated"])
def test_a_switch_is_true_or_false(app: Rota, option: str) -> None:
    assert refused(app, **{option: "yes"}) == f"{option}='yes': it is True or False"


def test_an_option_that_does_not_exist_is_a_type_error(app: Rota) -> None:
    with pytest.raises(TypeError, match="que"):
        app.task(que="mail")  # type: ignore[call-overload]


def test_two_tasks_of_one_name_are_refused_and_the_first_stays(app: Rota) -> None:
    @app.task(name="mail")
    def first() -> None: ...

    with pytest.raises(ConfigError, match=r"two tasks are named mail: .*first.*second.*@app\.task\(name="):

        @app.task(name="mail")
        def second() -> None: ...

    assert app.tasks == {"mail": first}


def test_an_isolated_task_must_be_importable(app: Rota) -> None:
    assert "is isolated, but" in (said := refused(app, isolated=True))
    assert said.endswith("define it at the top of a module")


def test_a_generator_function_is_no_task(app: Rota) -> None:
    def plain() -> Iterator[int]:
        yield 1

    async def coroutine() -> AsyncIterator[int]:
        yield 1

    for function in (plain, coroutine):
        with pytest.raises(ConfigError, match="is a generator function, whose body would never run"):
            app.task(function)
    assert app.tasks == {}


def test_a_name_in_the_place_of_the_function_is_pointed_out(app: Rota) -> None:
    with pytest.raises(ConfigError, match=r"'mail' is no function: .* a name is given as @app.task\(name=…\)"):
        app.task("mail")  # type: ignore[call-overload]


def test_what_has_no_name_of_its_own_is_asked_for_one(app: Rota) -> None:
    add = functools.partial(int.__add__, 1)
    with pytest.raises(ConfigError, match="has no name of its own: give it one"):
        app.task(add)
    task = app.task(name="add")(add)
    assert app.tasks == {"add": task}


def test_a_task_is_called_by_its_module_and_name(app: Rota) -> None:
    @app.task
    def ship() -> None:
        """Ship it."""

    name = "app.test_declaring.test_a_task_is_called_by_its_module_and_name.<locals>.ship"
    assert (ship.name, repr(ship), ship.__doc__, ship.__name__) == (name, f"<Task {name}>", "Ship it.", "ship")


def test_a_call_runs_the_function_here_and_now(app: Rota) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        return a + b

    @app.task
    async def aadd(a: int, b: int) -> int:
        return a + b

    assert add(1, b=2) == 3
    assert asyncio.run(aadd(1, 2)) == 3


@pytest.mark.parametrize("name", WORDS)
def test_unusual_names_are_names(app: Rota, name: str) -> None:
    @app.task(name=name, queue=name)
    def anything() -> None: ...

    assert app.tasks[name].options.queue == name


@pytest.mark.parametrize(
    ("retry", "meant"),
    [
        (None, never),
        (False, never),
        (5, Fixed(5)),
        (timedelta(hours=1), Fixed(timedelta(hours=1))),
        ([1, 2], Waits((1, 2))),
    ],
)
def test_a_retry_may_be_said_briefly(app: Rota, retry: Any, meant: object) -> None:
    @app.task(retry=retry)
    def anything() -> None: ...

    assert anything.policy == meant


# -- the app's own settings ---------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["keep_succeeded", "keep_failed", "keep_cancelled"])
@pytest.mark.parametrize("age", [-1, float("nan"), "a week", True, timedelta(days=-1)])
def test_a_retention_that_is_no_span_is_refused(setting: str, age: Any) -> None:
    options: dict[str, Any] = {setting: age}
    with pytest.raises(ConfigError, match=f"^{setting}="):
        Rota("memory://", **options)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "16 MB", None])
def test_a_payload_limit_that_is_no_number_of_bytes_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigError, match=r"^max_payload=.*: the limit is a number of bytes"):
        Rota("memory://", max_payload=limit)


def test_a_clock_is_a_function() -> None:
    with pytest.raises(ConfigError, match=r"^clock=5: pass a function that answers an aware datetime"):
        Rota("memory://", clock=5)  # type: ignore[arg-type]


def test_eager_is_a_switch() -> None:
    with pytest.raises(ConfigError, match=r"^eager='no': it is True or False"):
        Rota("memory://", eager="no")  # type: ignore[arg-type]


# -- a worker's -------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [0, 0.4, timedelta(milliseconds=499)])
def test_a_lease_too_short_for_its_beats_is_refused(app: Rota, lease: Any) -> None:
    with pytest.raises(ConfigError, match=r"^lease=.* is too short: a worker beats three times in a lease"):
        Worker(app, lease=lease)


@pytest.mark.parametrize("lease", [-1, float("nan"), "60", True])
def test_a_lease_is_a_span(app: Rota, lease: Any) -> None:
    with pytest.raises(ConfigError, match=r"^lease="):
        Worker(app, lease=lease)


def test_a_worker_serves_a_list_of_queues(app: Rota) -> None:
    with pytest.raises(ConfigError, match=r"^queues='mail': pass a list of names"):
        Worker(app, queues="mail")
