"""What users write for limits, what is refused when it is declared, and under which instances a job falls."""

from __future__ import annotations

import math
from contextlib import suppress
from enum import Enum, IntEnum
from functools import partial
from inspect import signature
from operator import itemgetter
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.clock import LONGEST, SECOND
from rota.errors import ArgumentsError, ConfigError
from rota.rules.instances import KEY_LIMIT, BadKey, Instance, by_name, instances_of, key_text
from rota.rules.limits import Declared, Limit, agree, in_force, limits_of
from rota.rules.sizes import Concurrency, Rate, Size, alike, read_concurrency, read_rate, read_size

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


def tenant(tenant_id: int) -> int:
    return tenant_id


# -- rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("1/s", SECOND),
        ("10/m", 6 * SECOND),
        ("10/h", 360 * SECOND),
        ("1000/day", 86_400_000),
        ("1/30s", 30 * SECOND),
        ("5/2 minutes", 24 * SECOND),
        ("1/7d", 7 * DAY),
        ("2/48h", DAY),
        ("  10 / 1 m  ", 6 * SECOND),
        ("010/01m", 6 * SECOND),
        ("1000000/s", 1),
        ("1/36500d", LONGEST),
    ],
)
def test_a_rate_is_one_start_each_interval(text: str, interval: int) -> None:
    assert read_rate(text).interval == interval


@pytest.mark.parametrize(
    ("unit", "length"),
    [
        *((unit, SECOND) for unit in ("s", "sec", "secs", "second", "seconds", "S", "Sec", "SECONDS")),
        *((unit, MINUTE) for unit in ("m", "min", "mins", "minute", "minutes", "M", "Minute", "MINUTES")),
        *((unit, HOUR) for unit in ("h", "hr", "hrs", "hour", "hours", "H", "Hour", "HOURS")),
        *((unit, DAY) for unit in ("d", "day", "days", "D", "Day", "DAYS")),
    ],
)
def test_units_are_letters_or_names_in_either_case(unit: str, length: int) -> None:
    assert read_rate(f"1/{unit}").interval == length
    assert read_rate(f"1/3{unit}").interval == read_rate(f"1/3 {unit}").interval == 3 * length


@pytest.mark.parametrize(("text", "interval"), [("3/s", 333_334), ("7/m", 8_571_429), ("999999/s", 2), ("600001/s", 2)])
def test_an_interval_is_rounded_up_so_that_a_rate_is_never_faster_than_asked(text: str, interval: int) -> None:
    assert read_rate(text).interval == interval


NO_RATE = [
    "",
    "10",
    "/m",
    "10/",
    "10/1",
    "10m",
    "m/10",
    "10//m",
    "10/m/s",
    "10 per minute",
    "ten/m",
    "10/w",
    "10/ms",
    "10/month",
    "-10/m",
    "+10/m",
    "10/-1m",
    "1.5/s",
    "1/0.5s",
    "1e3/s",
    "1,000/d",
    "1_000/d",
    "10/m!",
    "10/m\n10/s\x00",
    "\N{ARABIC-INDIC DIGIT ONE}/m",
    "10/\N{LATIN SMALL LETTER LONG S}",
    "1" * 16 + "/d",
    "1/" + "1" * 5_000 + "s",
    True,
    False,
    None,
    b"10/m",
    ("10", "m"),
    (10, 60),
    object(),
]


@pytest.mark.parametrize("given", NO_RATE, ids=lambda given: f"{given!r:.20}")
def test_nonsense_is_no_rate_and_the_words_say_what_is(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"is no rate: write how many starts in how long.*'10/m' or '1/30s'; the units are s, m"
    ):
        read_rate(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (10, r"rate=10 does not say in how long: write for example '10/m'"),
        (0.5, r"rate=0.5 does not say in how long"),
        (math.nan, r"rate=nan does not say in how long"),
        ("0/s", r"both numbers are 1 or more; to run no jobs, pause their queue"),
        ("1/0s", r"both numbers are 1 or more"),
        ("1000001/s", r"rate='1000001/s' is faster than the clock can space: the most is one start a microsecond"),
        ("999999999999999/d", r"faster than the clock can space"),
        ("1/36501d", r"longer than a century; say how many starts in a shorter one"),
        ("1/999999999999999d", r"longer than a century"),
    ],
)
def test_a_rate_that_cannot_be_kept_is_refused_with_its_reason(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_rate(given)


rates = st.builds(
    lambda starts, many, unit: f"{starts}/{many}{unit}",
    st.integers(1, 10**6),
    st.integers(1, 36_500),
    st.sampled_from(["s", "min", "Hours", " D"]),
)


@given(rates)
def test_no_window_of_a_period_holds_more_starts_than_asked_for(text: str) -> None:
    rate = read_rate(text)
    assert rate.starts * rate.interval >= rate.period
    assert (rate.interval - 1) * rate.starts < rate.period  # and no slower than that needs


@given(st.builds(Concurrency, st.integers(1, 2_147_483_647)) | rates.map(read_rate))
def test_a_size_may_be_kept_as_its_text(size: Size) -> None:
    assert read_size(f"{size}") == size


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans() | st.binary())
def test_whatever_is_written_for_a_limit_is_read_or_refused(given: Any) -> None:
    for read in (read_size, read_rate, read_concurrency, Limit):
        with suppress(ConfigError):
            read(given)


def test_rates_are_alike_by_their_interval() -> None:
    assert alike(read_rate("10/m"), read_rate("1/6 seconds"))
    assert not alike(read_rate("10/m"), read_rate("10/h"))
    assert not alike(Concurrency(2), Concurrency(3))
    assert not alike(Concurrency(2), Rate(2, SECOND))


# -- how many at once ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [1, 2, 1_000, 2_147_483_647])
def test_how_many_at_once_is_a_whole_number(given: int) -> None:
    assert read_concurrency(given) == Concurrency(given)


@pytest.mark.parametrize("given", [0, -1, 2_147_483_648, 10**400])
def test_a_number_out_of_range_is_refused(given: int) -> None:
    with pytest.raises(ConfigError, match=r"from 1 to 2147483647 jobs may run at once; to run none, pause their queue"):
        read_concurrency(given)


@pytest.mark.parametrize("given", [2.0, 1.5, math.inf, True, False, None, "2", "two", b"2", [], object()])
def test_what_is_no_whole_number_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"how many jobs may run at once is a whole number, for example 2"):
        read_concurrency(given)


def test_a_rate_given_for_how_many_at_once_is_recognised() -> None:
    with pytest.raises(ConfigError, match=r"concurrency='10/m' is a rate, not how many run at once: pass rate='10/m'"):
        read_concurrency("10/m")


@pytest.mark.parametrize(("text", "size"), [("5", Concurrency(5)), (" 5 ", Concurrency(5)), ("5/s", Rate(5, SECOND))])
def test_a_size_is_set_at_run_time_as_a_number_or_a_rate(text: str, size: Size) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["0", "-1", "5.5", "0/s", "", "many", "99999999999999"])
def test_a_size_set_at_run_time_is_refused_like_a_declared_one(text: str) -> None:
    with pytest.raises(ConfigError, match=f"size '{text}'"):
        read_size(text)


# -- declarations -------------------------------------------------------------------------------


def declared(concurrency: Any = None, rate: Any = None) -> list[tuple[str, str]]:
    return [(limit.name, f"{limit.size}") for limit in limits_of("shop.mail", concurrency, rate)]


@pytest.mark.parametrize(
    ("concurrency", "rate", "expected"),
    [
        (None, None, []),
        (2, None, [("concurrency of shop.mail", "2")]),
        (None, "10/m", [("rate of shop.mail", "10/m")]),
        (2, "10/m", [("concurrency of shop.mail", "2"), ("rate of shop.mail", "10/m")]),
        (Limit(2), Limit("10/m"), [("concurrency of shop.mail", "2"), ("rate of shop.mail", "10/m")]),
        (None, ["10/s", "1000/day"], [("rate of shop.mail", "10/s"), ("rate of shop.mail (2)", "1000/d")]),
        (None, ("10/s",), [("rate of shop.mail", "10/s")]),
        (
            [Limit(2, key=tenant), 20],
            Limit("10/s", name="partner"),
            [("concurrency of shop.mail by tenant_id", "2"), ("concurrency of shop.mail", "20"), ("partner", "10/s")],
        ),
        (
            [Limit(2, key=tenant), Limit(3, key=tenant), Limit(4, key=tenant, name="tenants")],
            None,
            [
                ("concurrency of shop.mail by tenant_id", "2"),
                ("concurrency of shop.mail by tenant_id (2)", "3"),
                ("tenants", "4"),
            ],
        ),
    ],
)
def test_what_is_declared_is_named_after_the_task_unless_it_has_a_name(concurrency: Any, rate: Any, expected: Any) -> None:
    assert declared(concurrency, rate) == expected


def whole(**arguments: object) -> object:
    return arguments["tenant_id"]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (tenant, "by tenant_id"),
        (lambda tenant_id, **_: tenant_id, "by tenant_id"),
        (lambda tenant_id, *, region="eu": (tenant_id, region), "by tenant_id, region"),
        (lambda **arguments: arguments["tenant_id"], "by key"),
        (whole, "by whole"),
        (partial(tenant), "by tenant_id"),
        (itemgetter("tenant_id"), "by key"),
    ],
)
def test_a_limit_with_a_key_is_named_by_what_the_key_goes_by(key: Any, name: str) -> None:
    if isinstance(key, itemgetter):
        try:
            limits_of("t", Limit(2, key=key))
        except ConfigError:
            return  # from Python 3.13 on its signature can be read, and it takes no name
    assert [limit.name for limit in limits_of("t", Limit(2, key=key))] == [f"concurrency of t {name}"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, r"^concurrency=0: from 1"),
        ({"concurrency": -2}, r"^concurrency=-2: from 1"),
        ({"concurrency": 2.0}, r"^concurrency=2.0: how many"),
        ({"concurrency": True}, r"^concurrency=True: how many"),
        ({"concurrency": "10/m"}, r"pass rate='10/m'"),
        ({"concurrency": Limit("10/m")}, r"pass rate='10/m'"),
        ({"concurrency": [2, "3"]}, r"^concurrency='3': how many"),
        ({"concurrency": [[2]]}, r"^concurrency=\[2\]: how many"),
        ({"concurrency": Limit}, r"how many jobs may run at once"),
        ({"concurrency": []}, r"a list of limits has one or more; leave it out for no limit"),
        ({"rate": ()}, r"a list of limits has one or more"),
        ({"rate": 10}, r"does not say in how long"),
        ({"rate": Limit(10)}, r"^rate=10 does not say in how long"),
        ({"rate": ["10/s", "often"]}, r"^rate='often' is no rate"),
        ({"rate": {"10/s": None}}, r"is no rate"),
        ({"rate": [Limit("1/s", name="x"), Limit("2/s", name="x")]}, r"task t has two limits named 'x': keep one of them"),
        ({"rate": Limit("1/s", name="x"), "concurrency": Limit(2, name="x")}, r"task t has two limits named 'x'"),
    ],
)
def test_what_cannot_be_a_limit_is_refused_when_it_is_declared(options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        limits_of("t", **options)


async def coroutine(tenant_id: int) -> int:
    return tenant_id


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Limit(0), r"^Limit\(0\): from 1"),
        (lambda: Limit(2.5), r"^Limit\(2.5\): how many"),  # type: ignore[arg-type]
        (lambda: Limit(True), r"^Limit\(True\): how many"),
        (lambda: Limit("0/s"), r"^Limit\('0/s'\): both numbers"),
        (lambda: Limit("often"), r"^Limit\('often'\) is no rate"),
        (lambda: Limit(Limit(2)), r"how many jobs may run at once"),  # type: ignore[arg-type]
        (lambda: Limit(2, key="tenant_id"), r"key='tenant_id' is no function.*key=lambda tenant_id: tenant_id"),  # type: ignore[arg-type]
        (lambda: Limit(2, key=coroutine), r"is a coroutine function: pass a plain one"),
        (lambda: Limit(2, key=lambda: 1), r"names no argument, so all jobs would have the same key"),
        (lambda: Limit(2, key=lambda *args: args[0]), r"names no argument"),
        (lambda: Limit(2, key=lambda tenant_id, /: tenant_id), r"takes 'tenant_id' by position, and arguments come by name"),
        (lambda: Limit(2, name=""), r"limit='': a limit is text of 1 to 200 characters"),
        (lambda: Limit(2, name="x" * 201), r"a limit is text of 1 to 200 characters"),
        (lambda: Limit(2, name="a\nb"), r"no control characters"),
        (lambda: Limit(2, name=7), r"a limit is text"),  # type: ignore[arg-type]
    ],
)
def test_a_limit_that_cannot_be_is_refused_when_it_is_made(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_a_key_that_asks_for_an_argument_which_is_not_there_is_refused() -> None:
    def mail(order_id: int, note: str = "") -> None: ...

    words = r"its key asks for 'tenant_id', which is no argument of task t: it has order_id, note"
    with pytest.raises(ConfigError, match=f"limit 'concurrency of t by tenant_id': {words}"):
        limits_of("t", Limit(2, key=tenant), signature=signature(mail))
    assert limits_of("t", Limit(2, key=lambda note, more=1, **_: note), signature=signature(mail))
    assert limits_of("t", Limit(2, key=tenant), signature=signature(lambda **anything: None))


# -- one name, several tasks --------------------------------------------------------------------


def shared(task: str, concurrency: Any = None, rate: Any = None) -> Declared:
    (limit,) = limits_of(task, concurrency, rate)
    return limit


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"concurrency": Limit(2, name="x")}, {"concurrency": Limit(2, name="x")}),
        ({"rate": Limit("10/m", name="x")}, {"rate": Limit("1/6s", name="x")}),
        ({"rate": Limit("1/s", name="x", key=tenant)}, {"rate": Limit("1/s", name="x", key=lambda customer: customer)}),
        ({"concurrency": 2}, {"concurrency": 3}),
    ],
)
def test_tasks_may_share_a_limit_of_one_size(one: Any, other: Any) -> None:
    agree([shared("a", **one), shared("b", **other)])


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (
            {"concurrency": Limit(2, name="x")},
            {"concurrency": Limit(3, name="x")},
            "2 at once for task a and 3 at once for task b",
        ),
        ({"rate": Limit("1/s", name="x")}, {"rate": Limit("2/s", name="x")}, "1/s for task a and 2/s for task b"),
        ({"concurrency": Limit(2, name="x")}, {"rate": Limit("2/s", name="x")}, "2 at once for task a and 2/s for task b"),
        (
            {"concurrency": Limit(2, name="x")},
            {"concurrency": Limit(2, name="x", key=tenant)},
            "2 at once for task a and 2 at once for each key for task b",
        ),
    ],
)
def test_tasks_that_disagree_on_a_limit_are_refused(one: Any, other: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"limit 'x' is {words}: make one Limit and pass it to both"):
        agree([shared("a", **one), shared("b", **other)])


def test_the_size_in_force_is_the_one_set_at_run_time_if_it_is_of_the_same_kind() -> None:
    limits = limits_of("t", 2, ["10/s", "1000/day"])
    overrides: dict[str, Size] = {"concurrency of t": Concurrency(7), "rate of t": Concurrency(1), "gone": Concurrency(1)}
    assert in_force(limits, overrides) == {
        "concurrency of t": Concurrency(7),
        "rate of t": Rate(10, SECOND),
        "rate of t (2)": Rate(1_000, DAY),
    }


# -- keys ---------------------------------------------------------------------------------------


class Plan(Enum):
    FREE = "free"


class Tier(IntEnum):
    ONE = 1


class Named(str):
    def __str__(self) -> str:
        return "no"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        (10**30, f"{10**30}"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1e300, f"{int(1e300)}"[: KEY_LIMIT - 33] + "…"),
        ("acme", '"acme"'),
        ("", '""'),
        ("Zoë 🦊", '"Zoë 🦊"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("a\0b\x7f\n", '"a\\u0000b\\x7f\\n"'),
        ("\ud800", '"\\ud800"'),
        (Named("yes"), '"yes"'),
        (Plan.FREE, '"free"'),
        (Tier.ONE, "1"),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        ((), "[]"),
        ((1, "a", None), '[1,"a",null]'),
        ([1, [2.0]], "[1,[2]]"),
    ],
)
def test_a_key_is_written_in_one_way(value: object, text: str) -> None:
    assert key_text(value).startswith(text) if text.endswith("…") else key_text(value) == text


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(keys, keys)
def test_keys_have_one_text_if_they_are_equal_and_only_then(one: object, other: object) -> None:
    assert (key_text(one) == key_text(other)) == (_typed(one) == _typed(other))


def _typed(value: object) -> object:
    """The value, so that True is not equal to 1."""
    return tuple(map(_typed, value)) if isinstance(value, tuple) else (isinstance(value, bool), value)


@given(st.text(min_size=150) | st.integers(10**190, 10**210))
def test_a_long_key_is_cut_to_what_an_index_holds_and_stays_its_own(value: Any) -> None:
    assert len(key_text(value)) <= KEY_LIMIT
    assert key_text("x" * 1_000 + f"{value}") != key_text("x" * 1_000 + f"{value}y")


def test_what_a_key_is_called_with_are_the_arguments_that_it_names() -> None:
    def mail(tenant_id: int, /, order_id: int, *more: int, lang: str = "en", **rest: int) -> None: ...

    arguments = by_name(signature(mail), (7, 42, 1, 2), {"extra": 3, "tenant_id": 9})
    assert arguments == {"tenant_id": 7, "order_id": 42, "more": (1, 2), "lang": "en", "extra": 3}
    for key, text in [
        (lambda tenant_id: tenant_id, "7"),
        (lambda lang, **_: lang, '"en"'),
        (lambda more, absent=5: (*more, absent), "[1,2,5]"),
        (lambda **everything: sorted(everything), '["extra","lang","more","order_id","tenant_id"]'),
    ]:
        (limit,) = limits_of("t", Limit(2, key=key, name="x"), signature=signature(mail))
        assert instances_of([limit], arguments) == (Instance("x", text),)


def test_arguments_that_do_not_fit_have_no_key() -> None:
    with pytest.raises(BadKey, match="the arguments do not fit the task"):
        by_name(signature(tenant), (1, 2), {})


def test_a_limit_without_a_key_has_one_instance_whatever_the_arguments() -> None:
    limits = limits_of("t", [Limit(2, key=tenant), 20], Limit("1/s", name="partner"))
    assert [f"{instance}" for instance in instances_of(limits, {"tenant_id": "acme"})] == [
        'concurrency of t by tenant_id ["acme"]',
        "concurrency of t",
        "partner",
    ]
    assert instances_of(limits[1:], {}) == (Instance("concurrency of t"), Instance("partner"))


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(error: Exception) -> Any:
    def key(tenant_id: int) -> None:
        raise error

    return key


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (raising(KeyError("plan")), r"the key of limit 'x' raised KeyError: 'plan'; mend it"),
        (raising(Awkward()), r"the key of limit 'x' raised .*Awkward"),
        (lambda tenant_id: {"a": 1}, r"the key of limit 'x' answered a dict: answer text, a finite number"),
        (lambda tenant_id: (1, {2}), r"answered a set: answer"),
        (lambda tenant_id: b"x", r"answered a bytes: answer"),
        (lambda tenant_id: object(), r"answered an object: answer"),
        (lambda tenant_id: math.nan, r"answered nan: answer"),
        (lambda tenant_id: -math.inf, r"answered -inf: answer"),
        (lambda tenant_id: 10**10_000, r"answered a number of more than 1,000 digits: answer"),
        (lambda tenant_id: loop, r"answered a list that is nested too deeply: answer"),
        (lambda tenant_id, other: other, r"raised TypeError: .*other"),
        (str, r"raised TypeError"),
    ],
)
def test_a_key_that_raises_or_answers_what_is_no_key_is_an_error_that_names_the_limit(key: Any, words: str) -> None:
    limits = limits_of("t", Limit(2, key=key, name="x"))
    with pytest.raises(BadKey, match=words) as bad:
        instances_of(limits, {"tenant_id": 7})
    assert isinstance(bad.value, ArgumentsError)


loop: list[object] = []
loop.append(loop)


def test_instances_sort_so_that_locks_are_taken_in_one_order() -> None:
    ones = [Instance("b"), Instance("a", "2"), Instance("a"), Instance("a", "1")]
    assert [f"{instance}" for instance in sorted(ones)] == ["a", "a [1]", "a [2]", "b"]
