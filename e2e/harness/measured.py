"""What the measurements of the console share: profiles of the browser, many submits, and processor times."""

import os
import socket
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from .browser import WIDE, Browser
from .client import ADMIN_KEY, Endpoint
from .server import Server
from .wait import until

HEIGHT = 900
# Requests before the first answer to them.
BATCH = 500


@contextmanager
def profile(browser: Browser, url: str):
    """A profile of the browser that is signed in and has loaded nothing."""
    context = browser.chromium.new_context(viewport={"width": WIDE, "height": HEIGHT}, locale="en-GB")
    answer = context.request.post(f"{url}/console/session", data={"key": ADMIN_KEY})
    assert answer.ok, answer.text()
    yield context
    context.close()


def wait_for(page, condition: str, argument=None) -> None:
    """Waits in this process: the page's policy forbids what Playwright would evaluate there."""
    until(lambda: page.evaluate(condition, argument), condition, 60, 0.01)


def pipelined(server: Server, request: bytes, count: int = 0, seconds: float = 0.0) -> int:
    """Sends a request over one connection, many before the first answer: a number of times, or for a time."""
    sent, end = 0, time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        while sent < count or time.monotonic() < end:
            batch = min(BATCH, count - sent) if count else BATCH
            send_batch(connection, request * batch, batch)
            sent += batch
    return sent


def send_batch(connection: socket.socket, requests: bytes, count: int) -> None:
    """Sends this number of requests, and reads their answers. Each of them is 200."""
    connection.sendall(requests)
    answered, rest = 0, b""
    while answered < count:
        received = connection.recv(1 << 20)
        assert received, f"the server closed the connection: {rest!r}"
        data = rest + received
        answered += data.count(b"HTTP/1.1 200")
        refused = data.find(b"HTTP/1.1 4")
        assert refused < 0, data[refused : refused + 400]
        rest = data[-11:] if not data.endswith(b"}") else b""


def submission(endpoint: Endpoint) -> bytes:
    """A request that hands in a small job."""
    body = b'{"input":{"prompt":"a harbour at dawn"}}'
    head = f"POST /v2/{endpoint.id}/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def submit(server: Server, endpoint: Endpoint, count: int = 0, seconds: float = 0.0) -> int:
    """Hands in jobs over one connection: a number of them, or for a time."""
    return pipelined(server, submission(endpoint), count, seconds)


class Metrics:
    """Processor time of the page's main thread, in s."""

    def __init__(self, page):
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.before = self.now()

    def now(self) -> dict[str, float]:
        return {one["name"]: one["value"] for one in self._devtools.send("Performance.getMetrics")["metrics"]}

    def since(self, *names: str) -> float:
        """The seconds of these kinds of work since the last call."""
        before, self.before = self.before, self.now()
        return sum(self.before[name] - before[name] for name in names)

    def heap_bytes(self) -> int:
        self._devtools.send("HeapProfiler.collectGarbage")
        return self._devtools.send("Runtime.getHeapUsage")["usedSize"]


def usage(pid: int, thread: int | None = None) -> tuple[float, float]:
    """Processor time in s and resident memory in KiB of a process; or of one of its threads."""
    place = Path(f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}")
    fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
    ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1024


def shared_workers_s() -> float:
    """Processor time of the shared workers of the browsers that this process has started, in s."""
    seconds, processes = 0.0, [os.getpid()]
    while processes:
        pid = processes.pop()
        for task in Path(f"/proc/{pid}/task").glob("*"):
            # A thread may end meanwhile.
            with suppress(FileNotFoundError, ProcessLookupError):
                processes += [int(child) for child in (task / "children").read_text().split()]
                if (task / "comm").read_text().startswith("SharedWorker"):
                    seconds += usage(pid, int(task.name))[0]
    return seconds
