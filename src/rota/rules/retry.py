"""How long a failed job waits before its next attempt, or that it gets none.

A policy takes the number of the attempt that failed (from 1), the error, and chance as a number (0 <= dice < 1); it answers
microseconds, or `None` for no further attempt. No wait is longer than its cap, nor than a century.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Protocol

from rota.clock import LONGEST, SECOND, Micros, span
from rota.codec import clean, failure_of
from rota.errors import ConfigError, RotaError

Span = float | timedelta
Wait = Callable[[int, BaseException], Span | None]
"""A function of the user's: seconds or a `timedelta` before the next attempt, or `None` for none."""

MONTH = 30 * 86_400.0


class RetryPolicy(Protocol):
    """What every policy here can do."""

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros | None:
        """How long until the next attempt after this one failed so; `None`: there is none. May raise `BadWait`."""


class BadWait(RotaError):
    """The user's own function gave no usable wait; the job waits for `fallback` instead, as by the default policy."""

    def __init__(self, message: str, fallback: Micros) -> None:
        super().__init__(message)
        self.fallback = fallback


@dataclass(frozen=True)
class Polynomial:
    """`attempt ** power + plus` seconds: by default 3, 18, 83, 258.

    The guide's wait, which is that of Rails' `polynomially_longer` without its jitter. `jitter=0.2` spreads by 20 % either way.

    >>> [Polynomial().wait(attempt, ValueError(), 0.5) // 1_000_000 for attempt in (1, 2, 3, 4)]
    [3, 18, 83, 258]
    """

    _: KW_ONLY
    power: float = 4
    plus: float = 2
    jitter: float = 0.0
    cap: float = MONTH

    def __post_init__(self) -> None:
        _check("Polynomial", power=self.power, plus=self.plus, cap=self.cap)
        _check_jitter("Polynomial", self.jitter)

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros:
        try:
            seconds = max(1, attempt) ** self.power + self.plus
        except OverflowError:
            seconds = self.cap
        return _spread(seconds, self.jitter, dice, self.cap)


@dataclass(frozen=True)
class Exponential:
    """`base * factor ** (attempt - 1)` seconds, at most `cap`: by default 1, 2, 4, 8, … up to an hour.

    >>> [Exponential(factor=10).wait(attempt, ValueError(), 0.5) // 1_000_000 for attempt in (1, 2, 3, 4, 5)]
    [1, 10, 100, 1000, 3600]
    """

    base: float = 1.0
    _: KW_ONLY
    factor: float = 2.0
    cap: float = 3600.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _check("Exponential", base=self.base, cap=self.cap)
        _check_jitter("Exponential", self.jitter)
        if isinstance(self.factor, bool) or not isinstance(self.factor, int | float) or not self.factor >= 1:
            raise ConfigError(f"Exponential(factor={self.factor!r}): waits must not shrink, so factor is 1 or more")

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros:
        try:
            seconds = self.base * float(self.factor) ** (max(1, attempt) - 1)
        except OverflowError:
            seconds = self.cap if self.base else 0.0
        return _spread(seconds, self.jitter, dice, self.cap)


@dataclass(frozen=True)
class Fixed:
    """The same wait every time, in seconds or as a `timedelta`.

    >>> Fixed(5).wait(1, ValueError(), 0.5)
    5000000
    """

    seconds: Span
    _: KW_ONLY
    jitter: float = 0.0

    def __post_init__(self) -> None:
        span(self.seconds, "Fixed: seconds")
        _check_jitter("Fixed", self.jitter)

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros:
        return _spread(_seconds(self.seconds), self.jitter, dice)


@dataclass(frozen=True)
class Waits:
    """These waits one after the other; the last repeats.

    >>> [Waits((1, 5, 30)).wait(attempt, ValueError(), 0.5) // 1_000_000 for attempt in (1, 2, 3, 4)]
    [1, 5, 30, 30]
    """

    seconds: Sequence[Span]
    _: KW_ONLY
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.seconds, str) or not isinstance(self.seconds, Sequence) or not self.seconds:
            raise ConfigError(f"Waits({self.seconds!r}): pass one wait or more, for example Waits((1, 5, 30))")
        object.__setattr__(self, "seconds", tuple(self.seconds))
        for index, seconds in enumerate(self.seconds):
            span(seconds, f"Waits: seconds[{index}]")
        _check_jitter("Waits", self.jitter)

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros:
        return _spread(_seconds(self.seconds[min(max(1, attempt), len(self.seconds)) - 1]), self.jitter, dice)


@dataclass(frozen=True)
class Never:
    """No further attempt."""

    def wait(self, attempt: int, error: BaseException, dice: float) -> None:
        return None


never = Never()


@dataclass(frozen=True)
class ByError:
    """A policy by the class of the error: the nearest among the error's own classes decides.

    >>> policy = ByError({OSError: Fixed(60), TimeoutError: Fixed(5), ValueError: never})
    >>> policy.wait(1, TimeoutError(), 0.5), policy.wait(1, ValueError(), 0.5), policy.wait(1, KeyError(), 0.5)
    (5000000, None, 3000000)
    """

    cases: Mapping[type[BaseException], object]
    otherwise: object = field(default_factory=Polynomial)

    def __post_init__(self) -> None:
        policies = {}
        for kind, given in self.cases.items():
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise ConfigError(f"retry: {kind!r} is no exception class: a dict's keys name the errors, {{TimeoutError: 5}}")
            policies[kind] = policy_of(given)
        object.__setattr__(self, "cases", policies)
        object.__setattr__(self, "otherwise", policy_of(self.otherwise))

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros | None:
        policy = next((self.cases[kind] for kind in type(error).__mro__ if kind in self.cases), self.otherwise)
        return policy.wait(attempt, error, dice)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class Asked:
    """A function of the user's decides. What it answers is not trusted: see `BadWait`.

    >>> Asked(lambda attempt, error: 10 * attempt).wait(3, ValueError(), 0.5)
    30000000
    """

    function: Wait

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.function):
            raise ConfigError(f"retry={self.function!r} is a coroutine function: pass a plain one")
        try:
            inspect.signature(self.function).bind(1, ValueError())
        except TypeError as error:
            raise ConfigError(f"retry={self.function!r} cannot be called with (attempt, error): {error}") from error
        except ValueError:
            return  # written in C, with no signature to be read

    def wait(self, attempt: int, error: BaseException, dice: float) -> Micros | None:
        try:
            answer = self.function(attempt, error)
            return None if answer is None else span(answer, "its answer")
        except Exception as problem:
            failure = failure_of(problem)
            raise BadWait(
                f"the retry function {getattr(self.function, '__qualname__', 'given')} gave no usable wait "
                f"({failure.type}: {clean(failure.message, 300)}); the default policy's wait is taken",
                fallback=Polynomial().wait(attempt, error, dice),
            ) from problem


def policy_of(given: object) -> RetryPolicy:
    """The policy meant by what is given as `retry=`.

    A policy, a number of seconds or a `timedelta`, a list of them, a dict by class of exceptions, a function of
    `(attempt, error)`, `None` or `False` for no retries, `True` for the default. Raises `ConfigError` for anything else.

    >>> policy_of([1, 5, 30])
    Waits(seconds=(1, 5, 30), jitter=0.0)
    """
    match given:
        case Polynomial() | Exponential() | Fixed() | Waits() | Never() | ByError() | Asked():
            return given
        case None | False:
            return never
        case True:
            return DEFAULT
        case int() | float() | timedelta():
            return Fixed(given)
        case list() | tuple():
            return Waits(given)
        case Mapping():
            return ByError(given)
        case type():
            raise ConfigError(f"retry={given.__qualname__} is a class: pass an instance, or {{Error: 5}} for a wait by error")
        case _ if callable(given):
            return Asked(given)
    raise ConfigError(
        f"retry={given!r} is no retry policy: pass a policy, seconds, a list of seconds, a dict by exception class, "
        "a function of (attempt, error), or None for no retries"
    )


def _spread(seconds: float, jitter: float, dice: float, cap: float = LONGEST / SECOND) -> Micros:
    """The wait spread by `jitter` either way, never beyond the cap, and never nothing where it was something."""
    if seconds <= 0:
        return 0
    spread = min(seconds, cap) * (1 + jitter * (2 * dice - 1))
    return max(1, min(span(spread, "wait"), span(cap, "cap")))


def _seconds(length: Span) -> float:
    return length.total_seconds() if isinstance(length, timedelta) else length


def _check(policy: str, **numbers: float) -> None:
    for name, number in numbers.items():
        span(number, f"{policy}: {name}")


def _check_jitter(policy: str, jitter: float) -> None:
    if isinstance(jitter, bool) or not isinstance(jitter, int | float) or not 0 <= jitter <= 1:
        raise ConfigError(f"{policy}(jitter={jitter!r}): pass a share from 0 to 1; 0.2 spreads waits by 20 % either way")


DEFAULT: RetryPolicy = Polynomial()
"""The wait of every task that says nothing else."""
