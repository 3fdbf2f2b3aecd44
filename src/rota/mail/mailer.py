"""The mailer: takes messages, sends them now or has a worker send them, and settles what became of each recipient."""

from __future__ import annotations

import logging
import os
import random
from datetime import datetime, timedelta
from email.message import EmailMessage
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack, assert_never

from msgspec.structs import replace

from rota.clock import SECOND, at, machine_now, span
from rota.codec.wire import brief
from rota.context import current_job
from rota.errors import ConfigError, DriverMissing, PayloadTooLarge
from rota.handle import Job
from rota.ids import new_id
from rota.mail.errors import DeliveryFailed, DeliveryPutOff, MessageRefused
from rota.mail.folder import FolderMail
from rota.mail.letter import Delivery, Letter, letter_of
from rota.mail.places import Console, Folder, Place, Server, place_of
from rota.options import OwnConnection
from rota.rules.retry import DEFAULT
from rota.signals import Abandon, Snooze

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.rules.limits import ConcurrencyOption, RateOption
    from rota.task import Task

log = logging.getLogger("rota")

MAX_SIZE = 10 * 1024 * 1024
"""Bytes that a letter may weigh where nothing else is said."""
ATTEMPTS = 10
"""Attempts of a letter where nothing else is said: with the waits between them, four hours."""
_REST_AFTER = 60.0
"""Seconds after which those who were put off, when others were not, are tried again: such servers want some time to pass."""
_LONGEST_REST = 300.0
"""Seconds that a busy server is left alone at the most."""
_PATIENCE = 1_000
"""How many times in all a busy server is waited for without an attempt being used: about three days."""


class Transport(Protocol):
    """What takes letters to where they go."""

    def send(self, letter: Letter) -> Delivery: ...
    def close(self) -> None: ...


class LaterOptions(TypedDict, total=False):
    """What `deliver_later` can be told: the options of `using`."""

    queue: str | None
    priority: int | None
    delay: float | timedelta | None
    run_at: datetime | None
    key: str | None
    key_until: Literal["finished", "started"] | None
    max_attempts: int | None
    connection: OwnConnection | None


class Mailer:
    """Sends mail for an app, and registers the task that does so later.

    `url` says where mail goes; without it `ROTA_MAIL_URL` is read.

    - `smtp://user:password@host:587`: a mail server. TLS is begun with STARTTLS, and the certificate must be right; `?tls=tls`
      has it from the start, as `smtps://` does; `?tls=none` has none, which is the default for this machine alone (localhost).
      `cafile=` names whom to trust instead of those the system trusts, `hello=` the name to greet with.
    - `file:///var/mail` (or `file:mail`, from here): a folder, in which each letter is a file. For development.
    - `console:`: the standard output, where it can be read.

    Options:

    - `sender`: who it is from where a message has no From, as `shop@example.org` or `The shop <shop@example.org>`.
    - `name`, `queue`, `max_attempts`, `retry`, `rate`, `concurrency`: what the task is declared with. Ten attempts by default,
      which span four hours, for mail servers are down for longer than most things.
    - `timeout`: the most seconds that the server may take for each step; `total_timeout`: for all of a delivery.
    - `connections`: the most connections that this process has open at once; `idle`: the seconds after which one that nobody
      uses is closed; with 0 each letter has its own.
    - `max_size`: the most bytes that a letter may weigh as it is sent.

    Any thread may use it, and forks may too. Raises `ConfigError` for what cannot be right.

    >>> from rota import Rota
    >>> app = Rota("memory://")
    >>> mailer = Mailer(app, url="file:outbox", sender="shop@example.org")
    >>> message = EmailMessage()
    >>> message["To"] = "Ada <ada@example.org>"
    >>> message["Subject"] = "Welcome"
    >>> message.set_content("Good to have you.")
    >>> mailer.deliver(message).accepted
    ('ada@example.org',)
    >>> mailer.deliver_later(message, delay=60).queue
    'mail'
    >>> app.close()
    """

    def __init__(
        self,
        app: Rota,
        url: str | None = None,
        *,
        sender: str | None = None,
        name: str = "deliver",
        queue: str = "mail",
        max_attempts: int = ATTEMPTS,
        retry: object = DEFAULT,
        rate: RateOption | None = None,
        concurrency: ConcurrencyOption | None = None,
        timeout: float | timedelta = 30.0,
        total_timeout: float | timedelta = 120.0,
        connections: int = 4,
        idle: float | timedelta = 10.0,
        max_size: int = MAX_SIZE,
    ) -> None:
        if name in app.tasks:
            raise ConfigError(f"the app has a task named {name} already: give this mailer another name, with Mailer(…, name=…)")
        self._app = app
        self._max_size = _positive("max_size", max_size)
        self._place = place_of(_url(url))
        self._transport = _transport(
            self._place,
            most=_positive("connections", connections),
            idle=span(idle, "idle") / SECOND,
            step=_time("timeout", timeout),
            whole=_time("total_timeout", total_timeout),
        )
        self._sender = None if sender is None else _sender(sender)

        def deliver(message: Letter) -> Delivery:
            return self._perform(message)

        self.task: Task[[Letter], Delivery, Delivery] = app.task(
            name=name,
            queue=queue,
            max_attempts=max_attempts,
            retry=retry,
            rate=rate,
            concurrency=concurrency,
            keep_result=True,
        )(deliver)
        """The task that sends what `deliver_later` queues."""

    # -- sending --------------------------------------------------------------------------------

    def deliver(self, message: EmailMessage | Letter) -> Delivery:
        """Send the message now, and answer what became of each recipient, where at least one was accepted.

        Raises `MessageRefused` for one that cannot be sent as it is, before any server is asked; `DeliveryFailed` where the
        server refused it for good, and `DeliveryPutOff` where it may work later: then nobody got it.
        """
        return _settled(self._transport.send(self.letter(message)))

    async def adeliver(self, message: EmailMessage | Letter) -> Delivery:
        """`deliver` for coroutines: it runs in a thread."""
        import asyncio

        return await asyncio.to_thread(self.deliver, message)

    def deliver_later(self, message: EmailMessage | Letter, **options: Unpack[LaterOptions]) -> Job[Delivery]:
        """Queue the message for a worker to send, and answer the job; the options are those of `using`.

        Raises `MessageRefused`, and then nothing is queued. Message-ID and Date are fixed now, so that a letter which comes
        twice can be recognised. With `connection=`, the letter goes out if your transaction is committed.
        """
        letter = self.letter(message)
        try:
            return self.task.using(**options).enqueue(letter)
        except PayloadTooLarge as error:
            raise MessageRefused(str(error)) from error

    async def adeliver_later(self, message: EmailMessage | Letter, **options: Unpack[LaterOptions]) -> Job[Delivery]:
        """`deliver_later` for coroutines."""
        import asyncio

        letter = await asyncio.to_thread(self.letter, message)  # which takes a while where much is attached
        try:
            return await self.task.using(**options).aenqueue(letter)
        except PayloadTooLarge as error:
            raise MessageRefused(str(error)) from error

    def letter(self, message: EmailMessage | Letter) -> Letter:
        """The message, checked and written out as it would be sent; it stays as it is. Raises `MessageRefused`.

        >>> from rota import Rota
        >>> from rota.mail import compose
        >>> app = Rota("memory://")
        >>> mailer = Mailer(app, url="console:", sender="shop@example.org")
        >>> mailer.letter(compose(to="nobody", subject="Welcome", text="Good to have you."))
        Traceback (most recent call last):
        rota.mail.errors.MessageRefused: To: 'nobody' is no address: an email address must have an @-sign
        """
        if isinstance(message, Letter):
            return message
        now = self._app.now()
        return letter_of(
            message,
            sender=self._sender,
            now=at(machine_now() if now is None else now),
            domain_id=new_id(),
            max_size=self._max_size,
        )

    def close(self) -> None:
        """Close the connections that lie idle, at once. The mailer can still be used, and opens others."""
        self._transport.close()

    def __repr__(self) -> str:
        return f"<Mailer {self.task.name} to {self._place.name}>"

    # -- in a worker ----------------------------------------------------------------------------

    def _perform(self, letter: Letter) -> Delivery:
        """The body of the task."""
        try:
            delivery = self._transport.send(letter)
            if sum(map(bool, (delivery.accepted, delivery.refused, delivery.put_off))) > 1:
                self._pass_on(letter, delivery)
                return delivery
            return _settled(delivery)
        except DeliveryFailed as error:
            raise Abandon(str(error)) from error
        except DeliveryPutOff as error:
            if error.busy and (waited := current_job().excused) < _PATIENCE:
                log.info("%s will be delivered later: %s", letter.message_id, error)
                raise Snooze(_rest(waited)) from error
            raise

    def _pass_on(self, letter: Letter, delivery: Delivery) -> None:
        """Have those who were not accepted tried again by jobs of their own, so that nobody who was gets a second letter.

        Those who were refused for good get one too: it fails with the server's words, and is there to be retried by hand.
        """
        job = current_job()
        log.warning("%s: %s", letter.message_id, delivery)
        for whom, delay in ((delivery.put_off, _REST_AFTER), (delivery.refused, 0.0)):
            if whom:
                rest = replace(letter, recipients=tuple(whom))
                alike = self.task.using(queue=job.queue, priority=job.priority, max_attempts=job.max_attempts)
                alike.using(delay=delay, key=_key(job.id, rest)).enqueue(rest)


def _settled(delivery: Delivery) -> Delivery:
    """The delivery, if anybody was accepted."""
    if delivery.accepted:
        return delivery
    if delivery.put_off:
        raise DeliveryPutOff(str(delivery), delivery)
    raise DeliveryFailed(str(delivery), delivery)


def _rest(waited: int) -> float:
    """How long a busy server is left alone: longer each time, and not by all at the same moment."""
    return round(min(_LONGEST_REST, 2.0 ** min(waited, 10)) * random.uniform(0.5, 1.0), 1)  # noqa: S311  # chance, not a secret


def _key(job: str, rest: Letter) -> str:
    """The same for what is left of a job for the same people: one unfinished job is enough, should this be done twice."""
    return f"rest {sha256(repr((job, rest.recipients)).encode()).hexdigest()[:32]}"


def _transport(place: Place, *, most: int, idle: float, step: float, whole: float) -> Transport:
    match place:
        case Folder(path):
            return FolderMail(path)
        case Console():
            from rota.mail.console import ConsoleMail

            return ConsoleMail()
        case Server():
            from rota.mail.connections import Connections

            return Connections(place, most=most, idle=idle, step=step, whole=whole)
    assert_never(place)


def _url(given: str | None) -> str:
    url = os.environ.get("ROTA_MAIL_URL") if given is None else given
    if not url:
        raise ConfigError("a mailer needs a URL: Mailer(app, url=…), or ROTA_MAIL_URL; console: is one for development")
    return url


def _sender(text: str) -> str:
    """The sender, if it is one. Raises `ConfigError`."""
    from rota.mail.headers import author

    try:
        author(text)
    except DriverMissing:
        raise
    except (MessageRefused, ValueError, TypeError) as error:
        raise ConfigError(f"sender={brief(text)} is no sender: {error}") from error
    return text


def _time(name: str, given: float | timedelta) -> float:
    seconds = span(given, name) / SECOND
    if not seconds:
        raise ConfigError(f"{name}={given!r}: no server could answer; give it some seconds")
    return seconds


def _positive(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ConfigError(f"{name}={brief(given)}: it is a whole number from 1 on")
    return given
