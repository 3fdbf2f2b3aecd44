"""What people come for: signing up, writing, a password that was forgotten, and an account that is locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.guestbook.accounts import TRIES

from .conftest import ADA, MakeSite, Site, path_in, shown, text_of

NEW = "a quite different one"


def test_somebody_signs_up_confirms_their_address_and_writes(any_site: Site) -> None:
    ada = any_site.visitor()
    assert "Look into your mail" in shown(ada.send("/sign-up", **ADA))
    letter = any_site.letter()
    assert letter["To"] == "ada@example.org"
    assert "Your address is confirmed" in shown(ada.send(path_in(letter), password=ADA["password"]))
    ada.send("/", text="Good evening.\nIt is raining.")
    assert "Good evening. It is raining. Ada" in any_site.visitor().see("/")


def test_a_signed_in_account_writes_nothing_until_it_is_confirmed(site: Site) -> None:
    ada = site.visitor()
    ada.send("/sign-up", **ADA)
    page = shown(ada.send("/sign-in", email=ADA["email"], password=ADA["password"]))
    assert "You can write once you have followed the link" in page
    assert ada.send("/", text="too early").status_code == 403
    assert "The letter is on its way" in shown(ada.send("/confirm", on="/"))
    ada.send(path_in(site.letters()[1]), password=ADA["password"])
    assert "in the guestbook" in shown(ada.send("/", text="Now I can"))


def test_who_signs_out_is_signed_out(site: Site) -> None:
    ada = site.ada()
    assert "You are signed out" in shown(ada.send("/sign-out", on="/"))
    assert "Sign up" in ada.see("/")
    assert "Welcome, Ada" in shown(ada.send("/sign-in", email=" ADA@Example.org ", password=ADA["password"]))


def test_a_copy_of_a_cookie_is_worth_nothing_after_its_owner_has_signed_out(site: Site) -> None:
    ada, thief = site.ada(), site.visitor()
    name = ada.client.application.config["SESSION_COOKIE_NAME"]
    copied = ada.client.get_cookie(name)
    assert copied is not None
    thief.client.set_cookie(name, copied.value)
    assert "Sign up" not in thief.see("/")
    ada.send("/sign-out", on="/")
    assert "Sign up" in thief.see("/")


def test_a_forgotten_password_is_replaced_through_a_link_that_works_once(any_site: Site) -> None:
    elsewhere = any_site.ada()
    ada = any_site.visitor()
    ada.send("/resets", email=ADA["email"])
    link = path_in(any_site.letter(), "resets")
    assert "Sign in with it" in shown(ada.send(link, password=NEW))
    assert "Your password was changed" in any_site.letter()["Subject"]
    assert "do not belong together" in shown(ada.send("/sign-in", email=ADA["email"], password=ADA["password"]))
    assert "Welcome, Ada" in shown(ada.send("/sign-in", email=ADA["email"], password=NEW))
    assert "This link works no longer" in ada.see(link)
    assert "Sign up" in elsewhere.see("/"), "a session goes on with a password that was replaced"


def test_the_links_of_two_requests_end_with_the_first_that_is_used(site: Site) -> None:
    site.ada()
    visitor = site.visitor()
    for _ in range(2):
        visitor.send("/resets", email=ADA["email"])
    first, second = (path_in(letter, "resets") for letter in site.letters()[-2:])
    visitor.send(second, password=NEW)
    assert visitor.client.get(first).status_code == 410


def test_too_many_wrong_passwords_lock_an_account_until_its_owner_unlocks_it(any_site: Site) -> None:
    any_site.ada()
    stranger, ada = any_site.visitor(), any_site.visitor()
    for number in range(TRIES):
        stranger.send("/sign-in", email=ADA["email"], password=f"a guess, number {number}")
    letter = any_site.letter()
    assert letter["Subject"] == "Your account is locked"
    assert "or the account is locked" in shown(ada.send("/sign-in", email=ADA["email"], password=ADA["password"]))
    assert "is unlocked" in shown(ada.send(path_in(letter, "unlock")))
    assert "Welcome, Ada" in shown(ada.send("/sign-in", email=ADA["email"], password=ADA["password"]))
    assert ada.client.get(path_in(letter, "unlock")).status_code == 410


def test_a_right_password_forgets_the_wrong_ones_before_it(site: Site) -> None:
    site.ada()
    visitor = site.visitor()
    for _ in range(2):
        for _ in range(TRIES - 1):
            visitor.send("/sign-in", email=ADA["email"], password="a wrong one")
        assert "Welcome, Ada" in shown(visitor.send("/sign-in", email=ADA["email"], password=ADA["password"]))
    assert [letter["Subject"] for letter in site.letters()] == ["Confirm your address"]


def test_another_password_unlocks_the_account_too(site: Site) -> None:
    site.ada()
    visitor = site.visitor()
    for _ in range(TRIES):
        visitor.send("/sign-in", email=ADA["email"], password="a wrong one")
    visitor.send("/resets", email=ADA["email"])
    visitor.send(path_in(site.letter(), "resets"), password=NEW)
    assert "Welcome, Ada" in shown(visitor.send("/sign-in", email=ADA["email"], password=NEW))


def test_a_link_works_for_as_long_as_its_letter_says(site: Site) -> None:
    site.visitor().send("/sign-up", **ADA)
    site.visitor().send("/resets", email=ADA["email"])
    confirm, reset = (path_in(letter) for letter in site.letters())
    visitor = site.visitor()
    site.clock.ahead = 59 * 60
    assert visitor.client.get(reset).status_code == 200
    site.clock.ahead = 61 * 60
    assert visitor.client.get(reset).status_code == 410
    site.clock.ahead = 71 * 3600
    assert visitor.client.get(confirm).status_code == 200
    site.clock.ahead = 73 * 3600
    assert visitor.client.get(confirm).status_code == 410


def test_entries_have_pages_of_ten(site: Site) -> None:
    ada = site.ada()
    for number in range(1, 13):
        ada.send("/", text=f"entry number {number};")
    newest, oldest = ada.see("/"), ada.see("/?page=2")
    assert [number for number in range(1, 13) if f"number {number};" in newest] == list(range(3, 13))
    assert [number for number in range(1, 13) if f"number {number};" in oldest] == [1, 2]
    assert "Page 2 of 2" in oldest
    assert ada.client.get("/?page=3").status_code == 404
    assert ada.client.get("/?page=-1").status_code == 200


def test_without_a_mail_server_the_outbox_shows_the_letters(make_site: MakeSite, tmp_path: Path, site: Site) -> None:
    assert site.visitor().client.get("/outbox").status_code == 404
    with_folder = make_site(mail=f"file:{tmp_path}/outbox", url="http://127.0.0.1:3000")
    visitor = with_folder.visitor()
    visitor.send("/sign-up", **ADA)
    with_folder.book.jobs.drain(["mail"])
    page = visitor.client.get("/outbox").text
    assert f'href="{with_folder.book.settings.url}/confirm/' in page
    letter = visitor.client.get("/outbox/0")
    assert "Confirm my address" in letter.text
    assert "sandbox" in letter.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "url", ["https://guestbook.example", "http://0.0.0.0:3000", "http://127.0.0.1.evil.example", "http://[::]"]
)
def test_a_guestbook_that_others_find_shows_no_letters(make_site: MakeSite, tmp_path: Path, url: str) -> None:
    visitor = make_site(mail=f"file:{tmp_path}/outbox", url=url).visitor()
    assert visitor.client.get("/outbox").status_code == visitor.client.get("/outbox/0").status_code == 404
    assert "Outbox" not in visitor.client.get("/").text


@pytest.mark.parametrize("url", ["http://localhost:3000", "http://[::1]:3000", "http://127.8.0.1"])
def test_one_on_the_own_computer_does(make_site: MakeSite, tmp_path: Path, url: str) -> None:
    visitor = make_site(mail=f"file:{tmp_path}/outbox", url=url).visitor()
    assert "No letter yet" in visitor.see("/outbox")


def test_a_letter_reads_well_in_text_and_in_html(site: Site) -> None:
    visitor = site.visitor()
    site.ada()
    visitor.send("/sign-up", **ADA)
    visitor.send("/sign-up", **ADA | {"email": "bo@example.org"})
    visitor.send("/sign-up", **ADA | {"email": "bo@example.org"})
    visitor.send("/resets", email=ADA["email"])
    visitor.send(path_in(site.letter()), password=NEW)
    for _ in range(TRIES):
        visitor.send("/sign-in", email=ADA["email"], password="a wrong one")
    letters = site.letters()
    assert len({letter["Subject"] for letter in letters}) == 5
    for letter in letters:
        text, html = text_of(letter), text_of(letter, "html")
        for link in [word for word in text.split() if word.startswith("http")]:
            assert f'href="{link}"' in html
        assert "{{" not in text + html
        assert "None" not in text + html
        assert "\n\n\n" not in text
        assert max(len(line) for line in text.splitlines() if "http" not in line) <= 90
        assert "Ada" not in text + html, "a letter repeats what somebody typed"
