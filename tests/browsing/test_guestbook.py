"""What people do in the guestbook, in a real browser, with real letters."""

from __future__ import annotations

from collections.abc import Iterator

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
    sign_out,
    sign_up,
)
from browsing.visits import Visits
from fresh import fresh_database
from mail.sinks import sink
from working import eventually

CONFIRM = "Confirm your address"
ALREADY = "You have an account already"
RESET = "Choose another password"
CHANGED = "Your password was changed"
LOCKED = "Your account is locked"
REFUSED = "That address and that password do not belong together"
OTHER_PASSWORD = "another walk in the woods"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guestbook, Letters]]:
    """A guestbook for all tests of this module, with a mail server."""
    folder = tmp_path_factory.mktemp("guestbook")
    with (
        fresh_database(request.param, request, folder) as database,
        sink() as server,
        serving(database, server.url(), folder) as guestbook,
    ):
        yield guestbook, Letters(server)


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """A guestbook that serves several tests keeps its connections from one to the next."""


def a_member(page: Page, url: str, letters: Letters, name: str = "Ada") -> str:
    """The address of somebody who is now signed in on this page, and may write."""
    address = newcomer()
    sign_up(page, url, address, name=name)
    confirm(page, letters.latest(address, CONFIRM))
    return address


def test_who_signs_up_and_confirms_writes_and_everybody_reads(visits: Visits, url: str, letters: Letters) -> None:
    page, other = visits.page(), visits.page()
    address = newcomer()
    sign_up(page, url, address, name="Ada & Co")
    sign_in(page, url, address)
    expect(page.get_by_role("status")).to_have_text("Welcome, Ada & Co.")
    expect(page.get_by_label("Your entry")).to_have_count(0)
    page.get_by_role("button", name="Send the letter again").click()
    expect(page.get_by_role("status")).to_have_text("The letter is on its way.")

    confirm(page, eventually(lambda: letters.to(address)[1]))
    page.get_by_label("Your entry").fill(f"<b>Good day</b> from {address}\nand good night")
    page.get_by_role("button", name="Write it").click()
    expect(page.get_by_role("status")).to_have_text("Your entry is in the guestbook.")

    other.goto(url)
    entry = other.get_by_role("article", name="Entry by Ada & Co").filter(has_text=address)
    expect(entry).to_contain_text(f"<b>Good day</b> from {address}\nand good night", use_inner_text=True)
    expect(other.get_by_label("Your entry")).to_have_count(0)
    assert letters.subjects(address) == [CONFIRM, CONFIRM]


def test_who_signs_out_is_a_stranger_until_they_sign_in(page: Page, url: str, letters: Letters) -> None:
    address = a_member(page, url, letters)
    sign_out(page)
    page.go_back()
    page.reload()
    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    sign_in(page, url, address)
    expect(page.get_by_label("Your entry")).to_be_visible()
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")


def test_nobody_learns_from_the_pages_who_has_an_account(visits: Visits, url: str, letters: Letters) -> None:
    page, stranger = visits.page(), visits.page()
    address, unknown = a_member(page, url, letters), newcomer()

    sign_up(stranger, url, address, password=OTHER_PASSWORD)
    shown = stranger.content()
    sign_up(stranger, url, newcomer(), password=OTHER_PASSWORD)
    assert stranger.content() == shown

    answers = []
    for tried in (address, unknown):
        sign_in(stranger, url, tried, OTHER_PASSWORD)
        answers.append(stranger.get_by_role("alert").inner_text())
    assert answers[0] == answers[1]
    assert answers[0].startswith(REFUSED)

    ask_for_reset(stranger, url, unknown)
    shown = stranger.content()
    ask_for_reset(stranger, url, address)
    assert stranger.content() == shown
    # Once this letter is there, all that were queued before it have come: to who has no account there was none.
    letters.latest(address, RESET)
    assert letters.subjects(address) == [CONFIRM, ALREADY, RESET]
    assert letters.subjects(unknown) == []


def test_a_forgotten_password_is_replaced_once(visits: Visits, url: str, letters: Letters) -> None:
    page, elsewhere = visits.page(), visits.page()
    address = a_member(elsewhere, url, letters)
    page.goto(f"{url}/sign-in")
    page.get_by_role("link", name="I have forgotten my password").click()
    expect(page.get_by_role("heading", name="Forgotten password")).to_be_visible()
    ask_for_reset(page, url, address)
    ask_for_reset(page, url, address)
    sign_up(page, url, address)
    letters.latest(address, ALREADY)
    [first, second] = [link(each) for each in letters.to(address) if each["Subject"] == RESET]

    page.goto(second)
    page.get_by_label("New password").fill(OTHER_PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_role("status")).to_have_text("You have another password. Sign in with it.")
    for used in (first, second):
        page.goto(used)
        expect(page.get_by_role("heading", name="This link works no longer")).to_be_visible()
    elsewhere.goto(url)
    expect(elsewhere.get_by_role("link", name="Sign in")).to_be_visible()

    sign_in(page, url, address, PASSWORD)
    expect(page.get_by_role("alert")).to_contain_text(REFUSED)
    sign_in(page, url, address, OTHER_PASSWORD)
    expect(page.get_by_label("Your entry")).to_be_visible()
    letters.latest(address, CHANGED)


def test_wrong_passwords_lock_an_account_until_its_owner_unlocks_it(visits: Visits, url: str, letters: Letters) -> None:
    page, guessing = visits.page(), visits.page()
    address = a_member(page, url, letters)
    sign_out(page)
    guessing.goto(f"{url}/sign-in")
    for number in range(6):
        say_who(guessing, address, f"the guess number {number}")
        expect(guessing.get_by_label("Password")).to_be_empty()
        expect(guessing.get_by_role("alert")).to_contain_text(REFUSED)
    sign_in(page, url, address)
    expect(page.get_by_role("alert")).to_contain_text(REFUSED)

    unlock = link(letters.latest(address, LOCKED))
    page.goto(unlock)
    page.get_by_role("button", name="Unlock my account").click()
    expect(page.get_by_role("status")).to_contain_text("Your account is unlocked.")
    page.goto(unlock)
    expect(page.get_by_role("heading", name="This link works no longer")).to_be_visible()
    sign_in(page, url, address)
    expect(page.get_by_label("Your entry")).to_be_visible()
    ask_for_reset(page, url, address)
    letters.latest(address, RESET)
    assert letters.subjects(address) == [CONFIRM, LOCKED, RESET]
