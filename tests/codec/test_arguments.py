"""Arguments come back as they were, or are refused with their path."""

# ruff: noqa: DTZ001, DTZ901, UP045 - naive datetimes and Optional are what is tested

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from rota.codec import Signature
from rota.errors import ArgumentsError, ConfigError, PayloadTooLarge

LIMIT = 1_000_000
BERLIN = ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = "red"


class Lang(StrEnum):
    DE = "de"


class Level(IntEnum):
    LOW = 1


@dataclass
class Item:
    price: Decimal
    tags: tuple[str, ...] = ()


@dataclass
class Order:
    items: list[Item]
    note: str = field(default="", compare=False)


@dataclass(eq=False)
class Incomparable:
    x: int


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict, total=False):
    id: int
    when: datetime


class Plain:
    """A class that JSON knows nothing of."""


def taking(annotation: Any) -> Signature:
    def task(x): ...  # type: ignore[no-untyped-def]

    task.__annotations__["x"] = annotation
    return Signature(task)


def round_trip(annotation: Any, value: Any) -> Any:
    signature = taking(annotation)
    args, kwargs = signature.decode(signature.encode((value,), {}, LIMIT))
    assert args == ()
    return kwargs["x"]


EXACT = [
    (int, 2**70),
    (int, -(2**63) - 1),
    (Any, 2**70),
    (Any, "a\x00b"),
    (Any, {"k\x00": ["\x00"]}),
    (str, "ā🙂\u202e\u2028"),
    (float, -0.0),
    (float, 1e308),
    (float, 5e-324),
    (Any, [1, 1.0, True, None, {"a": [[]]}]),
    (object, {"a": 1}),
    (dict[str, object], {"a": [1, {"b": None}], "c": "d"}),
    (list[object], []),
    (bytes, b"\x00\xff"),
    (datetime, datetime(2024, 10, 27, 2, 30, 0, 1)),
    (datetime, datetime(2024, 10, 27, 2, 30, tzinfo=UTC)),
    (datetime, datetime.max),
    (date, date(2024, 2, 29)),
    (time, time(1, 2, 3, 4)),
    (time, time(1, 2, tzinfo=UTC)),
    (timedelta, timedelta(days=-1, microseconds=3)),
    (timedelta, timedelta.max),
    (timedelta, timedelta.min),
    (UUID, UUID(int=5)),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("NaN")),
    (Decimal, Decimal("sNaN")),
    (Decimal, Decimal("-Infinity")),
    (Colour, Colour.RED),
    (Lang, Lang.DE),
    (Level, Level.LOW),
    (Order, Order([Item(Decimal("1.0"), ("a",))], "note")),
    (Incomparable, Incomparable(1)),
    (Point, Point(1.5)),
    (Pair, Pair(1, "r")),
    (Row, {"id": 1, "when": datetime(2024, 1, 1)}),
    (set[int], {1, 2}),
    (set[Lang], {Lang.DE}),
    (frozenset[str], frozenset("ab")),
    (tuple[int, str], (1, "a")),
    (tuple[UUID, ...], (UUID(int=1), UUID(int=2))),
    (dict[int, str], {1: "a"}),
    (dict[date, list[UUID]], {date(2024, 1, 1): [UUID(int=1)]}),
    (dict[Lang, int], {Lang.DE: 1}),
    (int | None, None),
    (Optional[UUID], UUID(int=1)),
    (int | str, "a"),
    (Literal["a", "b"], "b"),
    (Annotated[int, msgspec.Meta(ge=0)], 3),
    (Sequence[int], [1, 2]),
    (Mapping[str, int], {"a": 1}),
    (Path, Path("/tmp/x")),
    (list[Path], [Path("a"), Path("b")]),
]


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, Decimal):
        return str(one) == str(other)
    if isinstance(one, Incomparable):
        return one.x == other.x
    return bool(one == other)


@pytest.mark.parametrize(("annotation", "value"), EXACT, ids=[str(n) for n in range(len(EXACT))])
def test_a_value_comes_back_equal_and_of_the_same_type(annotation: Any, value: Any) -> None:
    back = round_trip(annotation, value)
    assert type(back) is type(value)
    assert alike(value, back)


LOSSY_BUT_DOCUMENTED = [
    (Any, (1, (2, 3)), [1, [2, 3]]),
    (Any, {"a": (1,)}, {"a": [1]}),
    (Sequence[int], (1, 2), [1, 2]),
    (float, 3, 3.0),
    (list[float], [1, 2.5], [1.0, 2.5]),
    (bytes, bytearray(b"a"), b"a"),
    (list[bytes], [memoryview(b"a")], [b"a"]),
]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"), LOSSY_BUT_DOCUMENTED, ids=[str(n) for n in range(len(LOSSY_BUT_DOCUMENTED))]
)
def test_tuples_become_lists_and_ints_floats_where_the_annotation_says_so(annotation: Any, value: Any, expected: Any) -> None:
    assert round_trip(annotation, value) == expected


@pytest.mark.parametrize("fold", [0, 1])
def test_a_zoned_datetime_comes_back_as_the_same_moment(fold: int) -> None:
    given = datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=BERLIN)
    back = round_trip(datetime, given)
    assert back.timestamp() == given.timestamp()
    assert back.utcoffset() == given.utcoffset()


NAN, INF = float("nan"), float("inf")
CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(5_000):
    DEEP = [DEEP]


REFUSED = [
    (Any, NAN, "x is nan"),
    (float, INF, "x is inf"),
    (Any, {"a": 1.0, "b": NAN, "c": [INF]}, r"x\['b'\] is nan"),
    (dict[str, list[float]], {"c": [1.0, -INF]}, r"x\['c'\]\[1\]"),
    (float | None, NAN, "x is nan"),
    (Order, Order([Item(Decimal(1)), Item(None)]), r"x\.items\[1\]\.price: expected `decimal`, got `null`"),  # type: ignore[arg-type]
    (dict[str, dict[str, int]], {"a": {"b": 1}, "c": {"d": 2, "e": "?"}}, r"x\['c'\]\['e'\]: expected `int`, got `str`"),
    (dict[str, dict[int, int]], {"a": {"1": 1}, "c": {"2": 2, "e": 3}}, r"x\['c'\]\['e'\]: key expected `int`, got `str`"),
    (Any, datetime(2024, 1, 1), "x is a datetime and would come back as a str: annotate the parameter"),
    (Any, [UUID(int=1)], r"x\[0\] is a UUID and would come back as a str"),
    (Any, Decimal("1.1"), "x is a Decimal"),
    (Any, b"a", "x is a bytes"),
    (dict[str, object], {"a": b"a"}, r"x\['a'\] is a bytes and would come back as a str"),
    (Any, {1, 2}, "x is a set and would come back as a list"),
    (Any, frozenset(), "x is a frozenset"),
    (Any, Colour.RED, "annotate the parameter with Colour"),
    (Any, Lang.DE, "x is a Lang and would come back as a str"),
    (str, Lang.DE, "x is a Lang"),
    (int, Level.LOW, "x is a Level"),
    (Any, {Lang.DE: 1}, "x"),
    (Any, {1: "a"}, r"x .*dict\[int"),
    (dict, {1: "a"}, "annotate"),
    (dict[int, str], {"1": "a"}, "keys"),
    (Any, {1: "a", "1": "b"}, "x"),
    (Any, Order([]), "x is an Order and would come back as a dict: annotate"),
    (Any, Point(1.0), "x is a Point"),
    (Any, Pair(1, "a"), "annotate the parameter with Pair"),
    (Any, OrderedDict(a=1), "pass a plain dict"),
    (dict[str, int], defaultdict(int, a=1), "pass a plain dict"),
    (tuple[int, ...], [1], "x is a list and would come back as a tuple: pass a tuple"),
    (frozenset[int], {1}, "pass a frozenset"),
    (datetime, "2024-01-01T00:00:00", "x is a str and would come back as a datetime: pass a datetime"),
    (Decimal, 1.5, "x is a float"),
    (Decimal, 1, "x is an int"),
    (float, 2**53 + 1, "x is an int"),
    (datetime, datetime(2024, 10, 27, 2, 30, fold=1), "x is datetime"),
    (datetime, datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1, seconds=30))), "x is datetime"),
    (list[datetime], [datetime(1800, 1, 1, tzinfo=BERLIN)], r"x\[0\]"),
    (time, time(1, 2, fold=1), "x is"),
    (time, time(1, 2, tzinfo=BERLIN), "x is"),
    (Any, "\udc80", "x cannot be stored: .*lone surrogate"),
    (Any, {"a": ["ok", {"b": "\ud800"}]}, r"x\['a'\]\[1\]\['b'\] cannot be stored"),
    (Any, {"\udc80": 1}, r"x\[key "),
    (Path, Path("/tmp/\udc80"), "x cannot be stored"),
    (Any, Path("/tmp"), "x is a PosixPath and would come back as a str"),
    (Any, threading.Lock(), "x cannot be stored: it is a lock"),
    (Any, [1, {"a": Plain()}], r"x\[1\]\['a'\] cannot be stored: it is a Plain"),
    (Any, 1j, "complex"),
    (Any, range(3), "range"),
    (Any, object(), "x cannot be stored"),
    (Any, int, "x cannot be stored"),
    (Any, (n for n in [1]), "generator"),
    (str, type("SafeString", (str,), {})("a"), "pass a plain str"),
    (Any, 10**5000, "x cannot be stored"),
    (Any, CYCLE, "nested too deeply or contains itself"),
    (Any, DEEP, "nested too deeply"),
    (Any, {None: 1}, r"x\[key None\]"),
    (Any, {(1, 2): 1}, r"x\[key \(1, 2\)\]"),
    (int, "5", "x: expected `int`, got `str`; pass what the annotation says"),
    (int, True, "x: expected `int`, got `bool`"),
    (str, None, "x: expected `str`, got `null`"),
    (Colour, "blue", "x"),
    (Annotated[int, msgspec.Meta(ge=0)], -1, "x: expected `int` >= 0"),
]


@pytest.mark.parametrize(("annotation", "value", "words"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_would_not_come_back_is_refused_with_its_path(annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words) as refused:
        taking(annotation).encode((value,), {}, LIMIT)
    assert "task: x" in str(refused.value)


CANNOT_BE_CARRIED = [Plain, list[Plain], Callable[[], None], Iterator[int], Path | str, complex, "NotDefinedAnywhere", "1 +"]


@pytest.mark.parametrize("annotation", CANNOT_BE_CARRIED)
def test_a_parameter_that_no_payload_can_carry_is_named(annotation: Any) -> None:
    signature = taking(annotation)
    with pytest.raises(ConfigError, match="'x'"):
        signature.check()
    with pytest.raises(ArgumentsError, match="'x'"):
        signature.encode((1,), {}, LIMIT)


def test_annotations_may_name_what_is_defined_after_the_signature_is_made() -> None:
    signature = taking("Later")
    globals()["Later"] = int
    try:
        signature.check()
        assert signature.encode((1,), {}, LIMIT) == '{"x":1}'
    finally:
        del globals()["Later"]


def test_a_payload_over_the_limit_is_refused_with_both_sizes() -> None:
    signature = taking(str)
    assert len(signature.encode(("a" * 92,), {}, 100)) == 100
    with pytest.raises(PayloadTooLarge, match=r"weighs 101 bytes and the limit is 100.*reference"):
        signature.encode(("a" * 93,), {}, 100)


def test_the_limit_counts_bytes_not_characters() -> None:
    with pytest.raises(PayloadTooLarge):
        taking(str).encode(("🙂" * 30,), {}, 100)


def test_a_payload_of_sixteen_megabytes_comes_back_whole() -> None:
    text = "ab\x00" * 5_000_000
    signature = taking(str)
    assert signature.decode(signature.encode((text,), {}, 2**30)) == ((), {"x": text})


def test_a_value_whose_own_code_raises_is_refused() -> None:
    class Odd(Plain):
        def __repr__(self) -> str:
            raise RuntimeError

    @dataclass
    class Picky:
        x: int

        def __post_init__(self) -> None:
            if self.x > 1:
                raise KeyError("too large")

    with pytest.raises(ArgumentsError, match="malformed"):
        taking(Any).encode((msgspec.Raw(b"xx"),), {}, LIMIT)
    with pytest.raises(ArgumentsError, match="it is an Odd"):
        taking(Any).encode((Odd(),), {}, LIMIT)
    with pytest.raises(ArgumentsError, match="too large"):
        taking(Picky).decode('{"x":{"x":2}}')
