"""The connections of this process to one mail server: a few, used again and again, and closed when nobody needs them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rota.forks import in_child
from rota.mail.errors import DeliveryPutOff
from rota.mail.letter import Delivery, Letter

if TYPE_CHECKING:
    from rota.mail.places import Server
    from rota.mail.smtp import Session

_FRESH = 1.0
"""Seconds after which a connection that was put aside is asked whether it still lives."""


class Connections:
    """Any thread may send; no more than `most` connections are open at once, and who finds none free waits.

    A fork has connections of its own.
    """

    def __init__(self, server: Server, *, most: int, idle: float, step: float, whole: float) -> None:
        self._server = server
        self._most = most
        self._idle = idle
        self._step = step
        self._whole = whole
        self._changed = threading.Condition()
        self._busy = 0
        self._aside: list[Session] = []
        """Those that nobody uses, the one that was used last at the end."""
        self._timer: threading.Timer | None = None
        in_child(self._forget)

    def send(self, letter: Letter) -> Delivery:
        """Hand the letter over. Raises `DeliveryFailed` and `DeliveryPutOff`, where no recipient was spoken of."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._busy < self._most, self._whole):
                raise DeliveryPutOff(
                    f"{self._server.name}: none of {self._most} connections was free in {self._whole:g} s", busy=True
                )
            self._busy += 1
        try:
            return self._send(letter, time.monotonic() + self._whole)
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify()

    def close(self) -> None:
        """Close what is put aside. What is in use is closed when it is done; the next letter opens one again."""
        with self._changed:
            idle, self._aside = self._aside, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for session in idle:
            session.leave()

    # -- inside ---------------------------------------------------------------------------------

    def _forget(self) -> None:
        """In a forked child: the connections are the parent's, which must not hear a word from here."""
        inherited, self._aside = self._aside, []
        self._changed = threading.Condition()
        self._busy = 0
        self._timer = None
        for session in inherited:
            session.close()

    def _send(self, letter: Letter, until: float) -> Delivery:
        while (session := self._take()) is not None:
            try:
                return self._hand_over(session, letter, until)
            except DeliveryPutOff as late:
                # It had gone while it lay idle, or has had its number of letters: a new one will do.
                if session.sent or not (late.busy or session.sock is None):
                    raise
        return self._hand_over(self._open(until), letter, until)

    def _hand_over(self, session: Session, letter: Letter, until: float) -> Delivery:
        try:
            return session.deliver(letter, until - time.monotonic())
        finally:
            self._put_aside(session)

    def _open(self, until: float) -> Session:
        from rota.mail.smtp import Session

        return Session(self._server, self._step, until - time.monotonic())

    def _take(self) -> Session | None:
        """One that was put aside and lives."""
        while True:
            with self._changed:
                if not self._aside:
                    return None
                session = self._aside.pop()
            if time.monotonic() - session.since < _FRESH or session.alive():
                return session
            session.close()

    def _put_aside(self, session: Session) -> None:
        if not session.clean or not self._idle:
            session.leave()
            return
        session.since = time.monotonic()
        with self._changed:
            if self._timer is not None or self._wakes_in(self._idle):
                self._aside.append(session)
                return
        session.leave()

    def _wakes_in(self, seconds: float) -> bool:
        """Have the idle ones closed then, and answer whether there is a thread to do it."""
        self._timer = threading.Timer(seconds, self._close_idle)
        self._timer.name = "rota-mail-idle"
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:  # no more threads, or the program ends: of a letter that was sent nobody may hear that
            self._timer = None
        return self._timer is not None

    def _close_idle(self) -> None:
        with self._changed:
            if threading.current_thread() is not self._timer:
                return  # closed meanwhile, or in another process
            now = time.monotonic()
            gone = [session for session in self._aside if now - session.since >= self._idle]
            self._aside = [session for session in self._aside if session not in gone]
            self._timer = None
            if self._aside and not self._wakes_in(max(0.01, self._aside[0].since + self._idle - now)):
                gone, self._aside = gone + self._aside, []
        for session in gone:
            session.leave()
