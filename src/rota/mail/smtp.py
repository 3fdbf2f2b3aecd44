"""A connection to a mail server, on the standard library's smtplib: what that lacks is a limit on how long each step takes.

Its time-outs begin anew with each byte, so a server that sends one now and then holds it for ever; here a step has a deadline,
and so has the whole.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from rota.codec import clean
from rota.mail.errors import DeliveryFailed, DeliveryPutOff
from rota.mail.letter import Delivery, Letter
from rota.mail.replies import BUSY, LONGEST_WORDS, Replies, Reply, without

if TYPE_CHECKING:
    from rota.mail.places import Server

T = TypeVar("T")
_CHUNK = 16_384
"""Bytes of a letter for which the server has the time of a step."""
_GOODBYE = 2.0
"""Seconds that saying goodbye may take."""


class Session(smtplib.SMTP):
    """One connection, greeted and signed in. Every method raises `DeliveryFailed` or `DeliveryPutOff` and nothing else.

    `step` is the most seconds that the server may take for one answer, `whole` for all of a delivery or of the way in.
    """

    def __init__(self, server: Server, step: float, whole: float) -> None:
        super().__init__(local_hostname="", timeout=step)  # its own way to a name asks the network, without a limit
        self.server = server
        self.used = 0
        """How many letters went over it."""
        self.clean = False
        """Whether another letter may follow."""
        self.sent = False
        """Whether the server has all of the letter, so that only it knows what became of it."""
        self.since = 0.0
        """When it was put aside, by `time.monotonic`."""
        self._host = server.host
        self._step = step
        self._secrets: tuple[str, ...] = ()
        self._doing = "the connection"
        self._begin(whole)
        try:
            self._guarded(self._enter)
        except BaseException:
            self.close()
            raise
        self.clean = True

    # -- what it is for -------------------------------------------------------------------------

    def deliver(self, letter: Letter, whole: float) -> Delivery:
        """Hand the letter over, within so many seconds, and answer what was said of each recipient."""
        self._begin(whole)
        self.clean = False
        self.used += 1
        self.sent = False

        def hand_over() -> Delivery:
            wire = letter.wire()
            self._say("MAIL FROM", f"MAIL FROM:<{letter.sender}>{self._parameters(letter, len(wire))}", 2)
            accepted, delivery = self._name_recipients(letter)
            if not accepted:
                self.clean = self._reset()
                return delivery
            ready = self._say("DATA", "DATA")
            if ready.kind in (4, 5) and (delivery.refused or delivery.put_off):
                return self._told(delivery, accepted, ready)  # which is not the answer that the others have had
            self._heed(ready, 3)
            return self._told(delivery, accepted, self._send_content(wire))

        return self._guarded(hand_over)

    def alive(self) -> bool:
        """Whether the server still answers."""
        self._begin(self._step)
        try:
            return self._guarded(lambda: self._say("NOOP", "NOOP")).kind == 2
        except (DeliveryFailed, DeliveryPutOff):
            return False

    def leave(self) -> None:
        """Say goodbye and close. Raises nothing, and waits for hardly anything."""
        self._step = _GOODBYE
        self._begin(_GOODBYE)
        with suppress(Exception):
            self._ask("QUIT", "QUIT")
        self.close()

    # -- the way in -----------------------------------------------------------------------------

    def _enter(self) -> None:
        self._heed(Reply(*self.connect(self.server.host, self.server.port)), 2)
        self.local_hostname = self.server.hello or _own_name(self.sock)
        self._greet()
        if self.server.tls == "starttls":
            self._start_tls()
            self._greet()
        if self.server.user is not None and self.server.password is not None:
            self._sign_in(self.server.user, self.server.password)

    def _greet(self) -> None:
        self._doing = "EHLO"
        code, text = self.ehlo()
        if code // 100 == 5:  # from before there were extensions
            code, text = self.helo()
        self._heed(Reply(code, text), 2)

    def _start_tls(self) -> None:
        if not self.has_extn("starttls"):
            raise self._put_off("it does not offer STARTTLS: say tls=tls, or tls=none where nobody can listen in")
        self._say("STARTTLS", "STARTTLS", 2)
        if self.sock is None or self.file is None or self.file.pending:
            raise self._put_off("it said more than it was asked before TLS began, as one would who sits in between")
        self.allow(time.monotonic() + self._step)
        self.sock = _context(self.server.cafile).wrap_socket(self.sock, server_hostname=self.server.host)
        self.file = None
        self.ehlo_resp = self.helo_resp = None
        self.esmtp_features = {}
        self.does_esmtp = False

    def _sign_in(self, user: str, password: str) -> None:
        offered = self.esmtp_features.get("auth", "").upper().split()
        plain = _base64(f"\0{user}\0{password}")
        self._secrets = (plain, _base64(password), password)
        if "PLAIN" in offered:
            self._say("AUTH", f"AUTH PLAIN {plain}", 2)
        elif "LOGIN" in offered:
            self._say("AUTH", f"AUTH LOGIN {_base64(user)}", 3)
            self._say("AUTH", _base64(password), 2)
        else:
            raise self._put_off(f"it takes no user and password here (AUTH is {' '.join(offered) or 'not offered'})")

    # -- a letter -------------------------------------------------------------------------------

    def _parameters(self, letter: Letter, size: int) -> str:
        """What is said with MAIL FROM. Raises `DeliveryFailed` for what the server has said it cannot do."""
        words = ""
        if self.has_extn("size"):
            most = self.esmtp_features["size"]
            if most.isdecimal() and 0 < int(most) < size:
                raise self._failed(f"it takes letters of {int(most):,} bytes, and this one has {size:,}")
            words += f" SIZE={size}"
        if letter.utf8:
            if not self.has_extn("smtputf8"):
                raise self._failed("it has no SMTPUTF8, which addresses that are not ASCII before the @ need")
            words += " BODY=8BITMIME SMTPUTF8"
        self.command_encoding = "utf-8" if letter.utf8 else "ascii"
        return words

    def _name_recipients(self, letter: Letter) -> tuple[list[str], Delivery]:
        """Who is accepted so far, and what was said of the others."""
        accepted: list[str] = []
        delivery = Delivery(message_id=letter.message_id, refused={}, put_off={})
        for address in letter.recipients:
            reply = self._say("RCPT TO", f"RCPT TO:<{address}>")
            match reply.kind:
                case 2:
                    accepted.append(address)
                case 4:
                    delivery.put_off[address] = str(reply)
                case 5:
                    delivery.refused[address] = str(reply)
                case _:
                    self._heed(reply, 2)
        return accepted, delivery

    def _send_content(self, wire: bytes) -> Reply:
        self._doing = "the letter"
        stuffed = wire.replace(b"\r\n.", b"\r\n..")
        if stuffed.startswith(b"."):
            stuffed = b"." + stuffed
        try:
            self.send(stuffed + b".\r\n")
        except ConnectionError:
            # A server that has read enough may have said why before it hung up.
            with suppress(Exception):
                early = Reply(*self.getreply())
                if early.kind in (4, 5):
                    return early
            raise
        self.sent = True
        # Whoever does not wait for this answer sends the letter again, so it may take what is left of the whole.
        self._step, before = self._left_of_whole(), self._step
        try:
            return Reply(*self.getreply())
        finally:
            self._step = before

    def _told(self, delivery: Delivery, accepted: list[str], answer: Reply) -> Delivery:
        """What became of all, when those who were accepted are answered for together."""
        match answer.kind:
            case 2:
                self.clean = self.sent
                return Delivery(
                    message_id=delivery.message_id,
                    accepted=tuple(accepted),
                    refused=delivery.refused,
                    put_off=delivery.put_off,
                )
            case 4 if answer.code != BUSY:
                delivery.put_off.update(dict.fromkeys(accepted, str(answer)))
            case 5:
                delivery.refused.update(dict.fromkeys(accepted, str(answer)))
            case _:
                self._heed(answer, 2)
        self.clean = self.sent
        return delivery

    # -- words and answers ----------------------------------------------------------------------

    def _say(self, doing: str, line: str, wanted: int | None = None) -> Reply:
        """Send a line and answer the reply, which must be of the wanted kind. A server that closes down is always told of."""
        reply = self._ask(doing, line)
        if wanted is not None or reply.code == BUSY:
            self._heed(reply, wanted or 2)
        return reply

    def _ask(self, doing: str, line: str) -> Reply:
        self._doing = doing
        return Reply(*self.docmd(line))

    def _reset(self) -> bool:
        """Whether the server has forgotten the letter. What it said of that stands, whatever becomes of the connection."""
        try:
            return self._guarded(lambda: self._ask("RSET", "RSET")).kind == 2
        except DeliveryPutOff:
            return False

    def _heed(self, reply: Reply, wanted: int) -> None:
        if reply.kind == wanted:
            return
        said = f"{self.server.name} answered {reply} ({self._doing})"
        if reply.kind == 5:
            raise DeliveryFailed(said)
        raise DeliveryPutOff(said, busy=reply.code == BUSY, ambiguous=self.sent and reply.code != BUSY)

    def _guarded(self, call: Callable[[], T]) -> T:
        """Run it, and have whatever cuts it short told as something that may work later."""
        try:
            return call()
        except (DeliveryFailed, DeliveryPutOff):
            raise
        except smtplib.SMTPResponseException as error:
            text = error.smtp_error if isinstance(error.smtp_error, bytes) else str(error.smtp_error).encode()
            self._heed(Reply(error.smtp_code, text), 0)
            raise
        except (OSError, smtplib.SMTPException, ValueError) as error:
            self.close()
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> DeliveryPutOff:
        cause = error.__context__ if isinstance(error, smtplib.SMTPServerDisconnected) and error.__context__ else error
        if isinstance(cause, TimeoutError):
            why = f"did not answer in {self._step:g} s" if self._left_of_whole() > 0 else "took too long in all"
        elif isinstance(cause, ssl.SSLCertVerificationError):
            why = f"has a certificate that cannot be trusted: {cause.verify_message}"
        else:
            why = f"was lost: {clean(str(cause), LONGEST_WORDS) or type(cause).__name__}"
        if self.sent:
            why += " after the whole letter was sent, which may have been delivered"
        return DeliveryPutOff(f"{self.server.name} {why} ({self._doing})", ambiguous=self.sent)

    # -- time -----------------------------------------------------------------------------------

    def _begin(self, whole: float) -> None:
        self._whole_ends = time.monotonic() + whole

    def _left_of_whole(self) -> float:
        return self._whole_ends - time.monotonic()

    def allow(self, until: float) -> None:
        """Give the socket the time until then, by `time.monotonic`, and no longer than the whole has left."""
        left = min(until, self._whole_ends) - time.monotonic()
        if left <= 0:
            raise TimeoutError
        assert self.sock is not None
        self.sock.settimeout(left)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        made = self._reach(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        made.settimeout(max(0.001, min(self._step, self._left_of_whole())))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.tls == "tls":
            self._doing = "TLS"
            try:
                made = _context(self.server.cafile).wrap_socket(made, server_hostname=self.server.host)
            except BaseException:
                made.close()
                raise
        self._doing = "the greeting"
        return made

    def _reach(self, addresses: Sequence[tuple[Any, ...]]) -> socket.socket:
        """The first of a server's addresses that answers; all of them together have the time of one step."""
        until = time.monotonic() + min(self._step, self._left_of_whole())
        failed: OSError = TimeoutError()
        for place, (family, kind, protocol, _, address) in enumerate(addresses):
            made = socket.socket(family, kind, protocol)
            made.settimeout(max(0.001, (until - time.monotonic()) / (len(addresses) - place)))
            try:
                made.connect(address)
                return made
            except OSError as error:
                made.close()
                failed = error
        raise failed

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None:
            self.file = Replies(self)
        self.file.begin(time.monotonic() + self._step)
        code, text = super().getreply()
        return code, without(self._secrets, text)

    def send(self, s: object) -> None:
        """As the base has it, a piece at a time, each of which has the time of a step."""
        text = s if isinstance(s, bytes) else str(s).encode(self.command_encoding)
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("it is closed")
        for start in range(0, len(text), _CHUNK):
            self.allow(time.monotonic() + self._step)
            self.sock.sendall(text[start : start + _CHUNK])

    # -- words for errors -----------------------------------------------------------------------

    def _failed(self, why: str) -> DeliveryFailed:
        return DeliveryFailed(f"{self.server.name}: {why}")

    def _put_off(self, why: str) -> DeliveryPutOff:
        return DeliveryPutOff(f"{self.server.name}: {why}")


@cache
def _context(cafile: str | None) -> ssl.SSLContext:
    """Trusts who the system trusts, or the file's certificates alone, and wants the name to be right."""
    return ssl.create_default_context(cafile=cafile)


def _own_name(sock: socket.socket | None) -> str:
    """What this machine calls itself in a greeting: its name where that is a full one, or else its address."""
    name = socket.gethostname()
    if "." in name and name.isascii():
        return name
    address = "127.0.0.1" if sock is None else str(sock.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
