"""Reading server-sent events, as a page in a browser does: parsed by lines, resumed by the last id."""

import json
from dataclasses import dataclass
from typing import Iterator

import requests


@dataclass
class Event:
    """One event. `id` is None where it has none of its own."""

    name: str
    data: str
    id: int | None

    @property
    def json(self):
        return json.loads(self.data)


def parse(lines: Iterator[bytes]) -> Iterator[Event]:
    """The complete events of an answer; what is cut off before its blank line is none."""
    name, data, id = "message", [], None
    for line in lines:
        if not line:
            if data:
                yield Event(name, "\n".join(data), id)
            name, data, id = "message", [], None
            continue
        field, _, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            id = int(value)


def lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The complete lines of a body."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def follow(url: str, key: str, last: int | None = None, timeout_s: float = 40, session=requests) -> Iterator[Event]:
    """The events of one request; ends with the answer, with an error where the connection breaks."""
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    with session.get(url, headers=headers, stream=True, timeout=timeout_s) as answer:
        if "Date" not in answer.headers:
            # The last header of the server: the client library takes a head that was cut off for a whole one.
            raise requests.ConnectionError("cut off within its head")
        assert answer.status_code == 200, f"{answer.status_code} {answer.text[:500]}"
        assert answer.headers["Content-Type"] == "text/event-stream"
        yield from parse(lines(answer.iter_content(None)))
