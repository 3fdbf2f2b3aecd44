"""What arrives at a mail server is what was given: over TLS and with a password too, and each line as mail has it."""

from __future__ import annotations

import asyncio
import email
import ssl
from base64 import b64encode
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest

from mail.conftest import MakeMailer, letter
from mail.sinks import Sink, odd, passwords, sink
from rota import Rota, State
from rota.mail import DeliveryFailed, DeliveryPutOff, NotDelivered, compose

AUTH = {"authenticator": passwords("shop", "sésame:/@")}
USER = "shop:s%C3%A9same%3A%2F%40@"
"""The same as a URL has it."""


def arrived(server: Sink) -> EmailMessage:
    [envelope] = server.letters
    content = envelope.content
    assert isinstance(content, bytes)
    assert max(len(line) for line in content.split(b"\r\n")) <= 998
    assert b"\n" not in content.replace(b"\r\n", b"")
    return email.message_from_string(content.decode(), policy=policy.default)


def test_all_that_a_message_can_have_arrives(mailer: MakeMailer) -> None:
    text = "Grüße!\n.\n..two dots\nFrom here on\n" + "a long line " * 200 + "\n"
    page = "<p>" + "ä" * 50_000 + "</p>\n"
    message = compose(
        to=["Ada Lovelace <ada@example.org>", '"Löwe, \\"Bo\\"" <bo@bücher.example>'],
        cc="cy@example.org",
        bcc="di@example.org",
        reply_to="Answers <answers@example.org>",
        sender="Bücher & Söhne <shop@bücher.example>",
        subject="Grüße " * 30,
        text=text,
        html=page,
        attachments=[("Übersicht 2026.pdf", bytes(range(256)) * 40), ("notes.txt", b"x" * 3_000)],
        headers={"X-Order": "42", "List-Unsubscribe": f"<https://example.org/{'u' * 800}>"},
    )
    with sink(enable_SMTPUTF8=False) as server:
        delivery = mailer(server.url()).deliver(message)
        got = arrived(server)
        [envelope] = server.letters
    everybody = ("ada@example.org", "bo@xn--bcher-kva.example", "cy@example.org", "di@example.org")
    assert delivery.accepted == everybody == tuple(envelope.rcpt_tos)
    assert (delivery.refused, delivery.put_off) == ({}, {})
    assert envelope.mail_from == "shop@xn--bcher-kva.example"
    assert "Bcc" not in got
    assert b"di@example.org" not in got.as_bytes()
    assert [each.display_name for each in got["To"].addresses] == ["Ada Lovelace", 'Löwe, "Bo"']
    assert got["From"].addresses[0].display_name == "Bücher & Söhne"
    assert (got["Reply-To"], got["X-Order"]) == ("Answers <answers@example.org>", "42")
    assert got["Subject"] == "Grüße " * 29 + "Grüße "
    assert got["Message-ID"] == delivery.message_id
    assert got["Date"].datetime is not None
    plain, html = got.get_body(("plain",)), got.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert plain.get_content().replace("\r\n", "\n") == text
    assert html.get_content().replace("\r\n", "\n") == page
    files = {part.get_filename(): part.get_payload(decode=True) for part in got.iter_attachments()}
    assert files == {"Übersicht 2026.pdf": bytes(range(256)) * 40, "notes.txt": b"x" * 3_000}


def test_the_queued_letter_arrives_as_it_was_queued_however_often(app: Rota, mailer: MakeMailer) -> None:
    with odd({"content": ["451 later", None]}) as server:
        mailer = mailer(server.url)
        job = mailer.deliver_later(letter(subject="Grüße", bcc="bo@example.org"))
        stored = mailer.task.signature.decode(job.row.args)[1]["message"]
        assert [str(event) for event in app.drain()] == [
            "failed deliver on attempt 1: put off: ada@example.org, bo@example.org (451 later)"
        ]
        job.retry()
        assert [str(event) for event in app.drain()] == ["ran deliver"]
        [taken] = server.letters
    assert taken.content == stored.wire()
    assert job.refresh().result().message_id == stored.message_id == stored.message["Message-ID"]
    assert stored.subject == "Grüße"


def test_starttls_is_the_default_and_goes_with_a_password(mailer: MakeMailer, tls: ssl.SSLContext, cafile: Path) -> None:
    with sink(tls, require_starttls=True, **AUTH) as server:
        mailer(server.url(f"?tls=starttls&cafile={cafile}", user=USER, host="localhost")).deliver(letter())
        assert server.users == [b"shop"]


def test_tls_from_the_start(mailer: MakeMailer, tls: ssl.SSLContext, cafile: Path) -> None:
    with sink(tls, from_the_start=True) as server:
        mailer(server.url(f"?cafile={cafile}", scheme="smtps", host="localhost")).deliver(letter())
        assert len(server.letters) == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["of nobody we trust", "for another name"])
def test_a_certificate_that_is_not_right_gets_no_letter(
    mailer: MakeMailer, tls: ssl.SSLContext, cafile: Path, host: str
) -> None:
    options = "?tls=starttls" if host == "localhost" else f"?tls=starttls&cafile={cafile}"
    with sink(tls) as server:
        with pytest.raises(DeliveryPutOff, match=r"certificate that cannot be trusted.*\(STARTTLS\)"):
            mailer(server.url(options, host=host)).deliver(letter())
        assert server.letters == []


def test_a_server_without_starttls_gets_no_letter(mailer: MakeMailer) -> None:
    with odd() as server:
        with pytest.raises(DeliveryPutOff, match="does not offer STARTTLS"):
            mailer(f"{server.url}?tls=starttls").deliver(letter())
        assert not any(command.startswith("MAIL") for command in server.commands)


def test_words_slipped_in_before_tls_end_the_connection(mailer: MakeMailer) -> None:
    odd_one = odd({"STARTTLS": "220 go\r\n250 evil"}, extensions=("STARTTLS",))
    with odd_one as server, pytest.raises(DeliveryPutOff, match="more than it was asked"):
        mailer(f"{server.url}?tls=starttls").deliver(letter())


@pytest.mark.parametrize("without", ["PLAIN", "LOGIN"])
def test_each_way_to_sign_in(mailer: MakeMailer, without: str) -> None:
    with sink(auth_exclude_mechanism=[without], **AUTH) as server:
        mailer(server.url(user=USER)).deliver(letter())
        assert server.users == [b"shop"]


def test_a_server_that_takes_no_password_gets_none(mailer: MakeMailer) -> None:
    with odd() as server:
        with pytest.raises(DeliveryPutOff, match="AUTH is not offered"):
            mailer(f"smtp://shop:sesame@127.0.0.1:{server.port}").deliver(letter())
        assert server.letters == []


def test_a_wrong_password_fails_with_the_servers_words_and_is_not_shown(mailer: MakeMailer) -> None:
    with sink(**AUTH) as server:
        wrong = mailer(server.url(user="shop:secret@"))
        with pytest.raises(DeliveryFailed, match=r"answered 535 .*\(AUTH\)") as failed:
            wrong.deliver(letter())
        assert "secret" not in f"{failed.value!r} {wrong!r}"


@pytest.mark.parametrize("code", ["500", "454", "AUTH"])
@pytest.mark.parametrize("how", ["PLAIN", "LOGIN"])
def test_a_server_that_repeats_what_it_was_told_shows_no_password(mailer: MakeMailer, how: str, code: str) -> None:
    whole, alone = b64encode(b"\0shop\0s3cret").decode(), b64encode(b"s3cret").decode()
    said = f"{code} what is {whole.lower()}, {alone} or s3cret?"
    script = {"AUTH": "334 go on" if how == "LOGIN" else said, alone.upper(): said}
    shown = pytest.raises(NotDelivered, match=r"what is \*\*\*, \*\*\* or \*\*\*\?")
    with odd(script, extensions=(f"AUTH {how}",)) as server, shown as failed:
        mailer(f"smtp://shop:s3cret@127.0.0.1:{server.port}").deliver(letter())
    assert "s3cret" not in f"{failed.value!r} {failed.value.__cause__!r}"


def test_addresses_beyond_ascii_need_smtputf8(mailer: MakeMailer) -> None:
    message = letter("Jürgen <jürgen@bücher.example>")
    with sink(enable_SMTPUTF8=True) as server:
        mailer(server.url()).deliver(message)
        assert server.letters[0].rcpt_tos == ["jürgen@xn--bcher-kva.example"]
        got = arrived(server)
        assert got["To"].addresses[0].username == "jürgen"
    with odd(extensions=("8BITMIME",)) as other, pytest.raises(DeliveryFailed, match="no SMTPUTF8"):
        mailer(other.url, name="other").deliver(message)


def test_a_server_that_takes_less_is_told_nothing_of_more(mailer: MakeMailer) -> None:
    with odd(extensions=("SIZE 1000",)) as server:
        with pytest.raises(DeliveryFailed, match="takes letters of 1,000 bytes"):
            mailer(server.url).deliver(letter(text="x\n" * 1_000))
        assert not any(command.startswith("MAIL") for command in server.commands)


def test_coroutines_send_and_queue_too(app: Rota, mailer: MakeMailer) -> None:
    with odd() as server:
        mailer = mailer(server.url)

        async def both() -> State:
            await mailer.adeliver(letter())
            job = await mailer.adeliver_later(letter(), queue="letters")
            return (await job.arefresh()).status

        assert asyncio.run(both()) is State.QUEUED
        assert [job.queue for job in app.jobs()] == ["letters"]
        app.drain()
        assert len(server.letters) == 2
