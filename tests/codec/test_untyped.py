"""A task named without its code takes what has one form in JSON; its own annotations give it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rota.codec import Signature, encode_untyped
from rota.errors import ArgumentsError, PayloadTooLarge

LIMIT = 1_000_000


class Colour(Enum):
    RED = "red"


@dataclass
class Item:
    price: Decimal


def task(
    id: UUID,
    when: datetime,
    item: Item,
    colour: Colour,
    ids: dict[int, str],
    tags: set[str],
    took: timedelta,
    file: Path,
    raw: bytes,
) -> None: ...


def test_the_annotations_give_back_what_was_sent_without_them() -> None:
    given = {
        "id": UUID(int=1),
        "when": datetime(2024, 1, 1, tzinfo=UTC),
        "item": Item(Decimal("1.10")),
        "colour": Colour.RED,
        "ids": {1: "a"},
        "tags": {"a"},
        "took": timedelta(seconds=1.5),
        "file": Path("/tmp/a"),
        "raw": b"\0\xff",
    }
    by_name = Signature(task).decode(encode_untyped((), given, LIMIT))
    by_position = Signature(task).decode(encode_untyped(tuple(given.values()), {}, LIMIT))
    assert by_name == by_position == ((), given)


REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((1, float("nan")), {}, "argument 2 is nan"),
    ((), {"x": {"a": [float("inf")]}}, r"x\['a'\]\[0\] is inf"),
    ((), {"x": {"when": datetime(2024, 1, 1, tzinfo=UTC), "y": float("nan")}}, r"x\['y'\] is nan"),
    (("\udc80",), {}, "argument 1 cannot be stored: .*lone surrogate"),
    ((), {"x": [object()]}, r"x\[0\] cannot be stored: it is an object"),
    ((), {"x": {float("nan"): 1}}, r"x\[key nan\] is nan"),
    ((), {"*": 1}, "cannot be an argument's name"),
    ((), {"\udc80": 1}, "cannot be stored"),
]


@pytest.mark.parametrize(("args", "kwargs", "words"), REFUSED)
def test_what_has_no_form_in_json_is_refused_with_its_path(args: Any, kwargs: Any, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words):
        encode_untyped(args, kwargs, LIMIT)


def test_the_limit_holds_without_the_code_too() -> None:
    with pytest.raises(PayloadTooLarge, match=r"weighs 110 bytes and the limit is 100"):
        encode_untyped(("a" * 100,), {}, 100)
