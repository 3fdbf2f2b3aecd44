"""The guestbook's letters: what each says, and the signed link that it carries.

Each is queued on the session that it is given, and sent by a worker once that is committed. None repeats what its sender
typed, such as a name: anybody may type anybody's address, and a letter must not carry a stranger's words.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from sqlalchemy.orm import Session

from rota.mail import Mailer, compose

from .links import LIFETIMES, Links
from .models import Account

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates" / "letters"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Letters:
    def __init__(self, mailer: Mailer, links: Links, url: str) -> None:
        self._mailer = mailer
        self._links = links
        self._url = url

    def confirm(self, session: Session, account: Account) -> None:
        """Asks to confirm the address of a new account."""
        self._queue(session, account, "confirm", "Confirm your address", link=self._to_confirm(account))

    def already(self, session: Session, account: Account) -> None:
        """Says that somebody signed up with an address that has an account."""
        confirm = None if account.confirmed_at else self._to_confirm(account)
        links = {"sign_in": f"{self._url}/sign-in", "forgotten": f"{self._url}/resets", "confirm": confirm}
        self._queue(session, account, "already", "You have an account already", **links)

    def reset(self, session: Session, account: Account) -> None:
        """Has a link to choose another password. It is bound to the digest the account keeps, so it works once."""
        token = self._links.token("reset", account)
        self._queue(session, account, "reset", "Choose another password", link=f"{self._url}/resets/{token}/edit")

    def changed(self, session: Session, account: Account) -> None:
        """Says that the password was changed."""
        self._queue(session, account, "changed", "Your password was changed", forgotten=f"{self._url}/resets")

    def unlock(self, session: Session, account: Account) -> None:
        """Says that the account is locked, with a link that unlocks it. It is bound to this lock."""
        token = self._links.token("unlock", account)
        self._queue(session, account, "unlock", "Your account is locked", link=f"{self._url}/unlock/{token}")

    def _to_confirm(self, account: Account) -> str:
        return f"{self._url}/confirm/{self._links.token('confirm', account)}"

    def _queue(self, session: Session, account: Account, template: str, subject: str, **links: str | None) -> None:
        told = {"subject": subject, "url": self._url, "hours": LIFETIMES.get(template, 0) // 3600, **links}
        message = compose(
            to=account.email,
            subject=subject,
            text=_templates.get_template(f"{template}.txt").render(told),
            html=_templates.get_template(f"{template}.html").render(told),
            headers={"Auto-Submitted": "auto-generated"},
        )
        self._mailer.deliver_later(message, connection=session)
