"""A job's arguments as tests look at them: by name, compared by what they mean, and shown by what is different in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from inspect import Parameter
from itertools import takewhile
from pathlib import PurePath
from pprint import pformat
from typing import Any

import msgspec

from rota.app import Rota
from rota.codec.wire import revive
from rota.errors import ArgumentsError
from rota.task import Task

_LONG = 60
"""Characters of an argument that are shown in one line."""
_WIDE = 100
_MOST_LINES = 30
"""Characters of a line, and lines, in which is shown how long arguments differ."""
_MUCH = 20_000
"""More characters than this are not put into lines by `pformat`, which takes seconds for a megabyte."""
_COMPARED = 1_000
"""So many lines are looked through for what differs, from the first one that does."""


def named(app: Rota, task: str, text: str) -> Mapping[str, object]:
    """What a job was called with, by the names of its task's parameters where its code is here, defaults included."""
    known = app.tasks.get(task)
    if known is not None:
        try:
            return _spread(known, known.signature.by_name(text))
        except ArgumentsError:  # it was sent by its name, and does not fit
            pass
    plain = msgspec.json.decode(text)
    by_position = plain.pop("*", []) if isinstance(plain, dict) else [plain]
    numbered: dict[str, object] = {f"argument {number}": value for number, value in enumerate(by_position, 1)}
    return numbered | (plain if isinstance(plain, dict) else {})


def wanted(task: Task[..., Any, Any], args: Mapping[str, object]) -> Mapping[str, object]:
    """Some arguments of a task that a test names, as its jobs have them.

    Raises `ArgumentsError` for a name that the task does not take, and for a value that does not fit.
    """
    return {name: _fitting(task, name, value) for name, value in args.items()}


def check_names(app: Rota, args: Iterable[str], found: Iterable[Mapping[str, object]]) -> None:
    """Refuse the name of an argument that no task of the app takes, and none of these jobs has. Raises `ArgumentsError`."""
    strange = [name for name in args if app.tasks and not any(_takes(task, name) for task in app.tasks.values())]
    if strange and not any(strange[0] in each for each in found):
        raise ArgumentsError(
            f"no task of this app has a parameter {strange[0]!r}, and no job has such an argument: see its name"
        )


def stored(arguments: Mapping[str, object]) -> dict[str, bytes | None]:
    """Each argument as JSON; `None` for a default that has none."""
    return {name: _stored(value) for name, value in arguments.items()}


def alike(one: object, other: object, other_stored: bytes | None) -> bool:
    """Whether two arguments are equal or, where their classes know no equality, stored alike."""
    try:
        return bool(one == other) or (other_stored is not None and type(one) is type(other) and _stored(one) == other_stored)
    except Exception:  # noqa: BLE001  # a value's own code may raise anything
        return False


def called(arguments: Mapping[str, object]) -> str:
    """Arguments as they are written in a call, cut where they are long."""
    return ", ".join(f"{name}={in_short(value)}" for name, value in arguments.items())


def in_short(value: object) -> str:
    """An argument in one line, cut where it is long: by its JSON where its class has no words of its own."""
    return _cut(_said(value), _LONG)


def unlike(name: str, expected: object, found: object) -> list[str]:
    """In what an argument differs: one line where either is short; else the lines that differ, with one around them."""
    said = _said(expected), _said(found)
    if min(map(len, said)) <= _LONG:
        return [f"{name}: {_cut(said[1], _LONG)}, expected {_cut(said[0], _LONG)}"]
    one, other = _lines(expected, said[0]), _lines(found, said[1])
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    first = max(0, start - 1)
    told = [
        "…" if line.startswith("@@") else f"{line[0]} {line[1:]}".rstrip()
        for line in unified_diff(one[first : first + _COMPARED], other[first : first + _COMPARED], lineterm="", n=1)
    ][3:]
    if len(told) > _MOST_LINES:
        told = [*told[:_MOST_LINES], f"… and {len(told) - _MOST_LINES} lines more"]
    return [f"{name}, expected (-) and there (+):", *(f"  {line}" for line in told)]


# -- by name ------------------------------------------------------------------------------------


def _spread(task: Task[..., Any, Any], arguments: dict[str, object]) -> dict[str, object]:
    """The same with those of `**kwargs` among the others, as they were given."""
    last = next((each.name for each in _parameters(task).values() if each.kind is Parameter.VAR_KEYWORD), None)
    more = arguments.get(last) if last is not None else None
    if not isinstance(more, dict) or more.keys() & arguments.keys() - {last}:
        return arguments
    return {name: value for name, value in arguments.items() if name != last} | more


def _parameters(task: Task[..., Any, Any]) -> Mapping[str, Parameter]:
    return task.signature._resolve().signature.parameters


def _takes(task: Task[..., Any, Any], name: str) -> bool:
    parameters = _parameters(task)
    return name in parameters or any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())


def _fitting(task: Task[..., Any, Any], name: str, value: object) -> object:
    form = task.signature._resolve()
    if not _takes(task, name):
        takes = ", ".join(form.names) or "none"
        raise ArgumentsError(f"{task.name} has no parameter {name!r}: its parameters are {takes}")
    kinds = dict(zip(form.names, msgspec.structs.fields(form.struct), strict=True))
    if name not in kinds or form.signature.parameters[name].kind is Parameter.VAR_KEYWORD:
        return value
    try:
        return msgspec.json.decode(_written(value), type=kinds[name].type, dec_hook=revive)
    except Exception as error:
        said = f"{task.name} takes no {name}={in_short(value)}: {error}; pass what the annotation says"
        raise ArgumentsError(said) from error


# -- in words -----------------------------------------------------------------------------------


def _said(value: object) -> str:
    """What a value is, in Python's words, or in those of JSON where its class has none. Never raises."""
    try:
        said = repr(value)
        return _written(value).decode() if " object at 0x" in said else said
    except Exception:  # noqa: BLE001  # a value's own code may raise anything
        return f"<{type(value).__name__}>"


def _lines(value: object, said: str) -> Sequence[str]:
    try:
        if isinstance(value, str) and "\n" in value:
            lines = value.splitlines()
        elif len(said) <= _MUCH and " object at 0x" not in (formatted := pformat(value, width=_WIDE)):
            lines = formatted.splitlines()
        else:
            lines = msgspec.json.format(_written(value), indent=1).decode().splitlines()
    except Exception:  # noqa: BLE001  # a value's own code may raise anything, and a default need not be storable
        lines = [said]
    return [line[at : at + _WIDE] for line in lines for at in range(0, len(line) or 1, _WIDE)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _stored(value: object) -> bytes | None:
    try:
        return _written(value)
    except Exception:  # noqa: BLE001  # a value's own code may raise anything, and a default need not be storable
        return None


def _lower(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__qualname__} has no form in JSON")


_written = msgspec.json.Encoder(enc_hook=_lower, order="deterministic").encode
