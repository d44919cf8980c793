"""A page of one sentence and one small style: what a browser paints at the earliest on this computer."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILES = {
    "/": ("text/html; charset=utf-8", b'<!doctype html><html lang="en"><title>Plain</title><link rel="stylesheet" href="/style.css"><p>One sentence.</p></html>'),
    "/style.css": ("text/css", b"p { margin: 24px; color: #10202c; }"),
}


class PlainPage:
    """Serves the page until closed."""

    def __init__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}/"
        self.other_site = f"http://localhost:{port}/"
        """The same page at an address that browsers take for another site, with a process of its own."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> "PlainPage":
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind, body = FILES.get(self.path, ("text/plain", b""))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
