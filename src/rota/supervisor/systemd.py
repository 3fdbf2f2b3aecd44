"""Telling systemd how a service is, by the protocol of `sd_notify(3)`: a datagram of lines to a socket that it names.

These lines are all that there is to the protocol, and the package that wraps them has had no release for years.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress

_PATIENCE = 120.0
"""Seconds for which a thread may be waiting for the store: killing the worker would not bring that back."""


class Notifier:
    """Says nothing where no service manager listens. Never raises, never waits."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "") if hasattr(socket, "AF_UNIX") else ""
        self._fed_at = 0.0
        self._status = ""
        self.feed_every = _watchdog() / 2
        """Seconds within which the watchdog is to be fed; infinite where there is none."""

    def ready(self, status: str) -> None:
        self.send("READY=1", f"STATUS={status}")

    def reloading(self, status: str) -> None:
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", f"STATUS={status}")

    def stopping(self, status: str) -> None:
        self.send("STOPPING=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        if status != self._status:
            self._status = status
            self.send(f"STATUS={status}")

    def feed(self) -> None:
        """The service is well; called as often as one likes."""
        now = time.monotonic()
        if self._address and now - self._fed_at >= self.feed_every:
            self._fed_at = now
            self.send("WATCHDOG=1")

    def send(self, *lines: str) -> None:
        if sys.platform == "win32" or not self._address:
            return
        # One that begins with @ has no file, and is written with a zero byte.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(), address)


def _watchdog() -> float:
    """Seconds after which systemd ends this process unless it is fed."""
    for_us = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    try:
        return int(os.environ["WATCHDOG_USEC"]) / 1_000_000 if for_us else float("inf")
    except (KeyError, ValueError):
        return float("inf")


class Announcer:
    """Signs of life of a worker without a supervisor, for systemd: see `rota.worker.signs.Signs`."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self.every = min(5.0, notifier.feed_every / 2)
        self._led = self._beat = time.monotonic()
        self._loaded = False

    def alive(self) -> None:
        if not self._loaded:
            self._loaded = True
            self._notifier.ready("waiting for the store")
        if time.monotonic() - min(self._led, self._beat) < max(2 * self._notifier.feed_every, _PATIENCE):
            self._notifier.feed()

    def led(self) -> None:
        self._led = time.monotonic()

    def beat(self) -> None:
        self._beat = time.monotonic()

    def joined(self, worker: str) -> None:
        self._notifier.status("working")

    def ended(self, jobs: int) -> None: ...

    def stopping(self) -> None:
        self._notifier.stopping("waiting for running jobs")
