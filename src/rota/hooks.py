"""What an app wants called for its jobs: when a body starts, around it, and after an attempt succeeded or failed."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct

from rota.clock import Micros
from rota.codec.wire import brief
from rota.context import CurrentJob
from rota.errors import ConfigError
from rota.model import Failure


class FailedAttempt(Struct, frozen=True):
    """What `on_failure` hears of an attempt that failed."""

    type: str
    """The class of the error, for example `ValueError`."""
    message: str
    trace: str
    final: bool
    """Whether the job has failed for good; otherwise another attempt follows."""
    lost: bool = False
    """Whether the attempt ended because its worker was lost, so that nobody knows how far it came."""
    wait: Micros | None = None
    """How long until the next attempt is due; `None` where there is none."""
    error: BaseException | None = None
    """The exception itself; `None` where it was raised in another process, and for a lost attempt."""

    @property
    def reason(self) -> str:
        """The failure in one line."""
        return Failure(self.type, self.message).reason


StartHook = TypeVar("StartHook", bound=Callable[[CurrentJob], object])
SuccessHook = TypeVar("SuccessHook", bound=Callable[[CurrentJob, Any], object])
FailureHook = TypeVar("FailureHook", bound=Callable[[CurrentJob, FailedAttempt], object])
AroundHook = TypeVar("AroundHook", bound=Callable[[CurrentJob], Iterator[None] | AsyncIterator[None]])
AnyHook = TypeVar("AnyHook", bound=Callable[..., object])


class When(StrEnum):
    """When a hook is called."""

    START = "on_start"
    AROUND = "around"
    SUCCESS = "on_success"
    FAILURE = "on_failure"


INSIDE = (When.AROUND, When.START)
"""Where the body runs, in this order."""
_TAKES = {
    When.START: ("job",),
    When.AROUND: ("job",),
    When.SUCCESS: ("job", "result"),
    When.FAILURE: ("job", "failure"),
}


class Hook(Struct, frozen=True):
    """A function to be called for jobs."""

    when: When
    function: Callable[..., Any]
    task: str | None
    """The task for whose jobs alone it is called."""

    @property
    def place(self) -> tuple[str, str]:
        """The module in which it stands, and its name there. A program's main module has another name in its children."""
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        module = "__main__" if named.__module__ == "__mp_main__" else named.__module__
        return module, named.__qualname__

    def __str__(self) -> str:
        return f"the {self.when} hook {'.'.join(self.place)}"


class Hooks:
    """The hooks of an app and of its tasks, in the order in which they were registered."""

    def __init__(self) -> None:
        self._all: list[Hook] = []
        self.inside = False
        """Whether any is called where bodies run. Looked at for each job, so it is an attribute."""
        self.after = False
        """Whether any is called after attempts ended."""

    def add(self, when: When, function: AnyHook, task: str | None = None) -> AnyHook:
        """Register the function and answer it. Raises `ConfigError` for one that cannot be called so."""
        _check(when, function)
        self._all.append(Hook(when, function, task))
        if when in INSIDE:
            self.inside = True
        else:
            self.after = True
        return function

    def of(self, when: When, task: str) -> list[Hook]:
        """Those for a job of this task."""
        return [hook for hook in self._all if hook.when is when and hook.task in (None, task)]

    def around_bodies(self, task: str) -> list[Hook]:
        """Those that are called where a body of this task runs, in their order: first what goes around it."""
        return [hook for when in INSIDE for hook in self.of(when, task)]


def _check(when: When, function: Any) -> None:
    """Raises `ConfigError` for what cannot be called as such hooks are."""
    if not callable(function):
        raise ConfigError(f"{brief(function)} is no function: write @app.{when} above one")
    if when is When.AROUND and not _is_generator(function):
        wrapped = _is_generator(inspect.unwrap(function))
        why = "leave @contextmanager out" if wrapped else "write one `yield` where the body runs"
        raise ConfigError(f"{brief(function)} is no generator function, as around takes them: {why}")
    if when is not When.AROUND and _is_generator(inspect.unwrap(function)):
        raise ConfigError(f"{brief(function)} is a generator function, which {when} would never run: use around")
    try:
        inspect.signature(function).bind(*_TAKES[when])
    except (TypeError, ValueError) as error:
        takes = ", ".join(_TAKES[when])
        raise ConfigError(f"{brief(function)} cannot be called as {when} does, with ({takes}): {error}") from None


def _is_generator(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
