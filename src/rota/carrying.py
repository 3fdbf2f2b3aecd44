"""The context variables that go along with a job, from where it is enqueued to its body."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from enum import Enum
from typing import Any

import msgspec

from rota.codec.exact import find_loss
from rota.codec.wire import brief, refusal, weigh, write
from rota.errors import ArgumentsError, ConfigError

_UNSET = object()


class Carried:
    """The variables that an app declared. Names are all that is stored of them, so they are what both sides must agree on."""

    def __init__(self, variables: Sequence[ContextVar[Any]]) -> None:
        """Raises `ConfigError` for what is no list of variables with a name each."""
        self._variables: dict[str, ContextVar[Any]] = {}
        if isinstance(variables, ContextVar | str) or not isinstance(variables, Sequence):
            raise ConfigError(f"context={brief(variables)}: pass a list of context variables, for example context=[tenant]")
        for variable in variables:
            if not isinstance(variable, ContextVar):
                raise ConfigError(f"context has {brief(variable)} in it, which is no ContextVar")
            if variable.name in self._variables:
                raise ConfigError(f"two context variables are named {variable.name}: give one of them another name")
            if not _is_text(variable.name):
                raise ConfigError(f"the context variable {variable.name!r} has a lone surrogate in its name: give it another")
            self._variables[variable.name] = variable

    def pack(self, weight: int, limit: int) -> str | None:
        """The values that are set here as JSON by name, or `None` where none is; they weigh on top of `weight` bytes.

        Raises `ArgumentsError` for one that would not come back as it is, and `PayloadTooLarge`.
        """
        values = {}
        for name, variable in self._variables.items():
            if (value := variable.get(_UNSET)) is not _UNSET:
                values[name] = value
        if not values:
            return None
        try:
            text = write(values)
            if _changes(values, text):
                raise _changed(values)
        except ArgumentsError:
            raise
        except Exception as error:
            raise _unstorable(values, error) from error
        weigh(text, limit - weight, f"what is carried along, besides {weight:,} bytes of arguments,")
        return text.decode()

    def unpack(self, text: str) -> None:
        """Set the variables of this context to these values. What is not declared here is passed over.

        Raises `ArgumentsError` where somebody damaged the row.
        """
        try:
            values = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ArgumentsError(f"what the job carries along cannot be read ({error}): enqueue it anew") from error
        for name, value in values.items():
            if (variable := self._variables.get(name)) is not None:
                variable.set(value)


def _changes(value: object, text: bytes) -> bool:
    """Whether a value would come back from JSON as another, or as one of another class: what equals text may be an enum."""
    back = msgspec.json.decode(text)
    return bool(back != value) or find_loss(value, back, "") is not None


def _changed(values: dict[str, Any]) -> ArgumentsError:
    name = next(name for name, value in values.items() if _changes(value, write(value)))
    shown = repr(values[name]) if isinstance(values[name], Enum) else brief(values[name])  # an enum's text may be all of it
    return ArgumentsError(
        f"the context variable {name} cannot be carried along: {shown} would not come back from JSON as it is; "
        "keep text, numbers, lists or dicts in it"
    )


def _unstorable(values: dict[str, Any], error: Exception) -> ArgumentsError:
    for name, value in values.items():
        try:
            write(value)
        except Exception as inner:  # noqa: BLE001  # a value's own code may raise anything
            if isinstance(inner, UnicodeEncodeError):
                return ArgumentsError(
                    f"the context variable {name} cannot be stored: {brief(value)} holds a lone surrogate, which no UTF-8 text "
                    "can: decode the text that it came from anew, with errors='replace' for example"
                )
            return refusal(value, f"the context variable {name}", inner)
    return ArgumentsError(f"the context variables cannot be carried along: {error}")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
