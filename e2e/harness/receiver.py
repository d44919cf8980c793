"""A webhook receiver that remembers what it got and answers what it is told."""

import json
import threading
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .wait import until


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Ignores a caller that disconnects, as a killed server does."""


class Receiver:
    """Listens on a port of its own until closed. `answers` are used up one by one, the last for ever."""

    def __init__(self, *answers: int, port: int = 0):
        self.answers = list(answers or (200,))
        self.calls: list[dict] = []
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = receiver._note(self.path, self.headers, body)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = _Server(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _note(self, path: str, headers: Message, body: bytes) -> int:
        with self._lock:
            status = self.answers[min(len(self.calls), len(self.answers) - 1)]
            call = {"path": path, "headers": headers, "raw": body, "at": time.monotonic()}
            call["json"] = json.loads(body)
            self.calls.append(call)
            return status

    def wait_for(self, count: int, timeout_s: float = 20) -> list[dict]:
        """The calls, once there are `count` of them."""
        until(lambda: len(self.calls) >= count, f"{count} webhook calls at port {self.port}", timeout_s)
        return self.calls

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_) -> None:
        self.close()
