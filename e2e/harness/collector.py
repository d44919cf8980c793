"""A collector of OpenTelemetry traces that remembers the spans it got, and answers what it is told."""

import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .wait import until


class Collector:
    """Listens on a port of its own until closed. `status` is its answer to each request."""

    def __init__(self):
        self.status = 200
        self.answer = b""
        self.requests: list[dict] = []
        self.released = threading.Event()
        self.released.set()
        self._spans: list[dict] = []
        self._lock = threading.Lock()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                collector.released.wait(60)
                status = collector._take(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(collector.answer)))
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _take(self, path: str, headers: Message, body: bytes) -> int:
        with self._lock:
            self.requests.append({"path": path, "headers": headers})
            if self.status == 200:
                self._spans += decoded(body)
            return self.status

    def spans(self, trace: str | None = None) -> list[dict]:
        """The accepted spans, of one trace or of all."""
        with self._lock:
            return [span for span in self._spans if trace in (None, span["trace"])]

    def wait_for(self, trace: str, *names: str) -> list[dict]:
        """The spans of a trace, once there are some with each of these beginnings of names."""

        def there():
            spans = self.spans(trace)
            missing = [name for name in names if not any(span["name"].startswith(name) for span in spans)]
            assert missing == [], [span["name"] for span in spans]
            return spans

        return until(there, f"spans {names} of {trace}")

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "Collector":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def decoded(body: bytes) -> list[dict]:
    """The spans of a request, by OpenTelemetry's own definition of its bytes."""
    spans = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = values(resource.resource.attributes)["service.name"]
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            spans.append({
                "service": service,
                "trace": span.trace_id.hex(),
                "id": span.span_id.hex(),
                "parent": span.parent_span_id.hex() or None,
                "name": span.name,
                "kind": span.kind,
                "start": span.start_time_unix_nano,
                "end": span.end_time_unix_nano,
                "attributes": values(span.attributes),
                "events": [event.name for event in span.events],
                "links": [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                "status": span.status.code,
            })
    return spans


def values(attributes) -> dict:
    """Attributes as a dict of plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}
