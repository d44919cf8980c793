"""The events and the lists of an endpoint whose jobs come faster than this computer takes them, as its server would send them.

Each job is submitted, taken after a moment and completed after another one: three changes. As the server does, the stream of
events has four messages a second with the 100 newest changes and the number of the others, and the list has pages.
"""

import json
import threading
import time
from datetime import datetime, timezone
from urllib.parse import parse_qs, urlsplit

from .reverse_proxy import Answer

TICK_S = 0.25
CHANGED_MAX = 100
WAITED_MS = 20
RAN_MS = 200
WORKERS = 64


class ToldFlood:
    """Answers in place of a server, which answers all else. The jobs begin to come with `begin`, `per_s` of them, until `end`."""

    def __init__(self, endpoint: str, per_s: int):
        self.endpoint, self.per_s = endpoint, per_s
        self.messages = 0
        """The messages that were sent."""
        self.pages = 0
        """The pages of the list that were asked for."""
        self.longest_page = 0
        """The most jobs that a page was asked for."""
        self._began_ms = 0.0
        self._begun, self._ended = threading.Event(), threading.Event()

    def begin(self) -> None:
        self._began_ms = time.time() * 1000
        self._begun.set()

    def end(self) -> None:
        self._ended.set()
        self._begun.set()

    def answer(self, _method: str, path: str) -> Answer | None:
        address = urlsplit(path)
        if address.path == "/v1/events":
            kind = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
            return Answer(headers=kind, is_open=True, pieces=self._events())
        query = parse_qs(address.query)
        if address.path != f"/v2/{self.endpoint}/requests" or "counts" in query or not self._begun.is_set():
            return None
        limit = int(query["limit"][0])
        self.longest_page = max(self.longest_page, limit)
        # Last: a test that sees the page counted sees its length.
        self.pages += 1
        page = self._page(limit, query.get("cursor", [""])[0])
        return Answer(200, json.dumps(page).encode(), [("Content-Type", "application/json"), ("Cache-Control", "no-store")])

    def _events(self):
        yield message("hello", 1, {"seq": 1, "server": "flood", "resumed": False})
        self._begun.wait()
        number = 1
        while not self._ended.wait(TICK_S):
            number += 1
            self.messages += 1
            yield message("jobs", number, self._changes())

    def _count(self, before_ms: float = 0) -> int:
        """The jobs that were submitted until now, or until `before_ms` earlier."""
        return max(0, int((time.time() * 1000 - before_ms - self._began_ms) * self.per_s / 1000))

    def _changes(self) -> dict:
        now_ms = int(time.time() * 1000)
        submitted, taken, completed = self._count(), self._count(WAITED_MS), self._count(WAITED_MS + RAN_MS)
        # Two hundred of three hundred concurrent changes are among the others.
        some = CHANGED_MAX // 3
        newest = [number for end in (submitted, taken, completed) for number in range(max(0, end - some), end)]
        rows = {number: self._row(number, now_ms) for number in newest}
        changed = [told(row, now_ms) for _, row in sorted(rows.items(), reverse=True)]
        counts = {"queued": submitted - taken, "running": taken - completed, "completed": completed, "failed": 0, "cancelled": 0, "retried": 0}
        states = {"IN_QUEUE": submitted - taken, "IN_PROGRESS": taken - completed, "COMPLETED": completed, "FAILED": 0, "CANCELLED": 0, "TIMED_OUT": 0}
        more = int(3 * self.per_s * TICK_S) - len(changed)
        return {"endpoint": self.endpoint, "slug": None, "counts": counts, "states": states, "changed": changed, "more": more}

    def _page(self, limit: int, cursor: str) -> dict:
        """A page of the list, from the newest job or from the one after `cursor` on."""
        end = int(cursor[-12:], 16) if cursor else self._count()
        now_ms = int(time.time() * 1000)
        jobs = [self._row(number, now_ms) for number in range(end - 1, max(-1, end - 1 - limit), -1)]
        next_cursor = jobs[-1]["id"] if jobs and end > limit else None
        return {"requests": jobs, "cursor": next_cursor, "searched": len(jobs), "of": self._count(), "complete": next_cursor is None}

    def _row(self, number: int, now_ms: int) -> dict:
        """A job as the list shows it."""
        created_ms = int(self._began_ms + number * 1000 / self.per_s)
        time_part = f"{created_ms:012x}"
        row = {"id": f"{time_part[:8]}-{time_part[8:]}-7000-8000-{number:012x}", "status": "IN_QUEUE", "createdAt": rfc3339(created_ms)}
        row |= {"startedAt": None, "completedAt": None, "inputBytes": 41, "outputBytes": None, "owner": "server", "key": "admin"}
        age_ms = now_ms - created_ms
        if age_ms < WAITED_MS:
            return row
        row |= {"status": "IN_PROGRESS", "startedAt": rfc3339(created_ms + WAITED_MS), "delayTime": WAITED_MS}
        row |= {"executionTime": min(RAN_MS, age_ms - WAITED_MS), "workerId": f"worker-{number % WORKERS}"}
        if age_ms < WAITED_MS + RAN_MS:
            return row
        return row | {"status": "COMPLETED", "completedAt": rfc3339(created_ms + WAITED_MS + RAN_MS), "outputBytes": 12}


def told(row: dict, now_ms: int) -> dict:
    """A row as an event has it: without its sizes, and without what is not known yet."""
    known = {name: value for name, value in row.items() if value is not None and name not in ("inputBytes", "outputBytes", "workerId")}
    return known | ({"worker": row["workerId"]} if "workerId" in row else {}) | {"at": now_ms}


def message(event: str, number: int, data: dict) -> bytes:
    return f"event: {event}\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()


def rfc3339(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"
