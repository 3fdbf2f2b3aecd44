"""The guestbook in a process of its own, the letters that it sends, and what its visitors do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from itertools import count
from pathlib import Path

from playwright.sync_api import Page, expect

from mail.sinks import Sink
from working import eventually

REPOSITORY = Path(__file__).parents[2]
PASSWORD = "a long walk by the sea"
_numbers = count(1)


class Guestbook:
    """The guestbook, started by its one command, on a database. It is found at the same address however often it starts."""

    def __init__(self, database: str, mail: str, folder: Path) -> None:
        self.database = database
        self.mail = mail
        self._folder = folder
        self._said = folder / "said.txt"
        self._port = "0"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        told = {
            "GUESTBOOK_DATABASE": self.database,
            "GUESTBOOK_SMTP": self.mail,
            "GUESTBOOK_SECRET": "kept over starts",
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONUNBUFFERED": "1",
        }
        before = self.said
        with self._said.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "examples.guestbook", "--port", self._port],
                cwd=self._folder,
                env=os.environ | told,
                stdout=output,
                stderr=output,
            )
        found = eventually(lambda: self._ended() or re.search(r"(http://127\.0\.0\.1:(\d+)) ", self.said[len(before) :]))
        assert isinstance(found, re.Match), f"the guestbook did not start: {self.said}"
        self.url, self._port = found[1], found[2]

    @property
    def said(self) -> str:
        return self._said.read_text() if self._said.exists() else ""

    def has_said(self, text: str) -> None:
        eventually(lambda: text in self.said or self._ended())
        assert text in self.said

    def kill(self) -> None:
        """End it without a word to anyone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        print(f"-- the guestbook\n{self.said}")  # shown where a test fails

    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


@contextmanager
def serving(database: str, mail: str, folder: Path) -> Iterator[Guestbook]:
    guestbook = Guestbook(database, mail, folder)
    try:
        guestbook.start()
        yield guestbook
    finally:
        guestbook.close()


class Letters:
    """The letters that a mail server was given."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def to(self, address: str) -> list[EmailMessage]:
        """Those to this address, in the order in which they came."""
        return [_read(each.content) for each in list(self._sink.letters) if address in each.rcpt_tos]

    def subjects(self, address: str) -> list[str]:
        return [str(letter["Subject"]) for letter in self.to(address)]

    def latest(self, address: str, subject: str) -> EmailMessage:
        """The last letter to this address with this subject, as soon as there is one."""
        return eventually(lambda: [letter for letter in self.to(address) if letter["Subject"] == subject], within=40.0)[-1]


def link(letter: EmailMessage) -> str:
    """Where a letter leads: the same in its text and in its HTML."""
    text, html = (letter.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    found = re.search(r"^https?://\S+", text.get_content(), re.MULTILINE)
    assert found is not None
    assert f'href="{found[0]}"' in html.get_content()
    return found[0]


def newcomer() -> str:
    """A mail address that nobody has used."""
    return f"visitor-{os.getpid()}-{next(_numbers)}@example.org"


def sign_up(page: Page, url: str, address: str, *, name: str = "Ada", password: str = PASSWORD) -> None:
    page.goto(f"{url}/sign-up")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Mail address").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()


def confirm(page: Page, letter: EmailMessage, password: str = PASSWORD) -> None:
    page.goto(link(letter))
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Confirm and sign in").click()
    expect(page.get_by_role("status")).to_have_text("Your address is confirmed. Welcome!")


def sign_in(page: Page, url: str, address: str, password: str = PASSWORD) -> None:
    """Try to. What comes of it is for the caller to tell."""
    page.goto(f"{url}/sign-in")
    say_who(page, address, password)


def say_who(page: Page, address: str, password: str) -> None:
    page.get_by_label("Mail address").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")


def ask_for_reset(page: Page, url: str, address: str) -> None:
    page.goto(f"{url}/resets")
    page.get_by_label("Mail address").fill(address)
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("heading", name="Look into your mail")).to_be_visible()


def _read(content: bytes | str | None) -> EmailMessage:
    assert isinstance(content, bytes)
    return message_from_bytes(content, policy=policy.default)
