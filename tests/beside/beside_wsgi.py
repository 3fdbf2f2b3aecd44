"""A web application for WSGI servers; run as a script it is served by wsgiref, with a worker from the first request on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from beside_tasks import app, deliver, linger

worker = app.beside(queues=["mail"], shutdown_timeout=0.1)


def web(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    job = linger.enqueue(30) if environ["PATH_INFO"] == "/dawdle" else deliver.enqueue("Ada")
    return [job.id.encode()]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None: ...


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, worker.wsgi(web), handler_class=Quiet) as server:
        print(f"port={server.server_port}", flush=True)
        server.serve_forever()
