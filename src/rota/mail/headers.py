"""The headers of a message: checked, and written out line by line."""

from __future__ import annotations

import re
from datetime import datetime
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage, Message
from email.utils import format_datetime
from typing import Any

from rota.codec.wire import brief
from rota.mail.addresses import Mailbox, mailboxes, written
from rota.mail.errors import MessageRefused
from rota.mail.words import exact_header, text_header

_TO = ("To", "Cc", "Bcc")
_ADDRESSES = frozenset({"from", "sender", "reply-to", "to", "cc", "bcc"})
_RESENT = frozenset({"resent-from", "resent-sender", "resent-to", "resent-cc", "resent-bcc"})
_ONCE = _ADDRESSES | {"subject", "date", "message-id", "in-reply-to", "references"}
_ANSWERS = frozenset({"disposition-notification-to", "return-receipt-to", "errors-to", "mail-followup-to", "mail-reply-to"})
"""Headers of addresses that the standard library takes for text, in which encoded words would hide them."""
_NEVER_SENT = frozenset({"bcc", "resent-bcc", "return-path"})
_EXACT = frozenset({"message-id", "in-reply-to", "references"})
_MOST = 16_000
"""So many characters a header may have, save one of addresses."""

_NAME = re.compile(r"[!-9;-~]{1,76}")
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_UNFIT = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters but the tab, what some take for the end of a line, and lone surrogates."""
_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,250}@[!-;=?-~]{1,250}>")


class Headers:
    """The headers of one message. Raises `MessageRefused` for any that must not be sent."""

    def __init__(self, message: EmailMessage, sender: str | None) -> None:
        for part in message.walk():
            check_headers(part)
        self._message = message
        self._from: Any = message["From"]
        if self._from is None:
            if sender is None:
                raise MessageRefused("it has no From: set it, or give the mailer a sender")
            self._from = author(sender)
        authors = mailboxes(self._from, "From")
        if not authors:
            raise MessageRefused("From: it names nobody")
        self._prefix = "Resent-" if any(message[f"Resent-{name}"] is not None for name in _TO) else ""
        self.sender = self._envelope_sender(authors)
        self.subject = str(message.get("Subject", "")).lstrip()
        self.message_id = str(message.get("Message-ID", "")).strip()

    def recipients(self) -> list[Mailbox]:
        """Whom it goes to: those of To, Cc and Bcc, or, where it is sent on, those of Resent-To, -Cc and -Bcc alone."""
        names = [f"{self._prefix}{name}" for name in _TO]
        return [box for name in names if (header := self._only(name)) is not None for box in mailboxes(header, name)]

    def _envelope_sender(self, authors: list[Mailbox]) -> Mailbox:
        """Who hears of mail that bounces: who sent it, or sent it on, or else the first author."""
        name = f"{self._prefix}Sender"
        if (named := self._only(name)) is not None:
            return one_of(mailboxes(named, name), name)
        again = self._only("Resent-From") if self._prefix else None
        return (authors if again is None else mailboxes(again, "Resent-From") or authors)[0]

    def _only(self, name: str) -> Any:
        found = self._message.get_all(name, [None])
        if len(found) > 1:  # only Resent- ones can be: a message has a set of them for each time that it was sent on
            raise MessageRefused(f"{name}: it is there {len(found)} times, and only one of them can say whom it goes to now")
        return found[0]

    def written(self, now: datetime, domain_id: str) -> tuple[list[str], bool]:
        """The lines of all headers but those of MIME, and whether they take SMTPUTF8. What is missing is made."""
        lines: list[str] = []
        utf8 = False
        if self._message["Date"] is None:
            lines.append(f"Date: {format_datetime(now)}")
        if not self.message_id:
            self.message_id = f"<{domain_id}@{self.sender.address.rpartition('@')[2].strip('[]')}>"
            lines.append(f"Message-ID: {self.message_id}")
        elif not _MESSAGE_ID.fullmatch(self.message_id):
            raise MessageRefused(f"Message-ID: {brief(self.message_id)} is none: it looks like <name@domain>")
        if self._message["From"] is None:
            line, utf8 = written("From", self._from)
            lines.append(line)
        for name, value in self._message.items():
            if name.lower() in (_ADDRESSES | _RESENT | _ANSWERS) - _NEVER_SENT:
                line, takes = written(name, address_header("To", str(value)) if name.lower() in _ANSWERS else value)
                lines.append(line)
                utf8 = utf8 or takes
            elif (other := _other(name, str(value).lstrip())) is not None:
                lines.append(other)
        return lines, utf8


def author(text: str) -> Any:
    """A From header of this text, which must name somebody. Raises `MessageRefused`."""
    header = address_header("From", text)
    if not mailboxes(header, "From"):
        raise MessageRefused("From: it names nobody")
    return header


def address_header(name: str, text: str) -> Any:
    """The text as a header of addresses. Raises `MessageRefused`."""
    check_text(name, text)
    try:
        return HeaderRegistry()(name, text)
    except Exception as error:  # the parser of headers has raised a great many things
        raise MessageRefused(f"{name}: {brief(text)} cannot be read: {type(error).__name__}: {error}") from error


def check_text(name: str, text: str) -> None:
    """Refuse what could be taken for the end of a header's line, and what no header may have in it."""
    if found := _UNFIT.search(text):
        raise MessageRefused(f"{name}: {brief(text)} has {_called(found[0])} in it: {_mended(found[0])}")


def check_headers(part: Message) -> None:
    """Refuse names and values that could be taken for more than one header, and two of what may be there once."""
    seen: set[str] = set()
    for name, raw in part.raw_items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise MessageRefused(f"{brief(name)} is no name of a header: it is ASCII without spaces and colons")
        # A parsed message keeps the folds of its headers, and only whoever wrote `\n` knows what it was to be.
        for value in (_FOLD.sub("", str(raw)), _decoded(part, name, raw)):
            check_text(name, value)
            if len(value) > _MOST and name.lower() not in _ADDRESSES | _RESENT:
                raise MessageRefused(f"{name}: it has {len(value):,} characters, and may have {_MOST:,}")
        if name.lower() in seen and name.lower() in _ONCE:
            raise MessageRefused(f"{name}: it is there twice, and may be there once")
        seen.add(name.lower())


def one_of(boxes: list[Mailbox], name: str) -> Mailbox:
    if len(boxes) != 1:
        raise MessageRefused(f"{name}: it names one address")
    return boxes[0]


def _decoded(part: Message, name: str, raw: Any) -> str:
    try:
        return str(part.policy.header_fetch_parse(name, raw))
    except Exception as error:  # the parser of headers has raised a great many things
        raise MessageRefused(f"{name}: {brief(raw)} cannot be read: {type(error).__name__}: {error}") from error


def _other(name: str, value: str) -> str | None:
    lower = name.lower()
    if lower in _NEVER_SENT or lower.startswith("content-") or lower == "mime-version":
        return None
    if lower in _EXACT or lower.startswith("list-"):
        return exact_header(name, value)
    return text_header(name, value)


def _mended(character: str) -> str:
    breaks = character.isspace() or character == "\x85"
    return 'make it one line, as " ".join(text.split()) does' if breaks else "take it out"


def _called(character: str) -> str:
    match character:
        case "\n" | "\r" | "\x0b" | "\x0c" | "\x85" | "\u2028" | "\u2029":
            return "a line break"
        case "\0":
            return "a NUL character"
        case _ if character >= "\ud800":
            return "a lone surrogate, as bytes have that were not decoded,"
        case _:
            return f"the control character {character!a}"
