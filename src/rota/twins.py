"""Twins for coroutines: a method of the app's, run in one of the threads that it keeps for that."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Threaded(Protocol):
    """What has threads for blocking calls."""

    async def _in_thread(self, call: Callable[[], T], /) -> T: ...


S = TypeVar("S", bound=Threaded)


def twin(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """The same method for coroutines, to be called what the method is called with an `a` in front."""

    async def awaited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._in_thread(partial(method, self, *args, **kwargs))

    update_wrapper(awaited, method)
    awaited.__name__ = f"a{method.__name__}"
    awaited.__qualname__ = method.__qualname__.removesuffix(method.__name__) + awaited.__name__
    return awaited
