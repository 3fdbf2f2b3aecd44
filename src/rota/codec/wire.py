"""The JSON that payloads are made of, and the words for values that it cannot hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import msgspec

from rota.errors import ArgumentsError, PayloadTooLarge


def write(value: object) -> bytes:
    """The value as JSON. Raises whatever the encoder and the value's own code raise; `refusal` explains it."""
    return _encode(value)


def revive(kind: type, value: object) -> object:
    """Make an instance of a class that msgspec knows nothing of: a path, which travels as text, or any `object`."""
    if kind is object:
        return value
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise ValueError(f"{kind.__qualname__} cannot be made from JSON")


def weigh(payload: bytes, limit: int, whose: str) -> None:
    """Refuse a payload that weighs more than `limit` bytes."""
    if len(payload) > limit:
        raise PayloadTooLarge(
            f"{whose} weighs {len(payload):,} bytes and the limit is {limit:,}: "
            "store the data elsewhere and keep a reference to it (an id, a key, a path), or raise max_payload"
        )


def refusal(value: object, path: str, error: BaseException) -> ArgumentsError:
    """Why `write` raised `error` for the value at `path`: names the part of it that cannot be written."""
    try:
        path, part, error = _culprit(value, path, error)
    except RecursionError as deep:
        return ArgumentsError(f"{path} is nested too deeply or contains itself: {_reason(value, deep)}")
    return ArgumentsError(f"{path} cannot be stored: {_reason(part, error)}")


def parts(value: object) -> Iterator[tuple[str, object]]:
    """What a value is made of, each part with its step of the path. A mapping's keys are parts of it, too."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"[key {brief(key)}]", key
            yield f"[{brief(key)}]", item
    elif isinstance(value, list | tuple):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((f"[{brief(item)}]", item) for item in value)
    elif isinstance(value, Enum):
        return
    else:
        for name in fields_of(type(value)):
            if (item := getattr(value, name, msgspec.UNSET)) is not msgspec.UNSET:
                yield f".{name}", item


def fields_of(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass, a Struct or an attrs class; empty for any other class."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    return tuple(field.name for field in getattr(kind, "__attrs_attrs__", ()))


def brief(value: object) -> str:
    """A short `repr`, never raising."""
    if isinstance(value, str | bytes):
        value = value[:60]
    try:
        shown = repr(value)
    except Exception as error:  # noqa: BLE001  # a value's own repr may raise anything
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def a_type(value: object) -> str:
    """The value's type with its article: `a Path`, `an int`."""
    name = "None" if value is None else type(value).__qualname__.rpartition("<locals>.")[2]
    return name if value is None else f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _lower(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__qualname__} has no form in JSON")


_encode = msgspec.json.Encoder(enc_hook=_lower).encode


def _culprit(value: object, path: str, error: BaseException) -> tuple[str, object, BaseException]:
    for step, part in parts(value):
        try:
            _encode({part: None} if step.startswith("[key ") else part)
        except RecursionError:
            raise
        except Exception as inner:  # noqa: BLE001  # a value's own code may raise anything
            return _culprit(part, path + step, inner)
    return path, value, error


def _reason(value: Any, error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "pass flatter data"
    if isinstance(error, UnicodeEncodeError):
        return f"{brief(value)} holds a lone surrogate, which no UTF-8 text can; pass bytes (os.fsencode for file names)"
    if isinstance(error, TypeError):
        base = next((base for base in type(value).__mro__[1:] if base in _PLAIN), None)
        mend = f"pass a plain {base.__name__}" if base else "pass what identifies it (an id, a name), or its data"
        return f"it is {a_type(value)}, which has no form in JSON; {mend}"
    return f"{type(error).__name__}: {brief(str(error))}"


_PLAIN = frozenset({str, int, float, bytes})
