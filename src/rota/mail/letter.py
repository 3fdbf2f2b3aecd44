"""A message made ready to send: checked, and written out as it will go over the wire."""

from __future__ import annotations

import email
import re
from datetime import datetime
from email import policy
from email.message import EmailMessage
from typing import TYPE_CHECKING

from msgspec import Struct

from rota.codec.wire import brief
from rota.mail.errors import MessageRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.mail.addresses import Mailbox


_LINE_END = re.compile("\r\n|\r|\n")


class Letter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as a job has it: the envelope, and the whole text that goes over the wire, byte for byte.

    Made by `mailer.letter(message)`, and taken wherever a message is.
    """

    subject: str = ""
    """For people who look at the job."""
    sender: str
    """The envelope's: who hears of mail that bounces."""
    recipients: tuple[str, ...]
    """The envelope's, those in Bcc included."""
    message_id: str
    utf8: bool = False
    """Whether an address is not ASCII before its @, which servers without SMTPUTF8 cannot take."""
    content: str
    r"""Headers and body, each line ended by `\n` alone. It is ASCII, save for addresses where `utf8` is set."""

    def wire(self) -> bytes:
        r"""The bytes that go over the wire, before dots are doubled: lines end with `\r\n`, and no `\r` or `\n` is alone."""
        text = _LINE_END.sub("\r\n", self.content)
        return (text if text.endswith("\r\n") else f"{text}\r\n").encode()

    @property
    def message(self) -> EmailMessage:
        """The message, parsed anew, to be looked at."""
        return email.message_from_string(self.content, policy=policy.default)


class Delivery(Struct, frozen=True, kw_only=True):
    """What became of a letter, recipient by recipient. Who was refused or put off is there with the server's words."""

    message_id: str
    accepted: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    """Not accepted, and never will be."""
    put_off: dict[str, str] = {}
    """Not accepted now, and perhaps later."""

    def __str__(self) -> str:
        parts = {("accepted", ""): list(self.accepted)} if self.accepted else {}
        for what, whom in (("refused", self.refused), ("put off", self.put_off)):
            for address, words in whom.items():
                parts.setdefault((what, f" ({words})"), []).append(address)
        return "; ".join(f"{what}: {', '.join(whom)}{words}" for (what, words), whom in parts.items()) or "nobody"


def letter_of(message: EmailMessage, *, sender: str | None, now: datetime, domain_id: str, max_size: int) -> Letter:
    """Check a message and write it out. Raises `MessageRefused`. The message itself stays as it is.

    `sender` stands in where it has no From, `now` where it has no Date, and `domain_id` is what a new Message-ID begins with.
    """
    from rota.mail.headers import Headers
    from rota.mail.rendering import body_of

    headers = Headers(_checked(message), sender)
    to = headers.recipients()
    if not to:
        raise MessageRefused("it has no recipient: say whom it goes to in To, Cc or Bcc")
    mime, body = body_of(message)
    head, utf8 = headers.written(now, domain_id)
    content = "\n".join([*head, *mime]) + "\n\n" + body
    _check_lines(content, utf8)
    letter = Letter(
        subject=headers.subject,
        sender=headers.sender.address,
        recipients=each_once(to),
        message_id=headers.message_id,
        utf8=utf8 or any(box.utf8 for box in (headers.sender, *to)),
        content=content,
    )
    size = len(content) + content.count("\n")
    if size > max_size:
        raise MessageRefused(
            f"it weighs {size:,} bytes as it is sent, and the limit is {max_size:,}: link to large files instead"
        )
    return letter


def _checked(message: EmailMessage) -> EmailMessage:
    if not isinstance(message, EmailMessage) or not isinstance(message.policy, policy.EmailPolicy):
        raise MessageRefused(
            f"{brief(message)} is no email.message.EmailMessage with its usual policy: make one, for example with "
            "rota.mail.compose, or with email.message_from_bytes(old.as_bytes(), policy=email.policy.default)"
        )
    return message


def _check_lines(content: str, utf8: bool) -> None:
    from rota.mail.words import LONGEST

    for number, line in enumerate(content.split("\n"), 1):
        if "\0" in line or len(line) > LONGEST or (not line.isascii() and (not utf8 or len(line.encode()) > LONGEST)):
            raise MessageRefused(f"line {number} of what would be sent cannot be written as mail has it: {brief(line)}")


def each_once(boxes: Sequence[Mailbox]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(box.address for box in boxes))
