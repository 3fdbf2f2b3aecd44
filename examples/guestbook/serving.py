"""The one command: a server, and beside it a worker that sends the mail."""

from __future__ import annotations

import logging
import socket
from contextlib import closing
from typing import Any

from waitress.server import create_server

from rota import RotaError

from .app import create_app
from .guestbook import Guestbook
from .settings import Settings, asked


def main() -> None:
    """Serve until Ctrl+C or SIGTERM."""
    given = asked()
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # which warns of every request that waits a moment
    try:
        with _listener(given.host, given.port) as listener:
            _serve(listener, given.settings(listener.getsockname()[1]), given.proxy)
    except RotaError as error:
        raise SystemExit(f"guestbook: {error}") from error


def _serve(listener: socket.socket, settings: Settings, proxy: str | None) -> None:
    guestbook = Guestbook.of(settings)
    trusted: dict[str, Any] = {"trusted_proxy": proxy, "trusted_proxy_headers": "x-forwarded-for"} if proxy else {}
    server = create_server(create_app(guestbook), sockets=[listener], threads=8, ident=None, **trusted)
    # One letter at a time, so that they arrive in the order in which they were queued.
    with closing(guestbook), guestbook.jobs.beside(queues=["mail"], concurrency=1):
        print(f"The guestbook is at {settings.url} (Ctrl+C ends it).", flush=True)
        if settings.shows_outbox:
            print(f"There is no mail server: {settings.url}/outbox shows all letters to everybody.", flush=True)
        elif settings.outbox is not None:
            print(f"There is no mail server: letters end in {settings.outbox}. Set GUESTBOOK_SMTP to send them.", flush=True)
        server.run()


def _listener(host: str, port: int) -> socket.socket:
    """A socket that takes connections. It comes first, for the letters' links have its port in them."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
    except OSError as error:
        raise SystemExit(f"guestbook: nothing can listen on {host} port {port}: {error.strerror or error}") from error
