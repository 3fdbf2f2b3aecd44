"""Waits between attempts: what each policy gives, what users may write for one, and what no policy can do."""

from __future__ import annotations

import doctest
import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota.rules.retry
import rota.rules.unknown
from rota.clock import LONGEST, SECOND
from rota.errors import ConfigError
from rota.rules.retry import (
    DEFAULT,
    Asked,
    BadWait,
    ByError,
    Exponential,
    Fixed,
    Never,
    Polynomial,
    RetryPolicy,
    Waits,
    never,
    policy_of,
)

ERROR = ValueError("no")


def seconds(policy: RetryPolicy, attempts: int, dice: float = 0.5) -> list[float | None]:
    waits = [policy.wait(attempt, ERROR, dice) for attempt in range(1, attempts + 1)]
    return [None if wait is None else wait / SECOND for wait in waits]


WAITS: list[tuple[RetryPolicy, list[float | None]]] = [
    (DEFAULT, [3, 18, 83, 258]),
    (Polynomial(power=2, plus=0), [1, 4, 9, 16]),
    (Polynomial(power=1.5, cap=5), [3, 2**1.5 + 2, 5, 5]),
    (Exponential(), [1, 2, 4, 8]),
    (Exponential(0.5, factor=10, cap=60), [0.5, 5, 50, 60]),
    (Exponential(0), [0, 0, 0, 0]),
    (Fixed(5), [5, 5, 5, 5]),
    (Fixed(timedelta(minutes=1)), [60, 60, 60, 60]),
    (Fixed(0), [0, 0, 0, 0]),
    (Waits((1, 5, 30)), [1, 5, 30, 30]),
    (Waits([timedelta(hours=1), 0.5]), [3600, 0.5, 0.5, 0.5]),
    (never, [None, None, None, None]),
    (Asked(lambda attempt, error: attempt * 2), [2, 4, 6, 8]),
    (Asked(lambda attempt, error: timedelta(days=1)), [86_400] * 4),
    (Asked(lambda attempt, error: None if attempt > 2 else 1), [1, 1, None, None]),
    (Asked(lambda attempt, error: 1e18), [LONGEST / SECOND] * 4),
    (Asked(lambda attempt, error: math.inf), [LONGEST / SECOND] * 4),
    (Fixed(1e18), [LONGEST / SECOND] * 4),
]


@pytest.mark.parametrize(("policy", "expected"), WAITS, ids=[str(number) for number in range(len(WAITS))])
def test_a_policy_waits_as_it_says(policy: RetryPolicy, expected: list[float | None]) -> None:
    assert seconds(policy, 4) == pytest.approx(expected)


GROWING = [
    Polynomial(),
    Polynomial(power=1e6),
    Polynomial(power=1000.5, cap=1e18),
    Polynomial(power=10, jitter=1.0),
    Exponential(2, factor=10),
    Exponential(1e-9, factor=2, cap=1e18),
    Exponential(1, factor=1e308),
    Exponential(1, factor=10**400),
    Exponential(2, factor=10, jitter=1),
    Fixed(1e-9),
    Waits([1e-12, 1, 2]),
]


@pytest.mark.parametrize("policy", GROWING, ids=repr)
@pytest.mark.parametrize("dice", [0.0, 0.999999])
def test_waits_never_shrink_never_vanish_and_never_overflow(policy: RetryPolicy, dice: float) -> None:
    waits = [policy.wait(attempt, ERROR, dice) for attempt in range(1, 5_001)]
    assert all(wait is not None and 0 < wait <= LONGEST for wait in waits)
    assert waits == sorted(waits)  # type: ignore[type-var]


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1), st.integers(1, 5_000))
def test_jitter_spreads_either_way_by_its_share_and_not_beyond_the_cap(dice: float, jitter: float, attempt: int) -> None:
    plain = Exponential().wait(attempt, ERROR, dice)
    spread = Exponential(jitter=jitter).wait(attempt, ERROR, dice)
    assert plain * (1 - jitter) - 1 <= spread <= min(plain * (1 + jitter) + 1, 3_600 * SECOND)


def test_jitter_reaches_both_ends() -> None:
    assert seconds(Fixed(10, jitter=0.2), 1, dice=0.0) == [8]
    assert seconds(Fixed(10, jitter=0.2), 1, dice=0.5) == [10]
    assert seconds(Fixed(10, jitter=0.2), 1, dice=0.999999) == pytest.approx([12], abs=0.001)


def test_the_nearest_class_of_the_error_decides() -> None:
    class Busy(TimeoutError): ...

    class Both(Busy, KeyError): ...

    policy = ByError({Exception: 1, OSError: Fixed(2), TimeoutError: 3, KeyError: never}, otherwise=None)
    for error, expected in [
        (Busy(), 3),
        (OSError(), 2),
        (FileNotFoundError(), 2),
        (ValueError(), 1),
        (KeyError(), None),
        (Both(), 3),
        (SystemExit(), None),
    ]:
        wait = policy.wait(1, error, 0.5)
        assert wait == (None if expected is None else expected * SECOND), error


def test_errors_that_no_case_names_wait_as_by_default() -> None:
    assert ByError({TimeoutError: 5}).wait(2, ERROR, 0.5) == 18 * SECOND


class Nasty(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raising(attempt: int, error: BaseException) -> float:
    raise Nasty


@pytest.mark.parametrize("answer", ["abc", math.nan, -5, -1e18, timedelta(-1), True, False, [1], 1j, object()])
def test_a_function_that_answers_nonsense_leaves_the_default_wait(answer: Any) -> None:
    with pytest.raises(BadWait, match="gave no usable wait") as bad:
        Asked(lambda attempt, error: answer).wait(2, ERROR, 0.5)
    assert bad.value.fallback == 18 * SECOND


def test_a_function_that_raises_leaves_the_default_wait() -> None:
    with pytest.raises(BadWait, match=r"the retry function raising gave no usable wait .*Nasty") as bad:
        policy_of({ValueError: raising}).wait(1, ERROR, 0.5)
    assert bad.value.fallback == 3 * SECOND


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, never),
        (False, never),
        (True, Polynomial()),
        (5, Fixed(5)),
        (0.5, Fixed(0.5)),
        (timedelta(1), Fixed(timedelta(1))),
        ([1, 5], Waits((1, 5))),
        ((1,), Waits((1,))),
        ({TimeoutError: 5, ValueError: None}, ByError({TimeoutError: Fixed(5), ValueError: Never()})),
        (raising, Asked(raising)),
        (Exponential(jitter=0.1), Exponential(jitter=0.1)),
    ],
)
def test_what_a_user_writes_means_a_policy(given: Any, expected: Any) -> None:
    assert policy_of(given) == expected


async def coroutine(attempt: int, error: BaseException) -> float:
    return 1


BAD: list[Any] = [
    "5",
    b"5",
    -1,
    math.nan,
    [],
    [1, -1],
    [1, "a"],
    [None],
    {"ValueError": 5},
    {int: 5},
    {ValueError: "a"},
    {ValueError: [-1]},
    timedelta(-1),
    object(),
    {1, 2},
    Exponential,
    TimeoutError,
    coroutine,
    lambda: 1,
    lambda attempt: 1,
]


@pytest.mark.parametrize("given", BAD)
def test_what_cannot_be_a_policy_is_refused_when_it_is_declared(given: Any) -> None:
    with pytest.raises(ConfigError):
        policy_of(given)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Polynomial(power=-1),
        lambda: Polynomial(jitter=2),
        lambda: Polynomial(jitter=math.nan),
        lambda: Polynomial(cap=math.nan),
        lambda: Polynomial(plus="2"),  # type: ignore[arg-type]
        lambda: Exponential(-1),
        lambda: Exponential(factor=0.5),
        lambda: Exponential(factor=math.nan),
        lambda: Exponential(cap=-1),
        lambda: Exponential(jitter=True),
        lambda: Fixed(-1),
        lambda: Fixed(1, jitter=-0.1),
        lambda: Waits(()),
        lambda: Waits("15"),  # type: ignore[arg-type]
        lambda: Waits([1], jitter=1.5),
        lambda: ByError({ValueError: "x"}),
        lambda: ByError({}, otherwise="x"),
    ],
)
def test_a_policy_with_impossible_numbers_is_refused_when_it_is_declared(declare: Any) -> None:
    with pytest.raises(ConfigError):
        declare()


@pytest.mark.parametrize("module", [rota.rules.retry, rota.rules.unknown], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0
