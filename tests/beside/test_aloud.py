"""What a worker beside a program writes depends on what the program has said of its log, at any time."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from rota import events
from rota.aloud import Aloud
from rota.events import Event, Kind

log = logging.getLogger("rota")


@contextmanager
def program() -> Iterator[io.StringIO]:
    """The standard error stream of a program that has set up no logging, as pytest does before each test's body."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, root.handlers = root.handlers, []
    try:
        with redirect_stderr(stream):
            yield stream
    finally:
        root.handlers = handlers


def ran(task: str = "deliver") -> None:
    events.tell([Event(Kind.SUCCEEDED, "id", task, "mail", 1, 5)])


def test_outcomes_and_warnings_are_written_and_nothing_else() -> None:
    with program() as stream:
        aloud = Aloud()
        aloud.begin()
        ran()
        log.info("a worker says hello")
        log.warning("the store is away")
        events.tell([Event(Kind.FAILED, "id", "deliver", "mail", 5, 5, reason="it\nbroke \x1b[31m")])
        aloud.end()
        ran("later")
        assert stream.getvalue().splitlines() == [
            "rota: ran deliver",
            "rota: the store is away",
            "rota: failed deliver on attempt 5: it broke \\x1b[31m",
        ]


def test_of_several_the_first_that_is_left_writes() -> None:
    with program() as stream:
        one, other = Aloud(), Aloud()
        one.begin()
        other.begin()
        ran("twice")
        one.end()
        ran("once")
        other.end()
        assert stream.getvalue().splitlines() == ["rota: ran twice", "rota: ran once"]
        assert (log.level, log.filters) == (logging.NOTSET, [])


def test_a_program_that_sets_up_logging_later_hears_of_it_by_its_own_level() -> None:
    with program() as stream:
        aloud = Aloud()
        aloud.begin()
        own = io.StringIO()
        handler = logging.StreamHandler(own)
        logging.getLogger().addHandler(handler)
        ran("quietly")  # its level is WARNING
        log.warning("the store is away")
        aloud.end()
        assert stream.getvalue() == ""
        assert own.getvalue() == "the store is away\n"


def test_a_level_that_the_program_has_set_stays() -> None:
    with program() as stream:
        log.setLevel(logging.ERROR)
        try:
            aloud = Aloud()
            aloud.begin()
            ran()
            aloud.end()
            assert (stream.getvalue(), log.level) == ("", logging.ERROR)
        finally:
            log.setLevel(logging.NOTSET)


def test_a_stream_that_is_gone_harms_nobody() -> None:
    with program() as stream:
        aloud = Aloud()
        aloud.begin()
        stream.close()
        ran()
        with redirect_stderr(None):
            ran()
        aloud.end()
