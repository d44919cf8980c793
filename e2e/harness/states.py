"""The answers of a recorded server, as one gives them that has nothing yet, that fails, or that is slow.

The records of endpoints may stay, so that each part of a page with them is seen as it is without its own answer.
"""

import json
import re
from typing import Callable

from .recorded import Record, is_recorded
from .reverse_proxy import Answer

JSON = [("Content-Type", "application/json")]
FAILED = Answer(500, b'{"error":"the server failed at this request","code":"internal"}', [*JSON, ("X-Request-ID", "01a219fe8c1d")])
# A response that has begun, and whose content does not come.
HELD = Answer(200, b" ", JSON, is_open=True)
NO_LINES = b'event: page\ndata: {"complete":true,"cursor":null,"lines":[],"scannedBytes":0}\n\n'
NO_CAUSE = {"ahead": 0, "also": [], "cause": {"blocking": False, "code": "not_waiting", "text": "No job waits.", "title": "No job waits"}}
ENDPOINTS = re.compile(r"/v1/endpoints(/[^/?]+)?(\?|$)")
WORKER = re.compile(ENDPOINTS.pattern + r"|.*/workers\?ended=true$")
JOB = re.compile(ENDPOINTS.pattern + r"|.*/stream/|.*/jobs/[^/]+$")
# What every server has: at least one computer, the version that an endpoint was made with, the session that reads this.
ALWAYS = re.compile(r"/v1/(machines|sessions|server)$|/versions$|/jobs/")
# Times of jobs that did not happen.
TIMES = re.compile(r"(P\d\d|oldest)Ms$")

Change = Callable[[Record, str, str], Answer | None]


def failing(record: Record, method: str, path: str) -> Answer | None:
    """The server fails at every request."""
    return FAILED if is_data(method, path) else record.answer(method, path)


def loading(record: Record, method: str, path: str) -> Answer | None:
    """The server answers nothing."""
    return HELD if is_data(method, path) else record.answer(method, path)


def but(kept: re.Pattern, change: Change) -> Change:
    """As `change` says, but what these addresses have is as it was recorded."""
    return lambda record, method, path: record.answer(method, path) if kept.match(path) else change(record, method, path)


def is_data(method: str, path: str) -> bool:
    return is_recorded(method, path) and not path.startswith("/v1/events")


def empty(record: Record, method: str, path: str) -> Answer | None:
    """The server has nothing."""
    if path.endswith("/explain"):
        return Answer(200, json.dumps(NO_CAUSE).encode(), JSON)
    kept = record.answer(method, path)
    if kept is None or kept.status != 200 or not is_data(method, path):
        return kept
    if "/logs?" in path:
        return Answer(200, NO_LINES, kept.headers, is_open=True)
    if kept.is_open or "/stream/" in path:
        return kept
    data = json.loads(kept.body)
    if path == "/v1/machines":
        data = [machine | {"gpus": [], "endpoints": [], "workers": 0} for machine in data]
    elif not ALWAYS.search(path):
        data = emptied(data)
    return Answer(200, json.dumps(data).encode(), JSON)


def emptied(data):
    """What lists nothing and counts nothing."""
    if isinstance(data, list):
        return []
    if "series" in data:
        return data | {name: {kind: none(kind, values) for kind, values in data[name].items()} for name in ("series", "total")}
    return {name: value if isinstance(value, bool) else 0 if isinstance(value, (int, float)) else emptied(value) if isinstance(value, (list, dict)) else value for name, value in data.items()}


def none(kind: str, values):
    """The points of a series, or its total, of a time in which nothing happened; what was not recorded stays so."""
    if isinstance(values, list):
        return [none(kind, value) for value in values]
    return values if values is None else None if TIMES.search(kind) else 0
