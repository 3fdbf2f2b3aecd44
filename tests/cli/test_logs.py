"""What a worker logs: lines that are cheap, whole, and never an error."""

from __future__ import annotations

import io
import json
import logging
import threading
import time

import pytest

from rota.cli.logs import Writer, json_line, json_lines, text_lines
from rota.events import Event, Kind


def record(message: object = "%s", *args: object, level: int = logging.INFO, event: Event | None = None) -> logging.LogRecord:
    made = logging.LogRecord("rota", level, __file__, 1, message, args, None)
    if event is not None:
        made.rota = event
    return made


def event(kind: Kind, reason: str | None = None, wait: int | None = None) -> Event:
    took = 0 if kind in (Kind.LOST, Kind.RELEASED) else 1_500
    return Event(kind, "0198c0de-0000-7000-8000-0000009f3a61", "shop.greet", "mail", 2, 5, took, wait, reason)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (event(Kind.SUCCEEDED), "ran shop.greet  [9f3a61, 1.5 ms, attempt 2]"),
        (
            event(Kind.AGAIN, "no", 3_000_000),
            "failed shop.greet on attempt 2: no  [9f3a61, 1.5 ms, attempt 2 of 5, again in 3 s]",
        ),
        (event(Kind.FAILED, "no"), "failed shop.greet on attempt 2: no  [9f3a61, 1.5 ms, attempt 2 of 5, given up]"),
        (event(Kind.SNOOZED, wait=60_000_000), "snoozed shop.greet for 60 s  [9f3a61, 1.5 ms]"),
        (event(Kind.RELEASED, "bye"), "handed back shop.greet: bye  [9f3a61]"),
        (
            event(Kind.LOST, "worker w was lost; queued again"),
            "lost shop.greet on attempt 2: worker w was lost; queued again  [9f3a61]",
        ),
    ],
)
def test_each_outcome_has_its_line(told: Event, line: str) -> None:
    assert text_lines(coloured=False)(record(str(told), event=told))[9:] == line


def test_one_of_several_processes_says_who_it_is() -> None:
    told = event(Kind.RELEASED, "bye")
    line = text_lines(coloured=False, process="front-1\u202e")(record(str(told), event=told))
    assert line[8:] == " [front-1\\u202e] handed back shop.greet: bye  [9f3a61]"
    assert json.loads(json_lines("front-1")(record(str(told), event=told)))["process"] == "front-1"
    assert "process" not in json.loads(json_lines()(record(str(told), event=told)))


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(
    "reason", ["plain", "two\nlines", "\x1b[2J", "\0", "\ud800", "\u202e", "\u2028", "日本語", "x" * 100_000]
)
def test_any_reason_is_one_line(kind: Kind, reason: str) -> None:
    told = event(kind, reason)
    text = text_lines(coloured=False)(record(str(told), event=told))
    assert "\n" not in text
    assert not {"\x1b", "\u202e", "\u2028"} & set(text)
    line = json_line(record(str(told), event=told))
    assert "\n" not in line
    assert "\u202e" not in line
    told_reason = json.loads(line)["reason"]
    assert (json.loads(line)["event"], told_reason) == (kind, reason if reason != "\ud800" else "\\ud800")


def test_a_line_is_coloured_by_its_level() -> None:
    line = text_lines(coloured=True)
    assert "\x1b[31m" in line(record("x", level=logging.ERROR))
    assert "\x1b" not in line(record("x"))


def test_a_trace_is_told() -> None:
    try:
        raise ValueError("it broke")
    except ValueError as error:
        made = logging.LogRecord(
            "rota", logging.ERROR, __file__, 1, "met an error", (), (type(error), error, error.__traceback__)
        )
    assert "ValueError: it broke" in text_lines(coloured=False)(made)
    assert "ValueError: it broke" in json.loads(json_line(made))["trace"]


def written(stream: io.TextIOBase, *records: logging.LogRecord) -> None:
    writer = Writer(stream, text_lines(coloured=False))  # type: ignore[arg-type]
    for each in records:
        writer.handle(each)
    writer.end()


def test_lines_come_in_order_and_all_of_them() -> None:
    stream = io.StringIO()
    written(stream, *(record("line %d", number) for number in range(5_000)))
    assert [int(line.split()[-1]) for line in stream.getvalue().splitlines()] == list(range(5_000))


def test_a_record_that_does_not_fit_its_text_is_told_of() -> None:
    stream = io.StringIO()
    written(stream, record("%d", "x"), record("after"))
    assert "cannot be written" in stream.getvalue()
    assert "after" in stream.getvalue()


def test_what_the_encoding_lacks_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii", errors="strict", write_through=True)
    written(stream, record("é日"), record("after"))
    assert b"\\xe9\\u65e5" in raw.getvalue()
    assert b"after" in raw.getvalue()


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_stream_that_is_gone_is_no_error() -> None:
    written(Broken(), record("one"), record("two"))


class Stuck(io.StringIO):
    """Takes no line until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait(20)
        return super().write(text)


def test_a_stream_that_is_stuck_holds_nobody_up_and_what_was_dropped_is_counted() -> None:
    stream = Stuck()
    writer = Writer(stream, lambda made: str(made.msg))
    began = time.monotonic()
    for number in range(60_000):
        writer.emit(record(number))
    assert time.monotonic() - began < 10
    stream.free.set()
    writer.end()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "0"
    assert any("lines were not written" in line for line in lines)
