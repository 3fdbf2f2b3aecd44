"""What cannot be sent is refused before it is queued, in words; what mail cannot carry as it is, is made so that it can."""

from __future__ import annotations

import email
from base64 import b64encode
from email import policy
from email.message import EmailMessage
from email.mime.text import MIMEText
from typing import Any

import pytest

from mail.conftest import MakeMailer, letter
from rota import Rota
from rota.mail import Mailer, MessageRefused, compose
from rota.mail.letter import Letter


@pytest.fixture
def shop(mailer: MakeMailer) -> Mailer:
    return mailer("console:")


def smuggled(**headers: str) -> EmailMessage:
    """A message whose headers are as given, as only whoever goes around EmailMessage's own checks can have them."""
    message = letter()
    for name, value in headers.items():
        name = name.replace("_", "-")
        del message[name]
        message._headers.append((name, value))  # type: ignore[attr-defined]
    return message


BREAKS = ["\n", "\r", "\r\nBcc: eve@example.org", "\nBcc: eve@example.org\n\nbody", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"]
OTHERS = ["\x00", "\x1b[2J", "\x7f", "\ud800"]


@pytest.mark.parametrize("header", ["Subject", "From", "To", "Cc", "Reply_To", "Sender", "X_Order", "Message_ID"])
def test_no_header_holds_a_line_break_or_a_control_character(app: Rota, shop: Mailer, header: str) -> None:
    for unfit in BREAKS + OTHERS:
        value = f"x{unfit}y" if header in ("Subject", "X_Order") else f"x{unfit}y <ada@example.org>"
        with pytest.raises(MessageRefused, match=header.replace("_", "-")):
            shop.deliver_later(smuggled(**{header: value}))
    assert app.jobs() == []


def test_compose_refuses_them_too(shop: Mailer) -> None:
    for unfit in BREAKS + OTHERS:
        for field in ({"subject": f"x{unfit}y"}, {"to": f"x{unfit}y <ada@example.org>"}, {"headers": {"X-A": f"x{unfit}y"}}):
            with pytest.raises(MessageRefused):
                shop.letter(letter(**field))


def test_compose_says_what_to_do_about_a_line_break() -> None:
    for unfit in ({"subject": "x\ny"}, {"to": ["ada@example.org\r\nBcc: eve@example.org"], "subject": "x"}):
        with pytest.raises(MessageRefused, match="has a line break in it: make it one line"):
            compose(**unfit)


def test_a_break_hidden_in_an_encoded_word_is_refused(shop: Mailer) -> None:
    raw = b"To: ada@example.org\nSubject: =?utf-8?q?x=0ABcc:_eve@example.org?=\n\nbody\n"
    message = email.message_from_bytes(raw, policy=policy.default)
    with pytest.raises(MessageRefused, match="line break"):
        shop.letter(message)


def test_a_name_of_a_header_cannot_hold_another(shop: Mailer) -> None:
    for name in ("X-A: 1\nBcc", "X A", "Grüße", ""):
        message = letter()
        message._headers.append((name, "x"))  # type: ignore[attr-defined]
        with pytest.raises(MessageRefused, match="no name of a header"):
            shop.letter(message)


def test_headers_of_attachments_are_looked_at_too(shop: Mailer) -> None:
    message = letter(attachments=[("a.txt", b"x")])
    attached = message.get_payload()[1]
    attached._headers.append(("X-A", "1\nX-B: 2"))
    with pytest.raises(MessageRefused, match="X-A"):
        shop.letter(message)


def test_the_text_of_an_error_makes_a_subject_once_it_is_one_line(shop: Mailer) -> None:
    error = ValueError("first\nsecond")
    with pytest.raises(MessageRefused, match=r"make it one line, as \" \"\.join"):
        shop.letter(smuggled(Subject=str(error)))
    assert shop.letter(letter(subject=" ".join(str(error).split()))).subject == "first second"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"to": "nobody"}, "To: 'nobody' is no address"),
        ({"to": "ada@example.org bo@example.org"}, "To: .* is no address"),
        ({"to": "ada@@example.org"}, "To: .* is no address"),
        ({"to": "ada@-example.org"}, "To: .* is no address"),
        ({"cc": "<ada@example.org"}, "Cc: .* is no address"),
        ({"bcc": "ada@"}, "Bcc: .* (is no address|cannot be a header)"),
        ({"reply_to": "me"}, "Reply-To: .* is no address"),
        ({"sender": "me"}, "From: .* is no address"),
        ({"to": "\udce4 <ada@example.org>"}, "To: a name has a lone surrogate"),
        ({"to": "\udce4: ada@example.org;"}, "To: a name has a lone surrogate"),
        ({"to": ()}, "it has no recipient"),
        ({"to": "everybody:;"}, "it has no recipient"),
        ({"text": None}, "it has no body"),
        ({"text": " \n\n"}, "it has no body"),
        ({"text": "x" * 3_000}, "the limit is 2,000"),
        ({"headers": {"Message-ID": "nothing"}}, "Message-ID: 'nothing' is none"),
        ({"headers": {"List-Unsubscribe": f"<https://example.org/{'u' * 1_000}>"}}, "List-Unsubscribe: it must be ASCII"),
        ({"subject": "x" * 20_000}, "may have 16,000"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_queued(
    app: Rota, mailer: MakeMailer, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(MessageRefused, match=words):
        mailer("console:", max_size=2_000).deliver_later(letter(**fields))
    assert app.jobs() == []


def test_twice_what_may_be_there_once_is_refused(shop: Mailer) -> None:
    message = letter()
    message._headers.append(("subject", "Another"))  # type: ignore[attr-defined]
    with pytest.raises(MessageRefused, match="twice"):
        shop.letter(message)


def test_no_sender_is_refused_where_the_mailer_has_none(app: Rota) -> None:
    with pytest.raises(MessageRefused, match="no From"):
        Mailer(app, "console:").letter(letter())


def test_what_is_no_message_is_refused(shop: Mailer) -> None:
    for wrong in (MIMEText("old"), "text", None, EmailMessage(policy=policy.compat32)):  # type: ignore[arg-type]
        with pytest.raises(MessageRefused, match=r"email\.message\.EmailMessage"):
            shop.letter(wrong)  # type: ignore[arg-type]


def test_a_message_heavier_than_a_job_may_be_is_refused(mailer: MakeMailer) -> None:
    with Rota("memory://", max_payload=1_000) as small:
        shop = mailer("console:", app=small)
        with pytest.raises(MessageRefused, match="limit is 1,000"):
            shop.deliver_later(letter(text="x" * 2_000))
        assert small.jobs() == []


def test_the_message_itself_stays_as_it_was(shop: Mailer) -> None:
    message = letter(bcc="bo@example.org", text="y" * 2_000)
    before = message.as_bytes()
    first, second = shop.letter(message), shop.letter(message)
    assert message.as_bytes() == before
    assert first.message_id != second.message_id
    message["Message-ID"] = "<mine@example.org>"
    message["Date"] = "Tue, 01 Jan 2030 00:00:00 +0000"
    assert shop.letter(message).message_id == "<mine@example.org>"
    assert shop.letter(message) == shop.letter(message)


def kept(letter: Letter, header: str = "Subject") -> str:
    """What a mail program reads in this header, when each line is as mail has it."""
    assert letter.content.isascii()
    assert max(map(len, letter.content.split("\n"))) <= 998
    return str(letter.message[header])


@pytest.mark.parametrize(
    "subject",
    [
        "x" * 1_500,
        "ä" * 5_000,
        "x" * 5_000 + "ä",
        "word " * 300 + "end",
        "wide" + " " * 2_000 + "gap",
        "a  b   c",
        "a =? b ?=",
        "👩‍👩‍👧 " * 100 + "end",
        "日本語の長い件名" * 50,
        'quotes " and \\ and <brackets>',
        "",
    ],
    ids=range(11),
)
def test_any_subject_comes_back_as_it_was(shop: Mailer, subject: str) -> None:
    assert kept(shop.letter(letter(subject=subject))) == subject


@pytest.mark.parametrize(
    "name",
    ["Ada", "Ada M. Löwe", 'Quote " and \\', "Comma, here", "=?utf-8?q?a?=", "ä" * 20, "eve@example.org", "A <b@c.de>", "(x)"],
)
def test_any_name_comes_back_beside_its_address_alone(shop: Mailer, name: str) -> None:
    message = letter()
    del message["To"]
    from email.headerregistry import Address

    message["To"] = [Address(name, "ada", "example.org"), Address("Bo", "bo", "example.org")]
    made = shop.letter(message)
    kept(made)
    [ada, bo] = made.message["To"].addresses
    assert (ada.display_name, ada.addr_spec, bo.addr_spec) == (name, "ada@example.org", "bo@example.org")
    assert made.recipients == ("ada@example.org", "bo@example.org")


def test_recipients_hear_of_it_once_and_groups_count(shop: Mailer) -> None:
    made = shop.letter(letter(to="Team: ada@example.org, bo@example.org;", cc="ada@example.org", bcc="bo@example.org"))
    assert made.recipients == ("ada@example.org", "bo@example.org")
    assert kept(made, "To") == "Team: ada@example.org, bo@example.org;"


@pytest.mark.parametrize(
    "address", ["root@localhost", "a@b.test", '"a b"@example.org', "a@[127.0.0.1]", "o'hara+x@example.org"]
)
def test_odd_addresses_that_are_none_the_less_right(shop: Mailer, address: str) -> None:
    assert shop.letter(letter(address)).recipients == (address,)


def test_parts_that_mail_cannot_carry_are_encoded(shop: Mailer) -> None:
    message = letter()
    message.set_content("ä" * 1_500 + "\r\nend\n", cte="8bit")
    message.add_attachment(b"\x00\xff" * 1_000, maintype="application", subtype="x", filename="a", cte="8bit")
    message.add_attachment(letter(text="ü" * 2_000))
    long = EmailMessage()
    long.set_payload("z" * 3_000)
    message.attach(long)
    made = shop.letter(message)
    kept(made)
    body, binary, inner, last = made.message.get_payload()
    assert body.get_content() == "ä" * 1_500 + "\nend\n"
    assert binary.get_payload(decode=True) == b"\x00\xff" * 1_000
    assert inner.get_content().get_content() == "ü" * 2_000 + "\n"
    assert last.get_payload(decode=True) == b"z" * 3_000


def test_a_signed_part_is_left_as_it_is(shop: Mailer) -> None:
    raw = (
        b"To: ada@example.org\nMIME-Version: 1.0\nContent-Type: multipart/signed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nGr=c3=bcss =\nand more\n"
        b"--b\nContent-Type: application/pgp-signature\n\nsigned\n--b--\n"
    )
    made = shop.letter(email.message_from_bytes(raw, policy=policy.default))
    assert "Gr=c3=bcss =\nand more\n--b\nContent-Type: application/pgp-signature\n\nsigned\n--b--\n" in made.content


@pytest.mark.parametrize("body", ["Grüße", "x" * 2_000, "a\0b"])
def test_a_signed_part_that_would_have_to_be_changed_is_refused(shop: Mailer, body: str) -> None:
    raw = (
        "To: ada@example.org\nMIME-Version: 1.0\nContent-Type: multipart/signed; boundary=b\n\n"
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: text/plain; charset=utf-8\n\n"
        f"{body}\n--c--\n--b\nContent-Type: application/pgp-signature\n\nsigned\n--b--\n"
    )
    with pytest.raises(MessageRefused, match="before you sign it"):
        shop.letter(email.message_from_bytes(raw.encode(), policy=policy.default))


def test_text_in_base64_stays_so(shop: Mailer) -> None:
    text = "Grüße\n" * 300
    message = letter()
    message.set_payload(b64encode(text.encode("utf-16")).decode())
    message.replace_header("Content-Transfer-Encoding", "base64")
    message.set_param("charset", "utf-16")
    made = shop.letter(message)
    kept(made)
    assert made.message.get_content() == text


def test_a_nul_between_the_parts_is_refused(shop: Mailer) -> None:
    message = letter(html="<p>Hello")
    message.preamble = "a\0b"
    with pytest.raises(MessageRefused, match="cannot be written as mail has it"):
        shop.letter(message)


def test_what_is_sent_on_goes_to_those_it_is_sent_on_to(shop: Mailer) -> None:
    message = letter("ada@example.org", cc="cy@example.org", sender="shop@example.org")
    message["Resent-From"] = "ada@example.org"
    message["Resent-To"] = "Löwe <bo@bücher.example>"
    message["Resent-Bcc"] = "eve@example.org"
    made = shop.letter(message)
    assert made.sender == "ada@example.org"
    assert made.recipients == ("bo@xn--bcher-kva.example", "eve@example.org")
    assert kept(made, "Resent-To") == "Löwe <bo@xn--bcher-kva.example>"
    assert "eve@" not in made.content
    message["Resent-To"] = "dan@example.org"
    with pytest.raises(MessageRefused, match="Resent-To: it is there 2 times"):
        shop.letter(message)


def test_compose_refuses_a_header_that_is_given_twice() -> None:
    for name in ("To", "subject"):
        with pytest.raises(MessageRefused, match=f"{name}: .* at most 1"):
            letter(headers={name: "eve@example.org"})


def test_compose_refuses_text_that_was_not_decoded() -> None:
    for field in ({"text": "a\udce4"}, {"html": "a\udce4"}, {"text": None, "html": "a\udce4"}):
        with pytest.raises(MessageRefused, match="the text has a lone surrogate"):
            letter(**field)


def test_addresses_of_those_who_hear_of_it_stay_addresses(shop: Mailer) -> None:
    made = shop.letter(letter(headers={"Errors-To": "x@bücher.example", "Disposition-Notification-To": "Löwe <y@example.org>"}))
    assert kept(made, "Errors-To") == "x@xn--bcher-kva.example"
    assert "\nDisposition-Notification-To: =?utf-8?q?L=C3=B6we?= <y@example.org>\n" in made.content


def test_compose_refuses_the_names_and_types_of_attachments_that_hold_a_line_break() -> None:
    for attachment in (("a\nX-B: 2", b"x"), ("a", b"x", "text/x\nX-B: 2")):
        with pytest.raises(MessageRefused, match=r"attachment .* cannot be added"):
            letter(attachments=[attachment])


def test_a_message_in_a_file_is_attached_as_a_file(shop: Mailer) -> None:
    inner = letter(text="ü" * 2_000).as_bytes()
    [attached] = shop.letter(letter(attachments=[("old.eml", inner)])).message.iter_attachments()
    assert (attached.get_content_type(), attached.get_content()) == ("application/octet-stream", inner)


def test_compose_reads_files_and_takes_html_alone(shop: Mailer, tmp_path: Any) -> None:
    (tmp_path / "bill.pdf").write_bytes(b"%PDF")
    message = compose(to="ada@example.org", subject="Bill", html="<p>here", attachments=[tmp_path / "bill.pdf"])
    [attached] = shop.letter(message).message.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("bill.pdf", "application/pdf")
