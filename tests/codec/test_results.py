"""A result comes back as it was, or is refused where it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from datetime import UTC, datetime
from typing import Any, NoReturn
from uuid import UUID

import pytest

from rota.codec import Signature
from rota.errors import ArgumentsError


def plain() -> dict[int, UUID]: ...  # type: ignore[empty-body]
async def coroutine() -> datetime: ...  # type: ignore[empty-body]
def hands_on() -> Coroutine[Any, Any, datetime]: ...  # type: ignore[empty-body]
def awaitable() -> Awaitable[datetime]: ...  # type: ignore[empty-body]
def bare(): ...  # type: ignore[no-untyped-def]
def nothing() -> None: ...
def never_returns() -> NoReturn:
    raise SystemExit


def a_stranger(x: int) -> pytest.Item: ...  # type: ignore[empty-body]
def unknown(x: int) -> "NotDefined": ...  # type: ignore[empty-body, name-defined]  # noqa: F821, UP037


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (plain, {1: UUID(int=1)}),
        (coroutine, NOON),
        (hands_on, NOON),
        (awaitable, NOON),
        (bare, {"a": [1, None]}),
        (bare, None),
        (nothing, None),
        (never_returns, None),
    ],
)
def test_a_result_comes_back_as_it_was(function: Any, value: Any) -> None:
    signature = Signature(function)
    assert signature.decode_result(signature.encode_result(value)) == value


@pytest.mark.parametrize(
    ("function", "value", "words"),
    [
        (bare, {"a": 1.0, "b": float("nan")}, r"bare: the result\['b'\] is nan"),
        (bare, NOON, "would come back as a str"),
        (bare, object(), "bare: the result cannot be stored"),
        (bare, "\ud800", "lone surrogate"),
        (nothing, 5, "nothing: result: expected `null`, got `int`"),
        (plain, {1: "x"}, r"plain: result\['1'\]: "),
        (a_stranger, 1, "a_stranger: the result is annotated with Item"),
        (unknown, 1, "unknown: the return annotation cannot be read"),
    ],
)
def test_a_result_that_would_not_come_back_is_refused(function: Any, value: Any, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words):
        Signature(function).encode_result(value)


@pytest.mark.parametrize("text", ["", "{", '"x"', "[" * 100_000, "\udc80"])
def test_a_stored_result_that_does_not_fit_is_refused_in_words(text: str) -> None:
    with pytest.raises(ArgumentsError, match="coroutine: the stored result does not fit"):
        Signature(coroutine).decode_result(text)


@pytest.mark.parametrize("function", [a_stranger, unknown])
def test_a_result_that_cannot_be_carried_does_not_keep_the_task_from_being_called(function: Any) -> None:
    signature = Signature(function)
    signature.check()
    assert signature.encode((1,), {}, 100) == '{"x":1}'
