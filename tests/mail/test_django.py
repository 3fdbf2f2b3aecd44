"""Django's mail goes through the queue, with Django's own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import django
import pytest
from django.core import mail
from django.db import transaction
from django.test.utils import override_settings

from mail.sinks import Odd, odd
from rota import ConfigError, Rota
from rota.mail import Mailer, MessageRefused
from within.drivers import Undone, django_alias

mailer: Mailer
"""What the settings name."""


BACKEND = "rota.mail.django.EmailBackend"
HAS_MAILERS = django.VERSION >= (6, 1)


def settings(path: str | None = f"{__name__}.mailer", database: str | None = None) -> override_settings:
    """Django's settings for its mail to be queued, as its version has them."""
    if HAS_MAILERS:
        given = {"mailer": path, "database": database}
        options = {name: value for name, value in given.items() if value is not None}
        return override_settings(MAILERS={"default": {"BACKEND": BACKEND, "OPTIONS": options}})
    return override_settings(EMAIL_BACKEND=BACKEND, ROTA_MAILER=path, ROTA_MAIL_DATABASE=database)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Odd]:
    """A mail server, with Django set up to queue for it, its own database being the store's."""
    global mailer
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with Rota(url) as app, odd() as server, django_alias(url, "default"), settings():
        app.migrate()
        mailer = Mailer(app, server.url, sender="shop@example.org")
        yield server
        mailer.close()


def sent(server: Odd) -> list[str]:
    """The recipients of the letters that arrived, once the queue is worked."""
    mailer._app.drain()
    return [" ".join(taken.recipients) for taken in server.letters]


def test_mail_is_queued_with_the_transaction(server: Odd) -> None:
    with transaction.atomic():
        assert mail.send_mail("Welcome", "Good to have you.", None, ["kept@example.org"]) == 1
        assert mailer._app.jobs() == []
    with pytest.raises(Undone), transaction.atomic():
        mail.send_mail("Welcome", "Good to have you.", None, ["lost@example.org"])
        raise Undone
    assert sent(server) == ["kept@example.org"]


def test_all_that_djangos_messages_have_arrives(server: Odd) -> None:
    message = mail.EmailMultiAlternatives(
        "Grüße", "Text ä", "Löwe <shop@example.org>", ["ada@example.org"], bcc=["bo@example.org"], cc=["cy@example.org"]
    )
    message.attach_alternative("<p>" + "ä" * 2_000, "text/html")
    message.attach("a.bin", b"\x00\xff", "application/octet-stream")
    message.extra_headers["X-Order"] = "42"
    message.reply_to = ["answers@example.org"]
    assert message.send() == 1
    assert sent(server) == ["ada@example.org cy@example.org bo@example.org"]
    [job] = mailer._app.jobs()
    got = mailer.task.signature.decode(job.row.args)[1]["message"].message
    assert (got["Subject"], got["X-Order"], got["Reply-To"]) == ("Grüße", "42", "answers@example.org")
    assert got["Bcc"] is None
    assert got.get_body(("plain",)).get_content().strip() == "Text ä"
    assert max(len(line) for line in server.letters[0].content.split(b"\r\n")) <= 998


def test_who_gets_it_is_whom_django_says_whatever_headers_show(server: Odd) -> None:
    mail.EmailMessage(
        "Welcome",
        "Hello",
        "bounces@example.org",
        ["ada@example.org"],
        bcc=["bo@example.org"],
        headers={"From": "shop@example.org", "To": "everybody@example.org", "Bcc": "eve@example.org"},
    ).send()
    assert sent(server) == ["ada@example.org bo@example.org"]
    [taken] = server.letters
    assert taken.sender == "bounces@example.org"
    assert b"From: shop@example.org" in taken.content
    assert b"To: everybody@example.org" in taken.content
    assert b"eve@" not in taken.content


def test_addresses_beyond_ascii_go_to_servers_that_know_them(server: Odd) -> None:
    mail.EmailMessage("Welcome", "Hello", "Löwe <löwe@bücher.example>", ["Jürgen <jürgen@bücher.example>"]).send()
    assert sent(server) == ["jürgen@xn--bcher-kva.example"]
    [taken] = server.letters
    assert taken.sender == "löwe@xn--bcher-kva.example"
    assert "\r\nTo: =?utf-8?q?J=C3=BCrgen?= <jürgen@xn--bcher-kva.example>\r\n" in taken.content.decode()


def test_a_line_break_in_bcc_is_refused(server: Odd) -> None:
    with pytest.raises(MessageRefused, match=r"Bcc: .* has a line break"):
        mail.EmailMessage("Welcome", "Hello", to=["ada@example.org"], bcc=["bo\nX: y@example.org"]).send()
    assert sent(server) == []


def test_what_is_refused_is_told_or_passed_over_as_asked(server: Odd) -> None:
    with pytest.raises(MessageRefused, match="recipients: 'nobody' is no address"):
        mail.send_mail("Welcome", "Hello", None, ["nobody"])
    if not HAS_MAILERS:
        assert mail.send_mail("Welcome", "Hello", None, ["nobody"], fail_silently=True) == 0
    assert mail.EmailMessage("Welcome", "Hello").send() == 0
    assert sent(server) == []


def test_a_database_that_is_not_the_stores_is_waited_for(server: Odd, tmp_path: Path) -> None:
    with django_alias(f"sqlite:///{tmp_path / 'other.db'}", "other"), settings(database="other"):
        with transaction.atomic("other"):
            mail.send_mail("Welcome", "Hello", None, ["ada@example.org"])
            assert sent(server) == []
        assert sent(server) == ["ada@example.org"]


def test_without_a_database_it_is_queued_at_once(server: Odd) -> None:
    from django.db import connections

    connections.databases["none"] = connections.configure_settings({"default": {}, "none": {}})["none"]
    try:
        with settings(database="none"):
            mail.send_mail("Welcome", "Hello", None, ["ada@example.org"])
    finally:
        del connections.databases["none"]
    assert sent(server) == ["ada@example.org"]


def test_settings_that_name_no_mailer_are_told(server: Odd) -> None:
    for path, words in ((None, "name no mailer"), (f"{__name__}.sent", "and no Mailer")):
        with settings(path), pytest.raises(ConfigError, match=words):
            mail.send_mail("Welcome", "Hello", None, ["ada@example.org"])
