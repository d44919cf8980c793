"""A reverse proxy as operators put before a server: under a path, over TLS, slow, failing, or answering from a record."""

import http.client
import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Callable, Iterable

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass
class Answer:
    """A response, as it is sent to the browser."""

    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    is_open: bool = False
    """More would follow: the response does not end until the proxy is closed."""
    pieces: Iterable[bytes] = ()
    """What follows `body` in an open response, each piece when it comes."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Ignores a browser that closes its connection, and one that does not trust the certificate."""


class ReverseProxy:
    """Listens on a port of its own until closed, and sends what it gets to the server at `port`.

    `prefix` is removed from paths, as `location /longshore/` does; other paths are 404. `intercept(method, path)` may wait,
    or answer instead of the server. `record(method, path, answer)` gets each answer, and a stream with each part that came.
    With `certificate` and its key the proxy speaks TLS.
    """

    def __init__(
        self,
        port: int,
        prefix: str = "",
        certificate: tuple[Path, Path] | None = None,
        headers: dict[str, str] | None = None,
        intercept: Callable[[str, str], Answer | None] = lambda method, path: None,
        record: Callable[[str, str, Answer], None] = lambda method, path, answer: None,
    ):
        self.upstream, self.prefix, self.headers = port, prefix, headers or {}
        self.intercept, self.record = intercept, record
        self.closed = threading.Event()
        self.asked_at = time.monotonic()
        """When the last request came, or the last one that ends was answered."""
        self.unanswered = 0
        """The requests without an answer, streams aside."""
        self._counting = threading.Lock()
        proxy = self

        class Handler(_Handler):
            def forwarding(self) -> "ReverseProxy":
                return proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}{prefix}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "ReverseProxy":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @contextmanager
    def in_flight(self, accepted: str):
        """Counts a request until it is answered, unless a stream is asked for."""
        number = 0 if "event-stream" in accepted else 1
        with self._counting:
            self.unanswered += number
        try:
            yield
        finally:
            with self._counting:
                self.unanswered -= number
                self.asked_at = time.monotonic() if number else self.asked_at


class _Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        proxy = self.forwarding()
        proxy.asked_at = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.startswith(proxy.prefix + "/"):
            return self._send(Answer(404, b"not here"))
        path = self.path.removeprefix(proxy.prefix)
        if answer := proxy.intercept(self.command, path):
            return self._send(answer)
        with proxy.in_flight(self.headers.get("Accept", "")):
            self._forward(proxy, path, body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = do_OPTIONS = _handle

    def _forward(self, proxy: ReverseProxy, path: str, body: bytes) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", proxy.upstream, timeout=120)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
            upstream.request(self.command, path, body or None, {**headers, **proxy.headers})
            response = upstream.getresponse()
            kept = [(name, value) for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP]
            if response.chunked:
                return self._stream(proxy, path, response, kept)
            answer = Answer(response.status, response.read(), kept)
            proxy.record(self.command, path, answer)
            self._send(answer)
        except (http.client.HTTPException, ConnectionError):
            # The server was stopped, or the browser left.
            self.close_connection = True
        finally:
            upstream.close()

    def _send(self, answer: Answer) -> None:
        has_body = answer.status not in (204, 304)
        length = ("Transfer-Encoding", "chunked") if answer.is_open else ("Content-Length", str(len(answer.body)))
        self._send_head(answer, [length] if has_body else [])
        if answer.is_open:
            # A piece without bytes would end the response.
            for piece in filter(None, chain([answer.body], answer.pieces)):
                self._send_part(piece)
            self.forwarding().closed.wait()
        elif has_body and self.command != "HEAD":
            self.wfile.write(answer.body)

    def _send_head(self, answer: Answer, more: list[tuple[str, str]]) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers + more:
            self.send_header(name, value)
        self.end_headers()

    def _send_part(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _stream(self, proxy: ReverseProxy, path: str, response: http.client.HTTPResponse, headers: list) -> None:
        answer = Answer(response.status, b"", headers, is_open=True)
        self._send_head(answer, [("Transfer-Encoding", "chunked")])
        while not proxy.closed.is_set() and (piece := response.read1(65536)):
            answer.body += piece
            proxy.record(self.command, path, answer)
            self._send_part(piece)
        answer.is_open = False
        proxy.record(self.command, path, answer)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass
