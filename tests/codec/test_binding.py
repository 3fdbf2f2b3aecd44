"""Calls are written by name where they can be, and bind as Python binds them."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypedDict, Unpack
from uuid import UUID

import pytest

from rota.codec import Signature, encode_untyped
from rota.errors import ArgumentsError, PayloadTooLarge

LIMIT = 1_000_000


class Options(TypedDict, total=False):
    size: int


def plain(order_id: int, lang: str = "en", *, dry: bool = False) -> None: ...
def needs_key(a: int, *, b: UUID) -> None: ...
def late_required(a: int = 1, *, b: int) -> None: ...
def nothing() -> None: ...
def only_positional(a: int, b: UUID | None = None, /) -> None: ...
def mixed(a: int, /, b: int, *rest: int, c: int = 0) -> None: ...
def everything(a: int, /, b: int = 2, *rest: float, c: int = 0, **more: int) -> None: ...
def same_name(a: int, /, **more: int) -> None: ...
def stars(*args: UUID, **kwargs: UUID) -> None: ...
def options(**kwargs: Unpack[Options]) -> None: ...
def odd_names(self, cls, type, args, kwargs, _, __x, encode): ...  # type: ignore[no-untyped-def]


ONE, TWO = UUID(int=1), UUID(int=2)

CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (plain, (42,), {}, '{"order_id":42}'),
    (plain, (42, "de"), {}, '{"order_id":42,"lang":"de"}'),
    (plain, (), {"lang": "de", "order_id": 42, "dry": True}, '{"order_id":42,"lang":"de","dry":true}'),
    (needs_key, (1,), {"b": ONE}, f'{{"a":1,"b":"{ONE}"}}'),
    (late_required, (), {"b": 2}, '{"b":2}'),
    (nothing, (), {}, "{}"),
    (only_positional, (1, ONE), {}, f'{{"*":[1,"{ONE}"]}}'),
    (only_positional, (1,), {}, '{"*":[1]}'),
    (mixed, (1, 2), {}, '{"*":[1],"b":2}'),
    (mixed, (1,), {"b": 2, "c": 3}, '{"*":[1],"b":2,"c":3}'),
    (mixed, (1, 2, 3, 4), {"c": 5}, '{"*":[1,2,3,4],"c":5}'),
    (everything, (1,), {"z": 9, "c": 1}, '{"*":[1],"c":1,"z":9}'),
    (everything, (1, 2, 0.5), {"y": 1}, '{"*":[1,2,0.5],"y":1}'),
    (same_name, (1,), {"a": 2}, '{"*":[1],"a":2}'),
    (stars, (), {}, "{}"),
    (stars, (ONE, TWO), {"z": ONE}, f'{{"*":["{ONE}","{TWO}"],"z":"{ONE}"}}'),
    (options, (), {"size": 3}, '{"size":3}'),
    (
        odd_names,
        (1, 2, 3, 4, 5, 6, 7, 8),
        {},
        '{"self":1,"cls":2,"type":3,"args":4,"kwargs":5,"_":6,"__x":7,"encode":8}',
    ),
]


def as_seen(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The function's view of a call, defaults filled in."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.parametrize(("function", "args", "kwargs", "text"), CALLS)
def test_a_call_is_written_by_name_and_comes_back_as_the_same_call(function: Any, args: Any, kwargs: Any, text: str) -> None:
    signature = Signature(function)
    assert signature.encode(args, kwargs, LIMIT) == text
    again, named = signature.decode(text)
    assert as_seen(function, again, named) == as_seen(function, args, kwargs)


@pytest.mark.parametrize(("function", "args", "kwargs", "text"), CALLS)
def test_a_call_sent_without_the_code_is_the_same_call(function: Any, args: Any, kwargs: Any, text: str) -> None:
    again, named = Signature(function).decode(encode_untyped(args, kwargs, LIMIT))
    assert as_seen(function, again, named) == as_seen(function, args, kwargs)


def test_a_default_is_left_to_the_code_that_runs_the_job() -> None:
    assert Signature(plain).decode('{"order_id":1}') == ((), {"order_id": 1})


NO_CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (plain, (), {}, r"plain\(order_id, lang=…, dry=…\).*missing a required argument: 'order_id'"),
    (plain, (1, "a", True), {}, "too many positional arguments"),
    (plain, (1,), {"order_id": 1}, "multiple values for argument 'order_id'"),
    (plain, (1,), {"nope": 1}, "unexpected keyword argument 'nope'"),
    (plain, ("1",), {}, "plain: order_id: expected `int`, got `str`"),
    (only_positional, (), {"a": 1}, "'a'"),
    (only_positional, ("1",), {}, "a: expected `int`"),
    (mixed, (1, 2, 3, "4"), {}, r"rest\[1\]: expected `int`, got `str`"),
    (everything, (1,), {"z": "a"}, r"more\['z'\]: expected `int`, got `str`"),
    (stars, (), {"*": ONE}, "'.' cannot be an argument's name"),
    (stars, (str(ONE),), {}, r"args\[0\] is a str and would come back as a UUID"),
    (nothing, (1,), {}, r"nothing\(\) cannot be called like this"),
    (options, (), {"size": "a"}, r"kwargs\.?\[?'?size'?\]?: expected `int`"),
]


@pytest.mark.parametrize(("function", "args", "kwargs", "words"), NO_CALLS)
def test_a_call_that_does_not_fit_is_refused_in_words(function: Any, args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words):
        Signature(function).encode(args, kwargs, LIMIT)


NO_PAYLOADS = [
    ("", "not a JSON object"),
    ("{", "not a JSON object"),
    ("null", "not a JSON object"),
    ("[1]", "not a JSON object"),
    ('{"*":1}', "not a JSON object"),
    ('{"order_id":1', "not a JSON object"),
    ('{"order_id":\x00}', "not a JSON object"),
    ('{"order_id":NaN}', "not a JSON object"),
    ('{"order_id":"\ud800"}', "not a JSON object"),
    ("[" * 100_000, "not a JSON object"),
    ('{"order_id":' + "[" * 100_000, "not a JSON object"),
    ("{}", "missing a required argument: 'order_id'"),
    ('{"order_id":1,"nope":2}', "unexpected keyword argument 'nope'"),
    ('{"order_id":1,"*":[2]}', "multiple values for argument 'order_id'"),
    ('{"*":[1,"de",true]}', "too many positional"),
    ('{"*":["1"]}', "order_id: expected `int`, got `str`"),
    ('{"order_id":1.5}', "order_id: expected `int`, got `float`"),
    ('{"order_id":{"py/object":"os.system"}}', "order_id: expected `int`, got `object`"),
]


@pytest.mark.parametrize(("text", "words"), NO_PAYLOADS, ids=[text[:30] for text, _ in NO_PAYLOADS])
def test_a_payload_that_does_not_fit_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words):
        Signature(plain).decode(text)


def test_the_limit_counts_the_form_that_is_stored() -> None:
    assert Signature(only_positional).encode((1,), {}, 9) == '{"*":[1]}'
    with pytest.raises(PayloadTooLarge):
        Signature(mixed).encode((1, 2, 3, 4), {}, 10)


def test_wrapped_partial_and_bound_functions_are_read_too() -> None:
    @functools.wraps(plain)
    def wrapper(*args: Any, **kwargs: Any) -> None: ...

    class Holder:
        def method(self, a: UUID) -> None: ...

        def __call__(self, a: UUID) -> None: ...

    assert Signature(wrapper).encode((1,), {}, LIMIT) == '{"order_id":1}'
    assert Signature(functools.partial(plain, lang="fr")).encode((1,), {}, LIMIT) == '{"order_id":1}'
    assert Signature(Holder().method).decode(f'{{"a":"{ONE}"}}') == ((), {"a": ONE})
    assert Signature(Holder()).decode(f'{{"a":"{ONE}"}}') == ((), {"a": ONE})
