"""Django's mail, queued: `EMAIL_BACKEND = "rota.mail.django.EmailBackend"`.

`ROTA_MAILER` in the settings names the mailer, as `"shop.jobs.mailer"`; `ROTA_MAIL_DATABASE` the alias of the database in whose
transaction letters are queued, `"default"` unless it says otherwise.
"""

from __future__ import annotations

import email
from collections.abc import Iterable
from email import policy
from email.message import EmailMessage
from typing import Any

from django.core.mail.backends.base import BaseEmailBackend  # type: ignore[import-untyped]
from django.utils.module_loading import import_string  # type: ignore[import-untyped]

from rota.errors import ConfigError, RotaError
from rota.mail.mailer import LaterOptions, Mailer


class EmailBackend(BaseEmailBackend):  # type: ignore[misc]  # Django has no types
    """Queues what `send_mail` and its like are given, on Django's own connection, so that it goes with the transaction.

    In a database that is not the store's, letters are queued once the transaction is committed, and never if it is not.
    Raises what `deliver_later` raises, save with `fail_silently`.
    """

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
        if (connection := _connection()) is not None:
            options["connection"] = connection
        mailer().deliver_later(converted(message), **options)


def converted(message: Any) -> EmailMessage:
    """One of Django's messages as the standard library has it, its Bcc included."""
    made = email.message_from_bytes(message.message().as_bytes(), policy=policy.default)
    assert isinstance(made, EmailMessage)
    if message.bcc:
        made["Bcc"] = ", ".join(map(str, message.bcc))
    return made


def mailer() -> Mailer:
    """The mailer that the settings name. Raises `ConfigError`."""
    path = _setting("ROTA_MAILER", None)
    if path is None:
        raise ConfigError('Django\'s settings name no mailer: say ROTA_MAILER = "shop.jobs.mailer", where one is')
    found = import_string(path)
    if not isinstance(found, Mailer):
        raise ConfigError(f"ROTA_MAILER = {path!r} is {type(found).__name__}, and no Mailer: name one that your code makes")
    return found


def _connection() -> Any:
    from django.db import connections  # type: ignore[import-untyped]

    connection = connections[_setting("ROTA_MAIL_DATABASE", "default")]
    return None if connection.settings_dict["ENGINE"] == "django.db.backends.dummy" else connection


def _setting(name: str, default: str | None) -> Any:
    from django.conf import settings  # type: ignore[import-untyped]

    return getattr(settings, name, default)
