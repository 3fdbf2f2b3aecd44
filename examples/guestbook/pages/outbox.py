"""The letters that would have gone out, where no mail server is set: for development alone."""

from __future__ import annotations

from email.message import EmailMessage

from flask import Blueprint, Response, abort, render_template

from rota.mail import read_folder

from ..here import guestbook

pages = Blueprint("outbox", __name__)


@pages.get("/outbox")
def outbox() -> str:
    letters = [
        {
            "number": number,
            "to": letter["To"],
            "subject": letter["Subject"],
            "date": letter["Date"],
            "text": _part(letter, "plain"),
        }
        for number, letter in enumerate(_letters())
    ]
    return render_template("outbox.html", letters=letters[::-1])


@pages.get("/outbox/<int:number>")
def letter(number: int) -> Response:
    """The letter as a mail program shows its HTML, which has its styles inside of it and may do nothing else."""
    letters = _letters()
    if number >= len(letters):
        abort(404)
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(_part(letters[number], "html"), headers={"Content-Security-Policy": policy})


def _letters() -> list[EmailMessage]:
    folder = guestbook().settings.outbox
    return [] if folder is None else read_folder(folder)


def _part(letter: EmailMessage, kind: str) -> str:
    part = letter.get_body((kind,))
    return "" if part is None else str(part.get_content())
