"""What a job is enqueued with besides its arguments, and the one rule for what each option may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from rota.clock import Micros, moment, span
from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.model import Edit

NAME_LIMIT = 200
LARGEST = 2_147_483_647
"""The largest priority and number of attempts: what every store can hold."""

_UNFIT = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and lone surrogates: Unicode's categories Cc and Cs, which never change."""


class Executes(Protocol):
    """A session or connection of one of the drivers that `rota.within` knows."""

    def execute(self, *args: Any, **kwargs: Any) -> Any: ...


class HasCursors(Protocol):
    """The same, as Django's are."""

    def cursor(self, *args: Any, **kwargs: Any) -> Any: ...


OwnConnection = Executes | HasCursors
"""A connection of the caller's own, for `using(connection=…)` and `app.within`; what is none that is known is refused."""


class Options(Struct, frozen=True, kw_only=True):
    """What a job is enqueued with, besides its arguments."""

    queue: str = "default"
    priority: int = 0
    max_attempts: int = 5
    run_at: Micros | None = None
    delay: Micros = 0
    key: str | None = None
    key_waiting: bool = False


def changed(
    base: Options,
    queue: str | None,
    priority: int | None,
    delay: float | timedelta | None,
    run_at: datetime | None,
    key: str | None,
    key_until: Literal["finished", "started"] | None,
    max_attempts: int | None,
) -> Options:
    """These options with what is given in place of what they say. Raises `ConfigError` for an option that cannot be right."""
    changes: dict[str, Any] = {}
    if queue is not None:
        changes["queue"] = check_name("queue", queue)
    if priority is not None:
        changes["priority"] = check_priority(priority)
    if delay is not None and run_at is not None:
        raise ConfigError("delay and run_at are both given: pass one of them")
    if delay is not None:
        changes |= {"delay": span(delay, "delay"), "run_at": None}
    if run_at is not None:
        changes |= {"delay": 0, "run_at": moment(run_at, "run_at")}
    if key is not None:
        changes["key"] = check_name("key", key)
    if key_until is not None:
        if key_until not in ("finished", "started"):
            raise ConfigError(f"key_until={brief(key_until)}: say 'finished' (the default) or 'started'")
        changes["key_waiting"] = key_until == "started"
    if max_attempts is not None:
        changes["max_attempts"] = check_attempts(max_attempts)
    return replace(base, **changes)


def given_after(before: frozenset[str], asked: Mapping[str, object]) -> frozenset[str]:
    """The names of the options that are set once these are, `None` for what is left alone: of `delay` and `run_at` the last."""
    new = {name for name, value in asked.items() if value is not None}
    replaced = {"run_at" if name == "delay" else "delay" for name in new & {"delay", "run_at"}}
    return (before - replaced) | new


def edit_of(queue: str | None, priority: int | None, delay: float | timedelta | None, run_at: datetime | None) -> Edit:
    """What a waiting job is to be from now on. Raises `ConfigError` for what cannot be right, and where nothing is given."""
    if delay is not None and run_at is not None:
        raise ConfigError("delay and run_at are both given: pass one of them")
    edit = Edit(
        priority=None if priority is None else check_priority(priority),
        queue=None if queue is None else check_name("queue", queue),
        run_at=None if run_at is None else moment(run_at, "run_at"),
        delay=None if delay is None else span(delay, "delay"),
    )
    if edit == Edit():
        raise ConfigError("nothing is given to change: pass priority, queue, delay or run_at")
    return edit


def check_name(kind: str, name: str) -> str:
    """The name, if it may be one: text of 1 to 200 characters without control characters or lone surrogates."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT:
        raise ConfigError(f"{kind}={brief(name)}: a {kind} is text of 1 to {NAME_LIMIT} characters")
    if _UNFIT.search(name):
        raise ConfigError(f"{kind}={brief(name)}: a {kind} has no control characters and no lone surrogates")
    return name


def check_queues(queues: Sequence[str] | None) -> list[str] | None:
    """The names of these queues; `None` stands for all."""
    if isinstance(queues, str):
        raise ConfigError(f"queues={brief(queues)}: pass a list of names, for example [{brief(queues)}]")
    return None if queues is None else [check_name("queue", queue) for queue in queues]


def check_flag(name: str, flag: bool) -> bool:
    """The flag, if it is one: other values would be taken for true or false by what they are."""
    if not isinstance(flag, bool):
        raise ConfigError(f"{name}={brief(flag)}: it is True or False")
    return flag


def check_attempts(count: int) -> int:
    """The number, if a job can have so many attempts; stores keep it in 32 bits."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= LARGEST:
        raise ConfigError(f"max_attempts={brief(count)}: the number of attempts is a whole number from 1 to {LARGEST}")
    return count


def check_priority(priority: int) -> int:
    """The priority, if it is a whole number of 32 bits."""
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > LARGEST:
        raise ConfigError(f"priority={brief(priority)}: a priority is a whole number between -{LARGEST} and {LARGEST}")
    return priority
