"""What strangers and forged requests are kept from."""

from __future__ import annotations

import re

from sqlalchemy import event, text

from .conftest import ADA, MakeSite, Site, Visitor, links_in, path_in, shown, text_of


def test_no_form_does_anything_without_its_token(site: Site) -> None:
    ada = site.ada()
    ada.send("/resets", email=ADA["email"])
    other = site.visitor()
    other.send("/sign-up", **ADA | {"email": "bo@example.org"})
    for _ in range(5):
        other.send("/sign-in", email=ADA["email"], password="a wrong one")
    reset, confirm, unlock = (path_in(letter) for letter in site.letters()[-3:])
    fields = {"email": "cy@example.org", "password": "a password of theirs", "name": "Cy", "text": "spam"}
    for page in (rule for rule in site.web.url_map.iter_rules() if "POST" in (rule.methods or ())):
        for token in (confirm, reset, unlock) if "<" in page.rule else ("",):
            path = token if "<" in page.rule else page.rule
            for forged in ({}, {"csrf_token": "20990101000000##0123456789abcdef"}):
                assert ada.client.post(path, data=fields | forged).status_code in (400, 422), path
    assert len(site.letters()) == 4
    assert "spam" not in ada.see("/")
    assert ada.client.get(reset).status_code == 200
    assert ada.client.get(unlock).status_code == 200


def test_a_token_of_one_visitor_is_of_no_use_to_another(site: Site) -> None:
    theirs = re.search(r'name="csrf_token" type="hidden" value="([^"]+)"', site.visitor().client.get("/sign-up").text)
    assert theirs is not None
    victim = site.visitor()
    victim.see("/sign-up")
    assert victim.client.post("/sign-up", data={**ADA, "csrf_token": theirs[1]}).status_code == 422


def answers(visitor: Visitor, email: str) -> list[tuple[int, str]]:
    """What each form that anybody may send says of an address."""
    forms = {
        "/sign-up": {"name": "Somebody", "email": email, "password": "a password of theirs"},
        "/sign-in": {"email": email, "password": "not the right one"},
        "/resets": {"email": email},
    }
    told = [visitor.send(path, **fields) for path, fields in forms.items()]
    return [(answer.status_code, answer.text.replace(email, "…")) for answer in told]


def without_tokens(told: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(code, re.sub(r'value="\d+##\w+"', "", text)) for code, text in told]


def test_no_answer_tells_who_has_an_account(site: Site) -> None:
    site.ada()
    assert without_tokens(answers(site.visitor(), ADA["email"])) == without_tokens(answers(site.visitor(), "bo@example.org"))
    to = [(letter["To"], letter["Subject"]) for letter in site.letters()[1:]]
    assert to == [
        ("ada@example.org", "You have an account already"),
        ("ada@example.org", "Choose another password"),
        ("bo@example.org", "Confirm your address"),
        ("bo@example.org", "Choose another password"),
    ]
    nobody = site.visitor()
    nobody.send("/resets", email="nobody@example.org")
    assert len(site.letters()) == 5, "a stranger got a letter"


def test_the_database_has_as_much_to_do_where_there_is_no_account(any_site: Site) -> None:
    """So nothing can be told from the time: a link that is asked for is written in any case, and so is a wrong password."""
    any_site.ada()
    engine = any_site.book.database.reading().get_bind()
    said: list[str] = []

    def listen(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        said.append(" ".join(statement.lower().replace("rollback to savepoint", "release savepoint").split()[:3]))

    def asked(path: str, **fields: str) -> list[str]:
        visitor = any_site.visitor()
        visitor.send(path, **fields)  # what is old is removed by the first in a stretch of time
        said.clear()
        visitor.send(path, **fields)
        return said.copy()

    event.listen(engine, "before_cursor_execute", listen)
    wrong = {"password": "a wrong one"}
    forgotten, nobodys = asked("/resets", email=ADA["email"]), asked("/resets", email="nobody@example.org")
    assert nobodys == forgotten
    assert any("rota_jobs" in each for each in forgotten)
    known, unknown = asked("/sign-in", email=ADA["email"], **wrong), asked("/sign-in", email="nobody@example.org", **wrong)
    assert [each for each in known if not each.startswith("update accounts")] == unknown
    assert unknown.count("insert into form_uses") == 2
    for subject in ("Choose another password", "Choose another password", "Your account is locked", "Your account is locked"):
        said.clear()
        any_site.visitor().send("/sign-in", email=ADA["email"], **wrong)
        assert [each for each in said if not each.startswith("update accounts")] == unknown
        assert any_site.letter()["Subject"] == subject


def test_signing_up_again_changes_nothing_of_an_account(site: Site) -> None:
    site.visitor().send("/sign-up", **ADA)
    site.visitor().send("/sign-up", **ADA | {"password": "a password of somebody"})
    first, again = (path_in(letter, "confirm") for letter in site.letters())
    ada = site.visitor()
    assert "do not belong together" in shown(ada.send(again, password="a password of somebody"))
    assert "Your address is confirmed" in shown(ada.send(first, password=ADA["password"]))


def test_who_signs_up_with_anothers_address_gains_nothing_when_its_owner_confirms(site: Site) -> None:
    """The owner does not know that password, so the link alone confirms nothing; another password ends the first."""
    stranger, ada = site.visitor(), site.visitor()
    stranger.send("/sign-up", **ADA | {"password": "known to the stranger"})
    stranger.send("/sign-in", email=ADA["email"], password="known to the stranger")
    ada.send(path_in(site.letter()), password=ADA["password"])
    assert stranger.send("/confirm", on="/").status_code == 200, "it is not confirmed"
    ada.send("/resets", email=ADA["email"])
    ada.send(path_in(site.letter(), "resets"), password=ADA["password"])
    assert "Sign up" in stranger.see("/")


def test_a_link_is_for_its_own_purpose_and_cannot_be_forged(site: Site) -> None:
    site.visitor().send("/sign-up", **ADA)
    token = path_in(site.letter()).removeprefix("/confirm/")
    last = "A" if token[-2] != "A" else "B"
    client = site.visitor().client
    assert client.get(f"/confirm/{token}").status_code == 200
    for each in (f"{token[:-2]}{last}{token[-1]}", "", "x", "a.b.c", "é"):
        assert client.get(f"/confirm/{each}").status_code in (404, 405, 410)
    for path in (f"/resets/{token}/edit", f"/unlock/{token}"):
        assert client.get(path).status_code == 410


def test_links_lead_to_the_guestbook_whatever_host_a_request_names(site: Site) -> None:
    visitor = site.visitor()
    visitor.client.environ_base["HTTP_HOST"] = "evil.example"
    visitor.send("/sign-up", **ADA)
    letter = site.letter()
    assert links_in(text_of(letter), "confirm")
    assert "evil" not in text_of(letter) + text_of(letter, "html")
    for path in ("/sign-up//", "/resets//x/edit", "//evil.example/sign-up", "/sign-up/"):
        answer = visitor.client.get("/", environ_overrides={"PATH_INFO": path})
        assert (answer.status_code, answer.headers.get("Location", "")) == (404, ""), path


def test_what_people_write_is_text(site: Site) -> None:
    ada = site.visitor()
    ada.send("/sign-up", **ADA | {"name": "<b>Ada</b>"})
    ada.send(path_in(site.letter()), password=ADA["password"])
    page = ada.send("/", text="<script>alert(1)</script> 🎉 ünï").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 🎉 ünï" in page
    assert "<b>Ada" not in page
    assert page.count('dir="auto"') == 3, "an entry or a name turns no text around but its own"
    assert "nothing in it that can be seen" in shown(ada.send("/", text="\u200b\u2060"))
    assert "👩‍🚀 עדה" in shown(ada.send("/", text="👩‍🚀 עדה"))


WRONG = [
    ("name", "", "Write the name"),
    ("name", "x" * 41, "Field cannot be longer"),
    ("name", "Ada\r\nBcc: everybody@example.org", "Write it on one line"),
    ("name", "Ada\x00", "a character in it that cannot be shown"),
    ("name", "Ada\u202e", "turns text around"),
    ("name", "\u200b\u2060\u3164", "nothing in it that can be seen"),
    ("email", "nobody", "That is no mail address"),
    ("email", "ada@example.org\nBcc: bo@example.org", "That is no mail address"),
    ("email", "ada\x00@example.org", "That is no mail address"),
    ("email", f"{'x' * 250}@example.org", "too long"),
    ("password", "short", "It takes 10 to 200 characters"),
    ("password", "x" * 201, "It takes 10 to 200 characters"),
    ("password", "ADA@example.org", "not your address"),
]
"""Fields of the form to sign up, what is wrong for them, and what is said about it."""


def test_what_cannot_be_is_said_beside_its_field(site: Site) -> None:
    visitor = site.visitor()
    for field, value, said in WRONG:
        answer = visitor.send("/sign-up", **ADA | {field: value})
        error = re.search(rf'id="{field}-error"[^>]*>([^<]*)<', answer.text)
        assert error is not None, (field, value)
        assert (answer.status_code, said in error[1]) == (422, True), error[1]
        assert re.search(rf'aria-describedby="[^"]*{field}-error"[^>]*aria-invalid="true"', answer.text)
    assert site.letters() == []


def test_the_cookie_is_for_this_site_alone(site: Site, make_site: MakeSite) -> None:
    [plain] = site.visitor().client.get("/sign-up").headers.getlist("Set-Cookie")
    assert all(word in plain for word in ("HttpOnly", "SameSite=Lax", "Path=/"))
    secure = make_site(url="https://guestbook.example").visitor().client.get("/sign-up", base_url="https://guestbook.example")
    [cookie] = secure.headers.getlist("Set-Cookie")
    assert cookie.startswith("__Host-guestbook=")
    assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"))
    assert "max-age" in secure.headers["Strict-Transport-Security"]


def test_pages_run_no_scripts_and_have_their_styles_in_a_file(site: Site) -> None:
    ada = site.ada()
    pages = ["/", "/sign-up", "/sign-up/sent", "/sign-in", "/resets", "/resets/sent", "/nowhere"]
    for each in pages:
        answer = ada.client.get(each)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not re.search(r"<script|<style| style=| on\w+=", answer.text)


def test_forms_are_limited_over_all_processes(make_site: MakeSite) -> None:
    one, other = make_site(form_limit=3), make_site(form_limit=3)
    for site in (one, other, one):
        assert site.visitor("192.0.2.7").send("/sign-in", email="x@example.org", password="x").status_code == 422
    late = other.visitor("192.0.2.7").send("/sign-in", email="x@example.org", password="x")
    assert (late.status_code, 0 < int(late.headers["Retry-After"]) <= 600) == (429, True)
    assert other.visitor("192.0.2.8").send("/sign-in", email="x@example.org", password="x").status_code == 422
    one.clock.ahead = 600
    assert one.visitor("192.0.2.7").send("/sign-in", email="x@example.org", password="x").status_code == 422


def test_a_network_of_ipv6_is_one_visitor(make_site: MakeSite) -> None:
    site = make_site(form_limit=1)
    for address, status in (
        ("2001:db8::1", 422),
        ("2001:db8::ffff:2", 429),
        ("2001:db8:0:1::1", 422),
        ("::ffff:192.0.2.1", 422),
    ):
        assert site.visitor(address).send("/sign-in", email="x@example.org", password="x").status_code == status
    assert site.visitor("192.0.2.1").send("/sign-in", email="x@example.org", password="x").status_code == 429


def test_nobody_can_have_more_than_a_few_letters_sent_to_an_address(site: Site) -> None:
    for email in (ADA["email"], "nobody@example.org"):
        codes = [site.visitor(f"192.0.2.{number}").send("/resets", email=email).status_code for number in range(7)]
        assert codes == 5 * [200] + 2 * [429]


def test_nor_by_who_signed_up_with_it(site: Site) -> None:
    site.visitor().send("/sign-up", **ADA)
    stranger = site.visitor()
    stranger.send("/sign-in", email=ADA["email"], password=ADA["password"])
    assert [stranger.send("/confirm", on="/").status_code for _ in range(6)] == 5 * [200] + [429]


def test_a_database_that_is_away_is_said_on_a_page(site: Site) -> None:
    ada = site.ada()
    with site.book.database.writing() as session, session.begin():
        session.execute(text("alter table accounts rename to elsewhere"))
    site.web.logger.disabled = True
    answer = ada.client.get("/")
    assert answer.status_code == 500
    assert "nothing of it was kept" in shown(answer)


def test_what_is_too_large_is_not_read(site: Site) -> None:
    ada = site.ada()
    assert ada.send("/", text="x" * 1001).status_code == 422
    assert ada.send("/", text="\r\n".join(["x"] * 500)).status_code == 200
    assert ada.send("/", text="x" * 70_000).status_code == 413
