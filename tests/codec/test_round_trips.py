"""Any value is either refused or comes back as it was."""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rota.codec import Signature, clean, encode_untyped, failure_of, show
from rota.errors import ArgumentsError

LIMIT = 10_000_000

Scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
Data = st.recursive(
    Scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)
Odd = st.recursive(
    Scalars | st.binary() | st.decimals() | st.datetimes() | st.uuids() | st.timedeltas(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=4)
        | st.sets(st.integers() | st.text(), max_size=3)
    ),
    max_leaves=10,
)


@dataclass
class Record:
    name: str
    price: Decimal
    when: datetime
    day: date
    hour: time
    took: timedelta
    id: UUID
    raw: bytes
    tags: frozenset[str]
    pair: tuple[int, bool | None]
    counts: dict[int, list[float]]


def seen(record: Record) -> list[object]:
    """A record as a list that tells 1.0 from 1 and NaN from nothing else; sets have no order to be told by."""
    return [sorted(value) if isinstance(value, frozenset) else repr(value) for value in vars(record).values()]


def anything(x: Any, *, y: Any = None) -> None: ...
def records(x: Record, /, *more: Record, **named: list[Record]) -> None: ...


@given(Data, Data)
def test_plain_data_comes_back_exactly_or_is_refused(x: Any, y: Any) -> None:
    signature = Signature(anything)
    try:
        text = signature.encode((x,), {"y": y}, LIMIT)
    except ArgumentsError as refused:
        said = str(refused)
    else:
        said = ""
    if said:
        assert "nan" in said or "inf" in said or "surrogate" in said
        return
    _, kwargs = signature.decode(text)
    # Marshal tells 1 from True and 1.0, and 0.0 from -0.0.
    assert marshal.dumps([kwargs["x"], kwargs["y"]], 2) == marshal.dumps([x, y], 2)


@given(st.builds(Record), st.lists(st.builds(Record), max_size=2), st.builds(Record))
def test_records_come_back_equal_or_are_refused(x: Record, more: list[Record], named: Record) -> None:
    signature = Signature(records)
    try:
        text = signature.encode((x, *more), {"named": [named]}, LIMIT)
    except ArgumentsError:
        return
    args, kwargs = signature.decode(text)
    assert [seen(record) for record in (*args, *kwargs["named"])] == [seen(record) for record in (x, *more, named)]


@given(Odd)
def test_no_value_raises_anything_but_an_arguments_error(x: Any) -> None:
    for write in (Signature(anything).encode, encode_untyped):
        try:
            text = write((x,), {}, LIMIT)
        except ArgumentsError:
            continue
        Signature(anything).decode(text)


@given(st.text(st.characters()))
def test_no_payload_raises_anything_but_an_arguments_error(text: str) -> None:
    try:
        Signature(records).decode(text)
    except ArgumentsError:
        return


@given(st.text(st.characters()), st.integers(0, 200))
def test_text_is_always_safe_and_short_enough(text: str, limit: int) -> None:
    for safe in (clean(text, limit), show(text, limit)):
        safe.encode()
        assert len(safe) <= limit
        assert "\0" not in safe
    failure = failure_of(ValueError(text))
    failure.message.encode()
