"""The limits of a task, from what users write to what a claim goes by.

A limit has a name. Declared without one it is called after its task, which has it alone; tasks that give the same name share
the limit. A size that was set at run time under a limit's name outweighs the declared one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from inspect import Parameter

from rota.codec.wire import brief
from rota.errors import ConfigError
from rota.options import check_name
from rota.rules.sizes import Rate, Size, alike, in_words, read_concurrency, read_rate

Key = Callable[..., object]
"""A function of a job's arguments, by their names: jobs that give the same answer share a room."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many at once, as `Limit(2)`, or how often, as `Limit("10/m")`: for `@app.task(concurrency=…)` and `rate=…`.

    - `key`: a function of the job's arguments; each answer has a room of its own. It is called with those arguments that it
      names (with all, if it takes `**`) and answers text, a number, a bool, `None`, a UUID, a member of an enum of these, or a
      tuple of these.
    - `name`: tasks that give the same name share the limit. By default it is named after its task, which has it alone.

    Raises `ConfigError` for what cannot be a limit.

    >>> limit = Limit(2, key=lambda tenant_id: tenant_id, name="reports")
    >>> Limit("10 a minute", name="partner")
    Traceback (most recent call last):
    rota.errors.ConfigError: Limit('10 a minute') is no rate: write how many starts in how long, in whole numbers, \
for example '10/m' or '1/30s'; the units are s, m, h and d, or seconds, minutes, hours and days
    """

    size: int | str
    _: KW_ONLY
    key: Key | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        read = read_rate if isinstance(self.size, str) else read_concurrency
        read(self.size, f"Limit({brief(self.size)})")
        if self.key is not None:
            _parameters(self.key)
        if self.name is not None:
            check_name("limit", self.name)


ConcurrencyOption = int | Limit | Sequence[int | Limit]
"""What may be given as `concurrency=`; several are a list or a tuple."""
RateOption = str | Limit | Sequence[str | Limit]
"""What may be given as `rate=`; several are a list or a tuple."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A limit of one task as its code declares it."""

    task: str
    name: str
    size: Size
    key: Key | None = None
    takes: frozenset[str] | None = None
    """The names of the arguments that the key is called with; `None` for all."""


def limits_of(
    task: str,
    concurrency: ConcurrencyOption | None = None,
    rate: RateOption | None = None,
    signature: inspect.Signature | None = None,
) -> tuple[Declared, ...]:
    """The limits of the task of this name, in their order: how many at once before how often, each as written.

    A job that meets several full ones is held by the first. `signature` is that of the task's function: a key that asks for an
    argument which is not there is refused. Raises `ConfigError` for whatever cannot be right.

    >>> [limit.name for limit in limits_of("app.build", [Limit(2, key=lambda tenant: tenant), 20], "10/m")]
    ['concurrency of app.build by tenant', 'concurrency of app.build', 'rate of app.build']
    """
    declared: dict[str, Declared] = {}
    for kind, given in (*_each("concurrency", concurrency), *_each("rate", rate)):
        limit = given if isinstance(given, Limit) else None
        read = read_concurrency if kind == "concurrency" else read_rate
        size = read(limit.size if limit else given)
        key = limit.key if limit else None
        name = limit.name if limit and limit.name else _own_name(f"{kind} of {task}", key, declared)
        if name in declared:
            raise ConfigError(f"task {task} has two limits named {name!r}: keep one of them, or give one another name")
        declared[name] = Declared(task, name, size, key, _takes(name, key, task, signature) if key else None)
    return tuple(declared.values())


def agree(limits: Iterable[Declared]) -> None:
    """Refuse limits of one name and two sizes: which of them held would depend on the job. Raises `ConfigError`.

    Nor may one have a key and another none, since they would share no room. Keys may differ, as the tasks' arguments do.
    """
    first: dict[str, Declared] = {}
    for limit in limits:
        other = first.setdefault(limit.name, limit)
        if not alike(other.size, limit.size) or (other.key is None) is not (limit.key is None):
            raise ConfigError(
                f"limit {limit.name!r} is {_described(other)} for task {other.task} and {_described(limit)} for task "
                f"{limit.task}: make one Limit and pass it to both, or give one of them another name"
            )


def in_force(limits: Iterable[Declared], overrides: Mapping[str, Size]) -> dict[str, Size]:
    """The size of each limit by its name: the one set at run time, where there is one, else the declared one.

    A size of the other kind is left over from when the limit was of that kind, and does not count.
    """
    return {
        limit.name: override if isinstance(override := overrides.get(limit.name), type(limit.size)) else limit.size
        for limit in limits
    }


def reported(said: bool | str, limits: Sequence[Declared]) -> tuple[str, ...]:
    """The names of those limits of a task that its body means with `Retry(limit=…)`; none where it has no such limit.

    `True` means all of its rates, since those are what partners set, or else all of its limits.

    >>> limits = limits_of("app.call", concurrency=2, rate="10/m")
    >>> reported(True, limits), reported("concurrency of app.call", limits), reported("elsewhere", limits)
    (('rate of app.call',), ('concurrency of app.call',), ())
    """
    if isinstance(said, str):
        return tuple(limit.name for limit in limits if limit.name == said)
    rates = tuple(limit.name for limit in limits if isinstance(limit.size, Rate))
    return rates or tuple(limit.name for limit in limits)


def _each(kind: str, given: object) -> list[tuple[str, object]]:
    """What is given as this option, one by one."""
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        return [(kind, given)]
    if not given:
        raise ConfigError(f"{kind}={given!r}: a list of limits has one or more; leave it out for no limit")
    return [(kind, each) for each in given]


def _own_name(plain: str, key: Key | None, taken: Mapping[str, Declared]) -> str:
    """The name of a limit that was given none. No size is part of it: what was set under it outlives a change of the code."""
    if key is not None:
        plain = f"{plain} by {_by(key)}"
    tries = (plain if number == 1 else f"{plain} ({number})" for number in range(1, len(taken) + 2))
    return next(name for name in tries if name not in taken)


def _by(key: Key) -> str:
    """What a key goes by: the arguments that it names, or else its own name."""
    named = ", ".join(parameter.name for parameter in _parameters(key) if parameter.kind in _NAMED)
    own = getattr(key, "__name__", "<")
    return named or ("key" if own.startswith("<") else own)


def _takes(name: str, key: Key, task: str, signature: inspect.Signature | None) -> frozenset[str] | None:
    """The names of the arguments to call the key with; refused when it asks for one that the task does not have."""
    parameters = _parameters(key)
    named = [parameter for parameter in parameters if parameter.kind in _NAMED]
    there = None if signature is None else signature.parameters
    if there is not None and not _takes_all(there.values()):
        for parameter in named:
            if parameter.default is Parameter.empty and parameter.name not in there:
                raise ConfigError(
                    f"limit {name!r}: its key asks for {parameter.name!r}, which is no argument of task {task}: "
                    f"it has {', '.join(there) or 'none'}"
                )
    return None if not parameters or _takes_all(parameters) else frozenset(parameter.name for parameter in named)


def _parameters(key: Key) -> list[Parameter]:
    """The parameters of a key function; none where Python cannot tell. Raises `ConfigError` for what can be no key."""
    if not callable(key):
        raise ConfigError(
            f"key={brief(key)} is no function: pass one of the arguments, for example key=lambda tenant_id: tenant_id"
        )
    if inspect.iscoroutinefunction(key):
        raise ConfigError(f"key={brief(key)} is a coroutine function: pass a plain one, which answers at once")
    try:
        parameters = list(inspect.signature(key).parameters.values())
    except (TypeError, ValueError):
        return []
    for parameter in parameters:
        if parameter.kind is Parameter.POSITIONAL_ONLY and parameter.default is Parameter.empty:
            raise ConfigError(
                f"key={brief(key)} takes {parameter.name!r} by position, and arguments come by name: remove the '/'"
            )
    if not _takes_all(parameters) and not any(parameter.kind in _NAMED for parameter in parameters):
        raise ConfigError(f"key={brief(key)} names no argument, so all jobs would have the same key: name what it goes by")
    return parameters


def _takes_all(parameters: Iterable[Parameter]) -> bool:
    return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _described(limit: Declared) -> str:
    return in_words(limit.size) + ("" if limit.key is None else " for each key")
