"""Whatever an exception does, its record can be stored, shown and read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from rota.codec import clean, failure_of
from rota.codec.failures import MESSAGE, TRACE
from rota.model import Failure


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def safe(failure: Failure) -> bool:
    text = failure.type + failure.message + failure.trace
    text.encode()
    return "\0" not in text and len(failure.message) <= MESSAGE and len(failure.trace) <= TRACE and len(failure.type) <= 200


class TwoArguments(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)


class NoStr(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class ExitingStr(Exception):
    def __str__(self) -> str:
        sys.exit(3)


class WrongStr(Exception):
    def __str__(self) -> Any:
        return 5


class Shouting(str):
    def __str__(self) -> str:
        return self

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError


class ShoutingStr(Exception):
    def __str__(self) -> str:
        return Shouting("loud")


class NoCause(Exception):
    __cause__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class NoNotes(Exception):
    __notes__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class Nameless(type):
    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


def renamed() -> Exception:
    kind = type("Kind", (Exception,), {"__module__": "m"})
    kind.__qualname__ = "Bad\0\udc80Ärger"
    return kind()


def below(error: BaseException) -> BaseException:
    """The error as seen by the one that the test calls: without the test's own frame."""
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)


def noted(*notes: Any) -> Exception:
    error = ValueError("noted")
    error.__notes__ = list(notes)
    return error


def looped() -> BaseException:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return raised(one)


def chained(length: int) -> BaseException:
    error: BaseException = ValueError("first")
    for number in range(length):
        following = ValueError(f"then {number}")
        following.__cause__ = error
        error = following
    return raised(error)


def grouped(width: int, depth: int) -> BaseException:
    if depth == 0:
        return raised(ValueError("leaf\0"))
    return raised(BaseExceptionGroup("group", [grouped(width, depth - 1) for _ in range(width)]))


def deep(levels: int) -> BaseException:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(levels + 1_000)

    def descend(left: int) -> None:
        if left == 0:
            raise ValueError("bottom")
        descend(left - 1)

    try:
        descend(levels)
    except ValueError as error:
        return error
    finally:
        sys.setrecursionlimit(limit)
    raise AssertionError


def endless() -> BaseException:
    def recurse() -> None:
        recurse()

    try:
        recurse()
    except RecursionError as error:
        return error
    raise AssertionError


CASES: list[tuple[str, Any, str]] = [
    ("a NUL", lambda: ValueError("a\x00b"), "a\\x00b"),
    ("lone surrogates", lambda: ValueError("\udc80 \ud800"), "\\udc80 \\ud800"),
    ("terminal escapes", lambda: ValueError("\x1b[31mred\x9b"), "\\x1b[31mred\\x9b"),
    ("line ends and tabs", lambda: ValueError("a\r\n\tb"), "a\r\n\tb"),
    ("text of any script", lambda: ValueError("ā 🙂 \u202e"), "ā 🙂 \u202e"),
    ("no arguments", ValueError, ""),
    ("two arguments", lambda: TwoArguments(1, 2), "1"),
    ("a lock", lambda: ValueError(threading.Lock()), "<unlocked _thread.lock"),
    ("a str that raises", NoStr, "<its message cannot be shown: str() raised RuntimeError>"),
    ("a str that exits", ExitingStr, "<its message cannot be shown: str() raised SystemExit>"),
    ("a str that is none", WrongStr, "<its message cannot be shown: str() raised TypeError>"),
    ("a str of its own kind", ShoutingStr, "loud"),
    ("a cause that raises", NoCause, ""),
    ("notes that raise", NoNotes, ""),
    ("exit", lambda: SystemExit(0), "0"),
    ("interrupt", KeyboardInterrupt, ""),
    ("an undecodable name", lambda: FileNotFoundError(2, "none", os.fsdecode(b"a\xff")), "[Errno 2] none: 'a\\udcff'"),
    ("a type named with NUL", renamed, ""),
    ("a type that hides its module", Nameless("Hidden", (Exception,), {}), ""),
    ("notes of any kind", lambda: noted("a\0", 5, NoStr()), "noted"),
    ("looped causes", looped, "one"),
    ("long causes", lambda: chained(1_000), "then 999"),
    ("a group", lambda: grouped(2, 1), "group (2 sub-exceptions)"),
    ("groups in groups", lambda: grouped(1, 100), "group (1 sub-exception)"),
    ("wide groups", lambda: grouped(12, 3), "group (12 sub-exceptions)"),
    ("a deep stack", lambda: deep(3_000), "bottom"),
    ("endless recursion", endless, "maximum recursion depth exceeded"),
    ("a huge message", lambda: RuntimeError("x" * 20_000_000), "x" * 1_000),
    ("a huge message of NULs", lambda: RuntimeError("\0" * 20_000_000), "\\x00" * 400),
    ("a huge argument", lambda: KeyError("x" * 20_000_000), "'" + "x" * 1_000),
]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such order"), "no such order"),
        (KeyError("order"), "KeyError: 'order'"),
        (SystemExit(0), "SystemExit: 0"),
        (SystemExit("bye"), "SystemExit: bye"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
    ids=repr,
)
def test_a_reason_has_the_type_where_the_message_alone_says_nothing(error: BaseException, reason: str) -> None:
    assert failure_of(error).reason == reason


@pytest.mark.parametrize(("make", "message"), [(make, message) for _, make, message in CASES], ids=[name for name, *_ in CASES])
def test_a_failure_is_safe_to_store_and_says_what_was_wrong(make: Any, message: str) -> None:
    error = raised(make())
    began = time.perf_counter()
    failure = failure_of(error)
    took = time.perf_counter() - began
    assert safe(failure)
    assert failure.message.startswith(message)
    assert failure.type
    # A share of what it takes a person to notice; what is meant to be caught takes minutes or memory.
    assert took < 1


def test_the_type_is_named_with_its_module() -> None:
    assert failure_of(ValueError()).type == "ValueError"
    assert failure_of(TwoArguments(1, 2)).type == f"{__name__}.TwoArguments"
    assert failure_of(renamed()).type == "m.Bad\\x00\\udc80Ärger"


def test_a_cut_message_says_how_much_is_missing() -> None:
    failure = failure_of(raised(RuntimeError("x" * 20_000_000)))
    kept = failure.message.count("x")
    assert failure.message.endswith(f"… ({20_000_000 - kept:,} characters cut)")
    assert failure.trace.count("x" * 100) < 50


def test_a_deep_stack_keeps_both_its_ends() -> None:
    trace = failure_of(deep(3_000)).trace
    assert "in deep" in trace
    assert "raise ValueError" in trace
    assert "frames left out" in trace
    assert trace.endswith("ValueError: bottom")


def test_a_long_trace_is_cut_in_its_middle() -> None:
    error = raised(ValueError("first " + "a" * 5_000))
    for number in range(20):
        error = raised(_caused_by(ValueError(f"number {number} " + "b" * 5_000), error))
    trace = failure_of(error).trace
    assert len(trace) <= TRACE
    assert "characters cut" in trace
    assert "number 19" in trace


def test_causes_are_told_eldest_first_with_their_links() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError("outer") from inner
    except ValueError as error:
        trace = failure_of(error).trace
    assert trace.index("KeyError: 'inner'") < trace.index("direct cause") < trace.index("ValueError: outer")


def test_a_context_that_was_suppressed_is_left_out() -> None:
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None
    except ValueError as error:
        trace = failure_of(error).trace
    assert "KeyError" not in trace


def test_no_local_variable_is_shown() -> None:
    def task() -> None:
        password = "hunter" + "2"
        raise ValueError(len(password))

    with pytest.raises(ValueError, match="7") as caught:
        task()
    assert "hunter2" not in failure_of(caught.value).trace


def test_own_frames_at_the_head_are_left_out_and_those_below_stay() -> None:
    library: dict[str, Any] = {"__name__": "rota.attempt"}
    exec(compile("def run(body):\n    body()", "/lib/rota/attempt.py", "exec"), library)

    def task() -> None:
        library["run"](lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError) as caught:
        library["run"](task)
    trace = failure_of(below(caught.value)).trace
    assert trace.count("/lib/rota/attempt.py") == 1
    assert trace.splitlines()[1].endswith("in task")


def test_a_failure_within_rota_alone_keeps_its_frames() -> None:
    library: dict[str, Any] = {"__name__": "rota.attempt"}
    exec(compile("def run():\n    1 / 0", "/lib/rota/attempt.py", "exec"), library)
    with pytest.raises(ZeroDivisionError) as caught:
        library["run"]()
    assert "/lib/rota/attempt.py" in failure_of(below(caught.value)).trace


def test_an_ascii_locale_changes_nothing() -> None:
    code = (
        "from rota.codec import failure_of, show\n"
        "try:\n    raise ValueError('🙂 ā \\udc80 \\u202e')\n"
        "except ValueError as error:\n    failure = failure_of(error)\n"
        "assert failure.message == '🙂 ā \\\\udc80 \\u202e', ascii(failure.message)\n"
        "assert failure.trace.endswith(failure.message)\n"
        'print(ascii(show(\'{"a":"🙂"}\')))\n'
    )
    ascii_only = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", "exec(bytes.fromhex('" + code.encode().hex() + "').decode())"],
        env=os.environ | ascii_only,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == "\"a='\\U0001f642'\"\n"


@pytest.mark.parametrize("character", ["x", "\0", "\udc80", "é"])
@pytest.mark.parametrize("limit", [0, 1, 10, 50, 500])
@pytest.mark.parametrize("length", [0, 1, 49, 50, 51, 10_000])
def test_cleaned_text_never_exceeds_its_limit(character: str, limit: int, length: int) -> None:
    text = clean(character * length, limit)
    text.encode()
    assert len(text) <= limit
    if limit == 500 and length == 10_000:
        kept = text.count({"\0": "\\x00", "\udc80": "\\udc80"}.get(character, character))
        assert kept > 0
        assert f"({10_000 - kept:,} characters cut)" in text


def _caused_by(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error
