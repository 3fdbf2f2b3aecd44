"""The guestbook over an empty database, a mail server, and visitors who use its pages as browsers do."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from time import time
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from examples.guestbook.app import create_app
from examples.guestbook.guestbook import Guestbook
from examples.guestbook.settings import Settings
from fresh import fresh_database
from mail.sinks import Sink

URL = "http://guestbook.example"
ADA = {"name": "Ada", "email": "ada@example.org", "password": "correct horse battery"}


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time() + self.ahead


class Site:
    """A guestbook, whose letters arrive when they are asked for."""

    def __init__(self, database: str, mail: str, sink: Sink | None = None, **settings: Any) -> None:
        self.clock = Clock()
        told = {"database": database, "mail": mail, "url": URL, "secret": "a secret of tests", "clock": self.clock} | settings
        self.book = Guestbook.of(Settings(**told))
        self.web = create_app(self.book)
        self._sink = sink

    def visitor(self, address: str = "192.0.2.1") -> Visitor:
        client = self.web.test_client()
        client.environ_base["REMOTE_ADDR"] = address
        return Visitor(client)

    def letters(self) -> list[EmailMessage]:
        """All that have arrived, once what is queued was sent."""
        assert self._sink is not None
        events = self.book.jobs.drain(["mail"])
        assert {str(event) for event in events} <= {"ran deliver"}
        return [message_from_bytes(each.content or b"", policy=policy.default) for each in self._sink.letters]  # type: ignore[misc,arg-type]

    def letter(self) -> EmailMessage:
        """The last of them."""
        return self.letters()[-1]

    def ada(self) -> Visitor:
        """Ada, who has signed up, confirmed her address and is signed in."""
        ada = self.visitor()
        ada.send("/sign-up", **ADA)
        ada.send(path_in(self.letter()), password=ADA["password"])
        return ada


class Visitor:
    """Somebody with a browser, who fills in the forms that pages have."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def see(self, path: str) -> str:
        return shown(self.client.get(path))

    def send(self, path: str, on: str | None = None, **fields: str) -> TestResponse:
        """Send the form of the page `on`, or of the same path, and follow where that leads."""
        token = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', self.client.get(on or path).text)
        assert token is not None, f"{on or path} has no form"
        answer = self.client.post(path, data={**fields, "csrf_token": token[1]})
        return self.client.get(answer.location) if answer.status_code == 303 else answer


def shown(answer: TestResponse) -> str:
    """What a page says, without its markup."""
    main = re.search(r"<main.*</main>", answer.text, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main[0] if main else answer.text)).split())


def path_in(letter: EmailMessage, word: str = "") -> str:
    """The path of the first link in a letter's text that has the word in it."""
    return links_in(text_of(letter), word)[0].removeprefix(URL)


def links_in(text: str, word: str = "") -> list[str]:
    return [link for link in re.findall(rf"{URL}/[\w./-]*", text) if word in link]


def text_of(letter: EmailMessage, kind: str = "plain") -> str:
    part = letter.get_body((kind,))
    assert part is not None
    return str(part.get_content())


MakeSite = Callable[..., Site]


@pytest.fixture
def sink() -> Iterator[Sink]:
    sink = Sink()
    yield sink
    sink.close()


@pytest.fixture
def make_site(tmp_path: Path, sink: Sink) -> Iterator[MakeSite]:
    """Makes sites, on the same SQLite file and mail server where nothing else is said."""
    with ExitStack() as made:

        def make(**settings: Any) -> Site:
            told = {"database": f"sqlite:///{tmp_path / 'guestbook.db'}", "mail": sink.url(), "sink": sink} | settings
            site = Site(**told)
            made.callback(site.book.close)
            return site

        yield make


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site()


@pytest.fixture(params=["sqlite", "postgres"])
def any_site(request: pytest.FixtureRequest, tmp_path: Path, make_site: MakeSite) -> Iterator[Site]:
    """The guestbook on each kind of database."""
    with fresh_database(request.param, request, tmp_path) as url:
        site = make_site(database=url)
        yield site
        site.book.close()
