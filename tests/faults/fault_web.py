"""A web server with a worker beside it in its process. It says its port; a GET answers what /enqueue or / is asked for."""

from __future__ import annotations

import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fault_app import app, quick

from rota.errors import StoreUnavailable


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        try:
            said = quick.enqueue().id if self.path == "/enqueue" else "here"
        except StoreUnavailable:
            self.send_error(503)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: object) -> None: ...


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    print(f"port={server.server_port}", flush=True)
    with app.beside(poll=0.5):
        server.serve_forever()
