"""Whatever touches the store has a twin for coroutines, of the same shape: its name with an `a` in front."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from rota import BoundTask, Job, NamedTask, Rota, Task

HOOKS = {"around", "on_failure", "on_start", "on_success"}

TOUCHES_NOTHING = {
    Rota: {"task", "named", "now", "schema", "within", "beside", "lifespan", *HOOKS},
    Job: set(),
    Task: {"using", *HOOKS},
    BoundTask: {"using"},
    NamedTask: {"using"},
}
"""Public methods that ask nothing of the store, or serve both kinds of callers themselves."""


def methods(kind: type) -> Iterator[str]:
    for name, _ in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            yield name


def twin(name: str) -> str:
    return "await_" if name == "wait" else f"a{name}"


PAIRS = [
    (kind, name)
    for kind, quiet in TOUCHES_NOTHING.items()
    for name in methods(kind)
    if name not in quiet and not inspect.iscoroutinefunction(getattr(kind, name))
]


def test_the_walk_meets_every_part_of_the_api() -> None:
    met = {f"{kind.__name__}.{name}" for kind, name in PAIRS}
    assert {"Rota.send", "Rota.drain", "Rota.jobs", "Job.refresh", "Job.wait", "Task.enqueue_many", "NamedTask.enqueue"} <= met


@pytest.mark.parametrize(("kind", "name"), PAIRS, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_a_method_has_a_twin_of_the_same_shape(kind: type, name: str) -> None:
    method, other = getattr(kind, name), getattr(kind, twin(name), None)
    assert other is not None, f"{kind.__name__}.{name} has no twin {twin(name)}"
    assert inspect.iscoroutinefunction(other)
    assert inspect.signature(other) == inspect.signature(method)


def test_no_coroutine_stands_alone() -> None:
    twins = {(kind, twin(name)) for kind, name in PAIRS}
    for kind in TOUCHES_NOTHING:
        for name in methods(kind):
            assert not inspect.iscoroutinefunction(getattr(kind, name)) or (kind, name) in twins
