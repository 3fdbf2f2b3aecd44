"""What a worker logs, written to the standard error stream: lines for people, or one JSON object a line.

Lines are made where they are logged and written by a thread of their own, many at once, so that neither a slow terminal
nor a stream that is gone can hold up a job. Beyond a bound, lines are dropped and counted.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

import msgspec

from rota.clock import SECOND
from rota.codec.text import escape, json_visible, one_line, visible
from rota.context import running_job
from rota.events import Event, Kind

Line = Callable[[logging.LogRecord], str]
_TOGETHER = 0.02
"""Seconds that lines wait for others while many are written."""
_MOST = 50_000
"""Lines that may wait to be written."""
_PATIENCE = 2.0
"""Seconds that the end waits for what is still to be written."""


@contextmanager
def writing_logs(level: str, form: str, process: str | None = None) -> Iterator[logging.Logger]:
    """Write what is logged meanwhile. Other loggers are written too, unless the app's code says where they go.

    Where several processes write to the same stream, `process` is what this one's lines call it.
    """
    log = logging.getLogger("rota")
    stream = sys.stderr or io.StringIO()  # there is none where it was closed before the start
    writer = Writer(stream, json_lines(process) if form == "json" else text_lines(_colours(stream), process))
    log.setLevel(level.upper())
    log.addHandler(writer)
    log.propagate = False
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(writer)
        root.setLevel(level.upper())
    try:
        yield log
    finally:
        log.removeHandler(writer)
        root.removeHandler(writer)
        log.propagate = True
        writer.end()


class Writer(logging.Handler):
    """Writes lines to a stream from a thread of its own. Never raises, and never waits for the stream."""

    def __init__(self, stream: TextIO, line: Line) -> None:
        super().__init__()
        self._stream = stream
        self._line = line
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._some = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._write_all, name="rota-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._lines) >= _MOST:
            self._dropped += 1
            return
        try:
            line = self._line(record)
        except Exception as error:  # noqa: BLE001  # a record whose arguments do not fit its text
            line = f"{record.name}: a line that cannot be written ({type(error).__name__}): {visible(repr(record.msg))}"
        self._lines.append(line)
        if not self._some.is_set():
            self._some.set()

    def close(self) -> None:
        """Nothing ends here: where an app's code, or Django, sets up logging, `logging.config` closes all handlers before."""

    def end(self) -> None:
        """Write what is left, but do not wait for ever."""
        self._closing = True
        self._some.set()
        self._thread.join(_PATIENCE)
        super().close()

    def _write_all(self) -> None:
        while True:
            self._some.wait()
            self._some.clear()
            self._write(self._taken())
            if self._closing and not self._lines:
                return
            if not self._closing:
                time.sleep(_TOGETHER)

    def _taken(self) -> list[str]:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if self._dropped:
            lines.append(f"({self._dropped} lines were not written: the stream was too slow)")
            self._dropped = 0
        return lines

    def _write(self, lines: list[str]) -> None:
        text = "\n".join([*lines, ""])
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeError:  # a stream that was made strict
            self._write([line.encode("ascii", "backslashreplace").decode() for line in lines])
        except (OSError, ValueError):
            pass  # nobody reads any more; the work goes on


# -- lines for people ---------------------------------------------------------------------------

_COLOURS = {logging.DEBUG: "2", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "1;31"}


def text_lines(coloured: bool, process: str | None = None) -> Line:
    """Lines such as `12:00:00 ran greet  [9f3a61 3.1 ms]`; the short id is the end of the job's.

    With a process `12:00:00 [front-1] ran greet  [9f3a61 3.1 ms]`.
    """
    clock = _Clock()
    by = "" if process is None else f" [{one_line(process)}]"

    def line(record: logging.LogRecord) -> str:
        event = getattr(record, "rota", None)
        said = _event_text(event) if isinstance(event, Event) else _text(record)
        colour = _COLOURS.get(record.levelno) if coloured else None
        shown = said if colour is None else f"\x1b[{colour}m{said}\x1b[0m"
        return f"{clock.time(record.created)}{by} {shown}"

    return line


def _event_text(event: Event) -> str:
    facts = [event.id[-6:]]
    if event.took or event.kind is Kind.SUCCEEDED:
        facts.append(f"{event.took / 1000:.1f} ms" if event.took < SECOND else f"{event.took / SECOND:.2f} s")
    if event.max_attempts and event.kind in (Kind.AGAIN, Kind.FAILED):
        facts.append(f"attempt {event.attempt} of {event.max_attempts}")
    elif event.attempt > 1 and event.kind is Kind.SUCCEEDED:
        facts.append(f"attempt {event.attempt}")
    if event.kind is Kind.AGAIN:
        facts.append(f"again in {(event.wait or 0) / SECOND:g} s")
    elif event.kind is Kind.FAILED:
        facts.append("no more attempts" if event.attempt >= event.max_attempts else "given up")
    return f"{one_line(str(event))}  [{', '.join(facts)}]"


def _text(record: logging.LogRecord) -> str:
    said = visible(record.getMessage())
    if not record.name.startswith("rota"):
        said = f"{record.name}: {said}"
    if record.levelno >= logging.WARNING:
        said = f"{record.levelname.lower()}: {said}"
    if (job := running_job()) is not None:
        said = f"{said}  [{job.id[-6:]}]"
    trace = _trace(record)
    return visible(f"{said}\n{trace}").rstrip() if trace else said


class _Clock:
    """The time of day, put together once a second."""

    def __init__(self) -> None:
        self._said = (0, "")

    def time(self, created: float) -> str:
        second, text = self._said
        if int(created) != second:
            text = time.strftime("%H:%M:%S", time.localtime(created))
            self._said = (int(created), text)
        return text


# -- lines for programs -------------------------------------------------------------------------


def json_lines(process: str | None = None) -> Line:
    """One object a line, with the `process` and its `pid` in it, where that is given."""
    return json_line if process is None else lambda record: json_line(record, process)


def json_line(record: logging.LogRecord, process: str | None = None) -> str:
    """One object: `at`, `level` and `message`, and every field of an outcome's `Event` (spans in seconds)."""
    told: dict[str, object] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
    }
    if process is not None:
        told |= {"process": process, "pid": os.getpid()}
    event = getattr(record, "rota", None)
    if isinstance(event, Event):
        told |= {
            "message": str(event),
            "event": event.kind,
            "id": event.id,
            "task": event.task,
            "queue": event.queue,
            "attempt": event.attempt,
            "max_attempts": event.max_attempts,
            "took": event.took / SECOND,
            "wait": None if event.wait is None else event.wait / SECOND,
            "reason": event.reason,
        }
    else:
        told |= {"message": record.getMessage(), "logger": record.name}
        if (job := running_job()) is not None:
            told |= {"id": job.id, "task": job.task, "queue": job.queue, "attempt": job.attempt, "worker": job.worker}
        if trace := _trace(record):
            told["trace"] = trace
    return json_visible(_encode(told))


def _encode(told: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(told).decode()
    except UnicodeEncodeError:  # lone surrogates, which no JSON can hold
        return msgspec.json.encode({k: escape(v) if isinstance(v, str) else v for k, v in told.items()}).decode()


def _trace(record: logging.LogRecord) -> str:
    """Empty where there is none. A record of an isolated body's has it as text alone."""
    return logging.Formatter().formatException(record.exc_info) if record.exc_info else record.exc_text or ""


def _colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"
