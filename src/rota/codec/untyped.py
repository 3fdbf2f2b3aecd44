"""Arguments of a task that is known by its name alone: the code that runs it, and its annotations, are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.codec.exact import refuse_endless
from rota.codec.wire import refusal, weigh, write
from rota.errors import ArgumentsError


def encode_untyped(args: tuple[Any, ...], kwargs: Mapping[str, Any], limit: int) -> str:
    """Write a call of a task whose code is not here: arguments by position under `*`, the others by name.

    Dates, UUIDs, Decimals, enums, sets, dataclasses and whatever else has one standard form in JSON is written in it: the
    annotations of the task give it back where it runs, and refuse there what does not fit. What has no such form is refused
    here with an `ArgumentsError` naming its path.

    >>> encode_untyped((1, 2), {"lang": "de"}, limit=1_000)
    '{"*":[1,2],"lang":"de"}'
    """
    if "*" in kwargs:
        raise ArgumentsError("'*' cannot be an argument's name, it stands for those without one: rename it")
    call = {"*": args, **kwargs} if args else kwargs
    try:
        payload = write(call)
    except Exception as error:
        for path, value in _named(args, kwargs):
            try:
                write(value)
            except Exception as inner:  # noqa: BLE001  # a value's own code may raise anything
                raise refusal(value, path, inner) from error
        raise ArgumentsError(f"the arguments cannot be stored: {error}") from error
    weigh(payload, limit, "the payload of this job")
    _skim(payload)
    if any(word in payload for word in _ENDLESS):
        for path, value in _named(args, kwargs):
            refuse_endless(value, path)
    return payload.decode()


_ENDLESS = (b"null", b'nan":', b'inf":')
"""What msgspec writes for a NaN or an infinity, as a value or as a key. Without these words no value need be searched."""


def _skim(payload: bytes) -> None:
    try:
        _skimmed(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ArgumentsError(f"the arguments cannot be stored, they would not be read back: {error}") from error


_skimmed = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _named(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(f"argument {index}", value) for index, value in enumerate(args, 1)] + list(kwargs.items())
