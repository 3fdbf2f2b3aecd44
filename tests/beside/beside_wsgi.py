"""A web application for WSGI servers; run as a script it is served by wsgiref, with a worker from the first request on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from beside_tasks import app, deliver, linger

worker = app.beside(queues=["mail"], shutdown_timeout=0.1)


def web(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    job = linger.enqueue(30) if environ["PATH_INFO"] == "/dawdle" else deliver.enqueue("Ada")
    return [job.id.encode()]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None: ...


class Server(WSGIServer):
    """Says when it is done with a request: what is raised within one, wsgiref takes for an error of the application."""

    _served = 0

    def finish_request(self, request: Any, client_address: Any) -> None:
        super().finish_request(request, client_address)
        self._served += 1
        print(f"served {self._served}", flush=True)


if __name__ == "__main__":
    with make_server("127.0.0.1", 0, worker.wsgi(web), Server, Quiet) as server:
        print(f"port={server.server_port}", flush=True)
        server.serve_forever()
