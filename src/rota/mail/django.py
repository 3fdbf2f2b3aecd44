"""Django's mail, queued.

From Django 6.1 on with `MAILERS = {"default": {"BACKEND": "rota.mail.django.EmailBackend", "OPTIONS": {"mailer": …}}}`, before
that with `EMAIL_BACKEND = "rota.mail.django.EmailBackend"` and `ROTA_MAILER`.
"""

from __future__ import annotations

import email
from collections.abc import Iterable
from email import policy
from email.message import EmailMessage
from typing import Any

from django.core.mail.backends.base import BaseEmailBackend  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]
from msgspec.structs import replace

from rota.errors import ConfigError, RotaError
from rota.mail.addresses import mailboxes
from rota.mail.headers import address_header, author
from rota.mail.letter import Letter, each_once
from rota.mail.mailer import LaterOptions, Mailer


class EmailBackend(BaseEmailBackend):  # type: ignore[misc]  # Django has no types
    """Queues what `send_mail` and its like are given, on Django's own connection, so that it goes with the transaction.

    - `mailer`: where the mailer is, as `"shop.jobs.mailer"`; without it the setting `ROTA_MAILER` says so.
    - `database`: the alias of the database in whose transaction letters are queued: by default the setting
      `ROTA_MAIL_DATABASE`, or else `"default"`.

    In a database that is not the store's, letters are queued once the transaction is committed, and never if it is not.
    Raises what `deliver_later` raises, save with `fail_silently`.
    """

    def __init__(
        self, fail_silently: bool = False, *, mailer: str | None = None, database: str | None = None, **options: Any
    ) -> None:
        # Django before 6.1 hands these to every backend, whether anybody gave them or not.
        given = {name: value for name, value in options.items() if value is not None or name not in ("username", "password")}
        super().__init__(**given)
        self.fail_silently = fail_silently
        self._mailer = mailer
        self._database = database

    def send_messages(self, email_messages: Iterable[Any]) -> int:
        """Queue these messages, and answer how many; one without recipients is passed over, as Django does."""
        sent = 0
        for message in email_messages:
            if message.recipients():
                try:
                    self._queue(message)
                except RotaError:
                    if not self.fail_silently:
                        raise
                    continue
                sent += 1
        return sent

    def _queue(self, message: Any) -> None:
        options: LaterOptions = {}
        if (connection := _connection(self._database or _setting("ROTA_MAIL_DATABASE") or "default")) is not None:
            options["connection"] = connection
        found = mailer(self._mailer or _setting("ROTA_MAILER"))
        found.deliver_later(letter(found, message), **options)


def letter(mailer: Mailer, message: Any) -> Letter:
    """One of Django's messages as the mailer sends it, from and to whom Django would. Raises `MessageRefused`.

    Its headers do not say that: `headers={"To": ...}` is what is shown in the place of `to`, and `from_email` hears of what
    bounces, whatever is shown as From.
    """
    made = email.message_from_bytes(message.message().as_bytes(), policy=policy.default)
    assert isinstance(made, EmailMessage)
    [sender, *_] = mailboxes(author(str(message.from_email)), "from_email")
    to = mailboxes(address_header("Bcc", ", ".join(map(str, message.recipients()))), "recipients")
    for name, given in _addresses(message).items():
        if name in made:
            # Django encodes what is not ASCII before an @ too, in words that no address can have.
            made.replace_header(name, address_header(name, ", ".join(map(str, given))))
    del made["Bcc"]
    made["Bcc"] = ", ".join(box.address for box in to)
    letter = mailer.letter(made)
    return replace(letter, sender=sender.address, recipients=each_once(to), utf8=letter.utf8 or sender.utf8)


def _addresses(message: Any) -> dict[str, Iterable[object]]:
    """The headers of addresses that are what the message's attributes say, and no other header replaces."""
    said = {"From": [message.from_email], "To": message.to, "Cc": message.cc, "Reply-To": message.reply_to}
    others = {name.lower() for name in message.extra_headers}
    return {name: given for name, given in said.items() if given and name.lower() not in others}


def mailer(path: str | None) -> Mailer:
    """The mailer that is there. Raises `ConfigError`."""
    if path is None:
        raise ConfigError('Django\'s settings name no mailer: say ROTA_MAILER = "shop.jobs.mailer", where one is')
    found = import_string(path)
    if not isinstance(found, Mailer):
        raise ConfigError(
            f"the mailer {path!r} of Django's settings is {type(found).__name__}, and no Mailer: name one that your code makes"
        )
    return found


def _connection(alias: str) -> Any:
    from django.db import connections  # type: ignore[import-untyped]

    connection = connections[alias]
    return None if connection.settings_dict["ENGINE"] == "django.db.backends.dummy" else connection


def _setting(name: str) -> str | None:
    from django.conf import settings  # type: ignore[import-untyped]

    found: str | None = getattr(settings, name, None)
    return found
