"""The one command: a server, and beside it a worker that sends the mail."""

from __future__ import annotations

import logging
import socket
from typing import Any

from waitress.server import create_server

from .app import create_app
from .guestbook import Guestbook
from .settings import asked


def main() -> None:
    """Serve until Ctrl+C or SIGTERM."""
    given = asked()
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # which warns of every request that waits a moment
    family = socket.AF_INET6 if ":" in given.host else socket.AF_INET
    with socket.create_server((given.host, given.port), family=family, backlog=64) as listener:
        settings = given.settings(listener.getsockname()[1])
        guestbook = Guestbook.of(settings)
        proxy: dict[str, Any] = {}
        if given.proxy:
            proxy = {"trusted_proxy": given.proxy, "trusted_proxy_headers": "x-forwarded-for"}
        server = create_server(create_app(guestbook), sockets=[listener], threads=8, ident=None, **proxy)
        # One letter at a time, in the order in which they were queued.
        with guestbook.jobs.beside(queues=["mail"], concurrency=1):
            print(f"The guestbook is at {settings.url} (Ctrl+C ends it).", flush=True)
            if settings.outbox is not None:
                print(f"There is no mail server: {settings.url}/outbox shows all letters to everybody.", flush=True)
            server.run()
        guestbook.close()
