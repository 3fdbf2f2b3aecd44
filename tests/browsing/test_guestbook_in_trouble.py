"""Letters of the guestbook while the mail server hangs or is down, and when the guestbook itself is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browsing.guestbook import Guestbook, Letters, confirm, newcomer, sign_up
from fresh import fresh_database
from mail.sinks import HANG, free_port, odd, sink
from rota import Rota, State
from working import eventually

CONFIRM = "Confirm your address"

Serve = Callable[[str], Guestbook]


@pytest.fixture(params=["sqlite", "postgres"])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Serve]:
    """Starts a guestbook whose mail goes to this URL."""
    with ExitStack() as until_the_end:
        database = until_the_end.enter_context(fresh_database(request.param, request, tmp_path))

        def start(mail: str) -> Guestbook:
            guestbook = Guestbook(database, mail, tmp_path)
            until_the_end.callback(guestbook.close)
            guestbook.start()
            return guestbook

        yield start


def test_who_signs_up_is_answered_while_the_mail_server_hangs(serve: Serve, page: Page) -> None:
    first, second = newcomer(), newcomer()
    going_on = threading.Event()
    with odd(hold=going_on) as server:
        guestbook = serve(server.url)
        sign_up(page, guestbook.url, first)
        assert server.holding.acquire(timeout=20.0)
        # From here on the server keeps the worker waiting for its answer to the first letter.
        sign_up(page, guestbook.url, second)
        assert (server.letters, server.open, guestbook.said.count("ran deliver")) == ([], 1, 0)
        going_on.set()
        eventually(lambda: len(server.letters) == 2)
        assert [letter.recipients for letter in server.letters] == [(first,), (second,)]
        guestbook.close()


def test_letters_queued_while_the_mail_server_is_down_go_out_when_it_is_back(serve: Serve, page: Page) -> None:
    address, port = newcomer(), free_port()
    guestbook = serve(f"smtp://127.0.0.1:{port}")
    sign_up(page, guestbook.url, address)
    guestbook.has_said("failed deliver on attempt 1: ")
    with sink(port=port) as server:
        confirm(page, Letters(server).latest(address, CONFIRM))
        assert Letters(server).subjects(address) == [CONFIRM]
        guestbook.close()


def test_a_guestbook_that_is_killed_loses_no_letter(serve: Serve, page: Page) -> None:
    sent, queued = newcomer(), newcomer()
    with odd({"greeting": HANG}) as silent:
        guestbook = serve(silent.url)
        sign_up(page, guestbook.url, sent)
        eventually(lambda: silent.connections == 1)  # the worker is in the midst of sending the first letter
        sign_up(page, guestbook.url, queued)
        guestbook.kill()
    let_the_lease_run_out(guestbook.database)
    with sink() as server:
        letters = Letters(server)
        guestbook.mail = server.url()
        guestbook.start()
        for address in (sent, queued):
            confirm(page, letters.latest(address, CONFIRM))
            expect(page.get_by_label("Your entry")).to_be_visible()
            assert letters.subjects(address) == [CONFIRM]
        guestbook.close()


def let_the_lease_run_out(database: str) -> None:
    """What a worker had in hand is taken back as it will be in a minute."""
    with Rota(database, clock=lambda: datetime.now(UTC) + timedelta(minutes=2)) as app:
        app.run_one(queues=["none"])
        assert app.stats().states[State.RUNNING] == 0
