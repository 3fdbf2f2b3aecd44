"""Messages made in one call, for those whom `EmailMessage` alone would take five."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path

from rota.codec.wire import brief

Attachment = Path | tuple[str, bytes] | tuple[str, bytes, str]
"""A file; or its name and content, and perhaps its type, such as `application/pdf`."""


def compose(
    *,
    to: str | Sequence[str] = (),
    subject: str,
    text: str | None = None,
    html: str | None = None,
    sender: str | None = None,
    cc: str | Sequence[str] = (),
    bcc: str | Sequence[str] = (),
    reply_to: str | Sequence[str] = (),
    attachments: Sequence[Attachment] = (),
    headers: Mapping[str, str] | None = None,
) -> EmailMessage:
    """A message of text, of HTML, or of both as alternatives, with attachments. Most is checked when it is delivered or queued.

    A file of a type such as `message/rfc822` is attached as `application/octet-stream`, for mail lets no such part be encoded;
    `message.add_attachment(other_message)` attaches a message as one.

    Addresses are text, `ada@example.org` or `Ada Lovelace <ada@example.org>`: one, or a list of them. Raises `MessageRefused`
    for a header that the standard library would not hold, one with a line break for instance, and `OSError` for a file that
    cannot be read.

    >>> message = compose(to="Ada <ada@example.org>", subject="Welcome", text="Good to have you.", html="<p>Good to have you.")
    >>> message.get_content_type()
    'multipart/alternative'
    """
    from rota.mail.errors import MessageRefused
    from rota.mail.headers import check_text

    message = EmailMessage()
    fields = {"From": sender, "To": to, "Cc": cc, "Bcc": bcc, "Reply-To": reply_to, "Subject": subject}
    for name, value in (*fields.items(), *(headers or {}).items()):
        if value is None or (not value and name != "Subject"):
            continue
        try:
            message[name] = value if isinstance(value, str) else ", ".join(value)
        except Exception as error:  # the parser of headers has raised a great many things
            for each in value if isinstance(value, list | tuple) else [value]:
                check_text(name, str(each))  # which has better words for line breaks
            why = error if isinstance(error, ValueError) else "it cannot be read"
            raise MessageRefused(f"{name}: {brief(value)} cannot be a header: {why}") from error
    try:
        if text is not None or html is None:
            message.set_content(text or "")
            if html is not None:
                message.add_alternative(html, subtype="html")
        else:
            message.set_content(html, subtype="html")
    except UnicodeEncodeError as error:
        raise MessageRefused(f"the text has a lone surrogate in it, as bytes have that were not decoded: {error}") from error
    for attachment in attachments:
        _attach(message, attachment)
    return message


def _attach(message: EmailMessage, attachment: Attachment) -> None:
    from rota.mail.errors import MessageRefused

    if isinstance(attachment, Path):
        attachment = (attachment.name, attachment.read_bytes())
    name, content, *given = attachment
    kind = given[0] if given else mimetypes.guess_type(name)[0] or "application/octet-stream"
    maintype, _, subtype = str(kind).partition("/")
    if maintype.lower() in ("message", "multipart"):
        maintype, subtype = "application", "octet-stream"
    try:
        message.add_attachment(content, maintype=maintype, subtype=subtype, filename=name)
    except ValueError as error:
        raise MessageRefused(f"the attachment {brief(name)} of type {brief(kind)} cannot be added: {error}") from error
