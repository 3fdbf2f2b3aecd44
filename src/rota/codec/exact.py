"""Whether a value came back from its JSON as it was, and the words for it when it did not."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import NamedTuple
from uuid import UUID

from msgspec import UnsetType

from rota.codec.wire import a_type, brief, fields_of, parts
from rota.errors import ArgumentsError

CERTAIN: frozenset[type] = frozenset({str, int, float, bool, type(None), bytes, date, timedelta, UUID, UnsetType})
"""Types whose equal values are alike in every way that counts, and whose `==` runs no code of the user's."""


class Loss(NamedTuple):
    """The first part of a value that did not come back as it was."""

    path: str
    given: object
    back: object


def find_loss(given: object, back: object, path: str) -> Loss | None:
    """The first part that differs, or `None` when the value came back exactly (save for what `rota.codec` lists).

    Raises `ArgumentsError` when the value is nested deeper than Python can walk.
    """
    try:
        return _find(given, back, path)
    except RecursionError as error:
        raise _too_deep(path) from error


def lossy(loss: Loss) -> ArgumentsError:
    """The error that explains a loss: what it is, what it would be, and how to mend it."""
    path, given, back = loss
    refuse_endless(given, path)
    if type(given) is not type(back):
        return ArgumentsError(f"{path} is {a_type(given)} and would come back as {a_type(back)}: {_mend(given, back)}")
    if isinstance(given, Mapping):
        return ArgumentsError(
            f"{path} has keys that would not come back as they are ({brief(given)} as {brief(back)}): "
            "JSON's keys are strings; annotate the parameter with the type of its keys (dict[int, …])"
        )
    return ArgumentsError(f"{path} is {brief(given)} and would come back as {brief(back)}: pass what JSON can carry exactly")


def refuse_endless(value: object, path: str) -> None:
    """Raise `ArgumentsError` where the value holds a NaN or an infinity, which msgspec writes as `null`."""
    try:
        if not _holds_endless(value):
            return
    except RecursionError as error:
        raise _too_deep(path) from error
    if isinstance(value, float):
        raise ArgumentsError(f"{path} is {value}, which JSON cannot hold: pass None or a string, or annotate a Decimal")
    for step, part in parts(value):
        refuse_endless(part, path + step)


def _holds_endless(value: object) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    if type(value) in CERTAIN:
        return False
    if isinstance(value, dict):
        return any(map(_holds_endless, value)) or any(map(_holds_endless, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_holds_endless, value))
    return any(_holds_endless(part) for _, part in parts(value))


def _too_deep(path: str) -> ArgumentsError:
    return ArgumentsError(f"{path} is nested too deeply: pass flatter data")


def _find(given: object, back: object, path: str) -> Loss | None:
    kind = type(given)
    if kind in CERTAIN and kind is type(back):
        return None if given == back else Loss(path, given, back)
    if _same_plain_data(given, back):
        return None
    return _compare(given, back, path)


def _mend(given: object, back: object) -> str:
    name = type(given).__qualname__.rpartition("<locals>.")[2]
    if isinstance(given, Enum) or hasattr(given, "_fields"):
        return f"annotate the parameter with {name}"
    if isinstance(given, type(back)):
        return f"pass a plain {type(back).__name__}"
    if type(back) in (str, int, float, list, dict):  # what JSON gives where no annotation says otherwise
        return f"annotate the parameter with its type ({name})"
    return f"pass {a_type(back)}, or change the annotation"


def _same_plain_data(given: object, back: object) -> bool:
    # Marshal compares whole trees of built-in types, type by type, at the speed of C. Version 2 writes no
    # back-references, so equal data gives equal bytes. It says no more than "surely alike": the rest is compared below.
    try:
        return marshal.dumps(given, 2) == marshal.dumps(back, 2)  # type: ignore[arg-type]
    except ValueError:
        return False


_ACCEPTED = frozenset({(int, float), (bytearray, bytes), (memoryview, bytes)})


def _compare(given: object, back: object, path: str) -> Loss | None:
    kind = type(given)
    if kind is not type(back):
        if (kind, type(back)) in _ACCEPTED and given == back:
            return None
        if kind is tuple and type(back) is list:
            return _compare_items(given, back, path)  # type: ignore[arg-type]
        return Loss(path, given, back)
    match given:
        case list() | tuple():
            return _compare_items(given, back, path)  # type: ignore[arg-type]
        case dict():
            return _compare_dicts(given, back, path)  # type: ignore[arg-type]
        case set() | frozenset():
            return _compare_sets(given, back, path)  # type: ignore[arg-type]
        case Decimal():
            # As text: NaN equals nothing, a signalling NaN cannot even be compared, and 1.0 is not 1.00.
            same = str(given) == str(back)
        case datetime():
            same = _same_datetime(given, back)  # type: ignore[arg-type]
        case time():
            same = _same_time(given, back)  # type: ignore[arg-type]
        case _ if names := fields_of(kind):
            return _compare_fields(given, back, names, path)
        case _:
            same = _equal(given, back)
    return None if same else Loss(path, given, back)


def _compare_items(given: list[object] | tuple[object, ...], back: list[object] | tuple[object, ...], path: str) -> Loss | None:
    if len(given) != len(back):
        return Loss(path, given, back)
    for index, (one, other) in enumerate(zip(given, back, strict=True)):
        if loss := _find(one, other, f"{path}[{index}]"):
            return loss
    return None


def _compare_dicts(given: dict[object, object], back: dict[object, object], path: str) -> Loss | None:
    if len(given) != len(back):
        return Loss(path, given, back)
    for (key, one), (other_key, other) in zip(given.items(), back.items(), strict=True):
        if _find(key, other_key, path):
            return Loss(path, given, back)
        if loss := _find(one, other, f"{path}[{brief(key)}]"):
            return loss
    return None


def _compare_sets(given: set[object] | frozenset[object], back: set[object] | frozenset[object], path: str) -> Loss | None:
    if len(given) != len(back):
        return Loss(path, given, back)
    twins = {item: item for item in back}
    for item in given:
        if item not in twins:
            return Loss(path, given, back)
        if loss := _find(item, twins[item], f"{path}[{brief(item)}]"):
            return loss
    return None


def _compare_fields(given: object, back: object, names: tuple[str, ...], path: str) -> Loss | None:
    for name in names:
        if loss := _find(getattr(given, name, None), getattr(back, name, None), f"{path}.{name}"):
            return loss
    return None


def _same_datetime(given: datetime, back: datetime) -> bool:
    # Not by `==`: a moment within a repeated hour equals no moment of another zone, not even itself with a fixed offset.
    if given.tzinfo is None or back.tzinfo is None:
        return given.tzinfo is back.tzinfo and given == back and given.fold == back.fold
    return given.utcoffset() == back.utcoffset() and given.replace(tzinfo=None) == back.replace(tzinfo=None)


def _same_time(given: time, back: time) -> bool:
    # A zone with summer time gives a time of day no offset, and is lost: such a time would come back without one.
    zoned = (given.tzinfo is None) == (back.tzinfo is None)
    return zoned and given == back and given.utcoffset() == back.utcoffset() and given.fold == back.fold


def _equal(given: object, back: object) -> bool:
    try:
        return bool(given == back)
    except Exception:  # noqa: BLE001  # a value's own `==` may raise anything; what cannot be compared is not known to be alike
        return False
