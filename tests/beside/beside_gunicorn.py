"""How gunicorn runs `beside_wsgi`: loaded before the fork, with a worker in each of its processes."""

from __future__ import annotations

from typing import Any

bind = "127.0.0.1:0"
workers = 2
preload_app = True
wsgi_app = "beside_wsgi:web"
control_socket_disable = True


def post_fork(server: Any, process: Any) -> None:
    from beside_wsgi import worker

    worker.start()
