"""Mail as files in a folder, for development: one `.eml` a letter, which every mail program opens."""

from __future__ import annotations

import email
import os
from contextlib import suppress
from email import policy
from email.message import EmailMessage
from pathlib import Path

from rota.ids import new_id
from rota.mail.errors import DeliveryPutOff
from rota.mail.letter import Delivery, Letter


class FolderMail:
    """Writes each letter to a file that is there as a whole or not at all; later letters have names that sort after earlier.

    Above the letter stand two headers that no mail server would send: `X-Envelope-From` and `X-Envelope-To`, Bcc included.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, letter: Letter) -> Delivery:
        name = new_id()
        unready, ready = self._folder / f".{name}.part", self._folder / f"{name}.eml"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with unready.open("xb") as file:
                file.write(_envelope(letter) + letter.wire())
                file.flush()
                os.fsync(file.fileno())
            unready.replace(ready)
        except OSError as error:
            with suppress(OSError):
                unready.unlink(missing_ok=True)
            raise DeliveryPutOff(f"the mail folder {self._folder} cannot be written to: {error}") from error
        return Delivery(message_id=letter.message_id, accepted=letter.recipients)

    def close(self) -> None:
        return


def read_folder(folder: str | Path) -> list[EmailMessage]:
    """The messages of a mailer with a `file:` URL, oldest first: for tests, and for a page that shows them in development.

    A folder that is not there yet has none. Besides its own headers each has `X-Envelope-From` and `X-Envelope-To`.

    >>> from rota import Rota
    >>> from rota.mail import Mailer, compose
    >>> mailer = Mailer(Rota("memory://"), "file:outbox", sender="shop@example.org")
    >>> delivery = mailer.deliver(compose(to="ada@example.org", subject="Welcome", text="Good to have you."))
    >>> [message["Subject"] for message in read_folder("outbox")]
    ['Welcome']
    """
    paths = sorted(Path(folder).glob("*.eml"))
    return [email.message_from_string(path.read_bytes().decode(), policy=policy.default) for path in paths]


def _envelope(letter: Letter) -> bytes:
    to = ",\r\n ".join(letter.recipients)
    return f"X-Envelope-From: {letter.sender}\r\nX-Envelope-To: {to}\r\n".encode()
