"""Whether everybody can use the guestbook's pages: as axe-core judges, on a small screen, and without a mouse."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browsing.guestbook import (
    PASSWORD,
    Guestbook,
    Letters,
    ask_for_reset,
    confirm,
    link,
    newcomer,
    say_who,
    serving,
    sign_in,
    sign_up,
)
from browsing.visits import Visits, accessible, faults
from mail.sinks import sink

NARROW = {"width": 320, "height": 640}
"""What a page has to do with when a common screen shows it four times as large."""

LANDMARKS = ("landmark-", "region")
"""What axe-core wants of a page, and a letter in a mail program needs not."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guestbook, Letters]]:
    folder = tmp_path_factory.mktemp("guestbook")
    with sink() as server, serving(f"sqlite:///{folder / 'guestbook.db'}", server.url(), folder) as guestbook:
        yield guestbook, Letters(server)


@pytest.fixture
def page(visits: Visits) -> Page:
    return visits.page(viewport=NARROW)


def usable(page: Page, heading: str) -> None:
    """Hold what is shown against what everybody needs: what axe-core knows of, and no scrolling to the side."""
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], f"{page.url} is wider than the screen"


def test_the_pages_that_anybody_reaches(page: Page, url: str) -> None:
    for path, heading in {
        "/": "Guestbook",
        "/sign-up": "Sign up",
        "/sign-up/sent": "Look into your mail",
        "/sign-in": "Sign in",
        "/resets": "Forgotten password",
        "/resets/sent": "Look into your mail",
        "/resets/none/edit": "This link works no longer",
        "/nowhere": "Not Found",
    }.items():
        page.goto(f"{url}{path}")
        usable(page, heading)


def test_a_form_that_says_what_is_wrong(page: Page, url: str) -> None:
    page.goto(f"{url}/sign-up")
    page.get_by_label("Mail address").fill("nobody")
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_label("Mail address")).to_have_accessible_description(re.compile("That is no mail address"))
    usable(page, "Sign up")


def test_the_pages_of_a_member(page: Page, url: str, served: tuple[Guestbook, Letters], letters: Letters) -> None:
    address = newcomer()
    sign_up(page, url, address, name="W" * 40)
    sign_in(page, url, address)
    usable(page, "Guestbook")
    letter = letters.latest(address, "Confirm your address")
    page.goto(link(letter))
    usable(page, "Confirm your address")
    confirm(page, letter)
    entries_of(served[0].database, 11, "W" * 1000)
    page.goto(url)
    usable(page, "Guestbook")
    page.get_by_role("link", name="Older entries").click()
    expect(page.get_by_role("article")).to_have_count(1)
    page.get_by_role("link", name="Newer entries").click()
    expect(page.get_by_role("article")).to_have_count(10)


def test_the_pages_that_letters_lead_to(page: Page, url: str, letters: Letters) -> None:
    address = newcomer()
    sign_up(page, url, address)
    ask_for_reset(page, url, address)
    page.goto(f"{url}/sign-in")
    for _ in range(5):
        say_who(page, address, "a guess that is wrong")
        expect(page.get_by_label("Password")).to_be_empty()
    usable(page, "Sign in")
    page.goto(link(letters.latest(address, "Your account is locked")))
    usable(page, "Unlock your account")
    page.goto(link(letters.latest(address, "Choose another password")))
    usable(page, "Choose another password")


def test_the_letters_themselves(visits: Visits, url: str, letters: Letters) -> None:
    address, page, mail_program = newcomer(), visits.page(), visits.page(viewport=NARROW)
    sign_up(page, url, address)
    ask_for_reset(page, url, address)
    letters.latest(address, "Choose another password")
    for letter in letters.to(address):
        html = letter.get_body(("html",))
        assert html is not None
        mail_program.set_content(html.get_content())
        assert [fault for fault in faults(mail_program, "light") if not fault.startswith(LANDMARKS)] == []


def test_somebody_without_a_mouse_signs_in(page: Page, url: str) -> None:
    address = newcomer()
    sign_up(page, url, address)
    page.goto(f"{url}/sign-in")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Mail address")).to_be_focused()
    page.keyboard.type(address)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Welcome, Ada.")


def test_the_outbox_that_shows_letters_where_there_is_no_mail_server(page: Page, tmp_path: Path) -> None:
    address = newcomer()
    with serving(f"sqlite:///{tmp_path / 'guestbook.db'}", f"file:{tmp_path / 'outbox'}", tmp_path) as guestbook:
        sign_up(page, guestbook.url, address)
        guestbook.has_said("ran deliver")
        page.get_by_role("link", name="Outbox").click()
        usable(page, "Outbox")
        expect(page.get_by_text(address)).to_be_visible()


def entries_of(database: str, number: int, text: str) -> None:
    """Have everybody write so many entries."""
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection, connection:
        for _ in range(number):
            connection.execute("insert into entries (account_id, text, written_at) select id, ?, 0 from accounts", [text])
