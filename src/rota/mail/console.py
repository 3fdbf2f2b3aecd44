"""Mail on the screen, for development: as people would read it, so that a link can be followed."""

from __future__ import annotations

import sys
import threading
from email.message import EmailMessage

from rota.codec.text import escape
from rota.forks import in_child
from rota.mail.letter import Delivery, Letter

_RULE = "-" * 72


class ConsoleMail:
    """Writes each letter to standard output in one piece."""

    def __init__(self) -> None:
        self._unlock()
        in_child(self._unlock)

    def send(self, letter: Letter) -> Delivery:
        text = escape(_read(letter))
        with self._locked:
            if sys.stdout is not None:
                sys.stdout.write(text)
                sys.stdout.flush()
        return Delivery(message_id=letter.message_id, accepted=letter.recipients)

    def close(self) -> None:
        return

    def _unlock(self) -> None:
        self._locked = threading.Lock()


def _read(letter: Letter) -> str:
    message = letter.message
    lines = [_RULE]
    lines += [f"{name}: {value}" for name, value in message.items() if not name.lower().startswith(("content-", "mime-"))]
    lines.append(f"(goes to {', '.join(letter.recipients)})")
    body = message.get_body(("plain", "html"))
    lines += ["", _text(body).rstrip() if isinstance(body, EmailMessage) else "(no text)", ""]
    for part in message.iter_attachments():
        lines.append(f"(attached: {part.get_filename() or 'without a name'}, {part.get_content_type()})")
    return "\n".join([*lines, _RULE, ""])


def _text(body: EmailMessage) -> str:
    try:
        return str(body.get_content())
    except LookupError:  # of a charset that Python has not
        return bytes(body.get_payload(decode=True) or b"").decode("utf-8", "replace")
