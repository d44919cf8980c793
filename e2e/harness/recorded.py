"""What a server answered to the pages of the console, kept as a file: pages that read it look the same on every computer.

A browser with the clock of the record, behind a proxy that answers from it, shows the same ids, times and charts again.
"""

import gzip
import json
import threading
from pathlib import Path

from .reverse_proxy import Answer

# The document of the API is as the server has it: it is large, and changes with every route.
AS_IT_IS = ("/v1/me", "/v1/openapi.json")
EVENTS = Answer(200, b'event: hello\nid: 1\ndata: {"seq":1,"server":"recorded","resumed":false}\n\n', [("Content-Type", "text/event-stream")], is_open=True)


def is_recorded(method: str, path: str) -> bool:
    return method == "GET" and path.startswith(("/v1/", "/v2/")) and path.split("?")[0] not in AS_IT_IS


class Record:
    """Answers by their addresses, the pages that asked for them, and when that was."""

    def __init__(self, at_ms: int, pages: list[dict], answers: dict[str, list] | None = None, names: dict[str, str] | None = None):
        """`names` are texts of this computer, and what is kept in their place."""
        self.at_ms, self.pages, self.answers = at_ms, pages, answers or {}
        self.names = sorted((names or {}).items(), key=lambda pair: -len(pair[0]))
        self.missing: list[str] = []
        """What a page asked for and is not here."""
        self._lock = threading.Lock()

    @classmethod
    def read(cls, file: Path) -> "Record":
        kept = json.loads(file.read_text())
        return cls(kept["at"], kept["pages"], kept["answers"])

    def write(self, file: Path) -> None:
        kept = {"at": self.at_ms, "pages": self.pages, "answers": dict(sorted(self.answers.items()))}
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

    def keep(self, method: str, path: str, answer: Answer) -> None:
        """Keeps an answer of the server; of a stream what has come."""
        if not is_recorded(method, path) or path.startswith("/v1/events"):
            return
        headers = {name.lower(): value for name, value in answer.headers}
        body = gzip.decompress(answer.body) if headers.get("content-encoding") == "gzip" else answer.body
        text = body.decode()
        for name, neutral in self.names:
            text = text.replace(name, neutral)
        kind = {name: headers[name] for name in ("content-type", "etag") if name in headers}
        with self._lock:
            self.answers[path] = [answer.status, kind, answer.is_open, text]

    def answer(self, method: str, path: str) -> Answer | None:
        """The answer for a page; None where the server itself answers."""
        if not is_recorded(method, path):
            return None
        if path.startswith("/v1/events"):
            return EVENTS
        # A list whose events begin late reads its newest jobs again, by a shorter page: they are as they were.
        kept = self.answers.get(path.replace("/requests?limit=100", "/requests?limit=200")) or self.answers.get(path)
        if kept is None:
            with self._lock:
                self.missing.append(path)
            return Answer(404, b'{"error":"not recorded","code":"not_recorded"}', [("Content-Type", "application/json")])
        status, kind, is_open, body = kept
        return Answer(status, body.encode(), list(kind.items()), is_open)
