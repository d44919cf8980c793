"""The console and its server under load: a stream of very many chunks in a tab, and submits while many tabs are open."""

import math
import multiprocessing
import selectors
import socket
import statistics
import time

from .browser import Browser
from .client import ADMIN_KEY, Endpoint
from .fake_worker import FakeWorker
from .measured import BATCH, Metrics, profile, send_batch, submission, usage, wait_for
from .server import Server
from .wait import until

# Chunks of a stream, and submits beside tabs.
PER_S = 2_000
# The further chunks of a long stream. Sent as fast as the server takes them, they leave the browser no processor of two, and a
# frame waits for one.
FURTHER_PER_S = 4_000
PACE_S = 0.05
CHUNK = b'{"output":"the tide "}'

# Counts the frames of a page, and notes the longest one and the longest task of its main thread, both in ms, from the first one
# on. A browser reports tasks of 50 ms or more: without one, the longest is 0.
FRAMES = """
window.frames_seen = 0;
window.longest_ms = 0;
window.longest_task_ms = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest_task_ms = Math.max(window.longest_task_ms, task.duration);
}).observe({ type: "longtask" });
let before = performance.now();
const next = () => {
  const now = performance.now();
  window.longest_ms = Math.max(window.longest_ms, now - before);
  before = now;
  window.frames_seen += 1;
  requestAnimationFrame(next);
};
requestAnimationFrame(next);
"""

# From now on, counts the renders of the stream, too.
BEGIN = """() => {
  window.frames_seen = window.longest_ms = window.longest_task_ms = window.renders = 0;
  const region = document.querySelector('section[aria-label="Stream"]');
  new MutationObserver(() => (window.renders += 1)).observe(region, {childList: true, subtree: true, characterData: true});
}"""

SEEN = "[window.frames_seen, window.longest_ms, window.renders, window.longest_task_ms]"

# Whether the card of the stream says that it has this number of chunks. Only its head is read: its text is long.
HAS = """(count) => {
  const note = document.querySelector('section[aria-label="Stream"] > header > span.dim');
  return note !== null && parseInt(note.textContent.replace(/[^0-9a-z,]/g, "")) === count;
}"""


def long_stream(browser: Browser, server: Server, endpoint: Endpoint, sizes) -> dict[str, float]:
    """A job with many chunks in a tab: first at one rate, then at twice that rate, then read from the start.

    Beside it, an empty page counts its frames: what it waits for a processor is not the doing of the console. The longest task is
    what the console itself keeps the tab from answering, with its waits for a processor.
    """
    job, worker = endpoint.run({}), FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.chunk(job, "first ")
    path = f"/v2/{endpoint.id}/job-stream/{worker.id}/{job}?gpu=none&isStream=false"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {worker.token}\r\nContent-Length: {len(CHUNK)}\r\n\r\n"
    request = head.encode() + CHUNK
    with profile(browser, server.url) as context:
        page = context.new_page()
        page.add_init_script(FRAMES)
        page.goto(f"{server.url}/console/endpoints/{endpoint.id}/requests/{job}")
        wait_for(page, HAS, 1)
        empty = context.new_page()
        empty.evaluate(f"() => {{{FRAMES}}}")
        page.evaluate(BEGIN)
        metrics = Metrics(page)
        began = time.monotonic()
        sent = 1 + paced(server, [request], PER_S, seconds=sizes.paced_s)
        wait_for(page, HAS, sent)
        took_s = time.monotonic() - began
        cpu = metrics.since("TaskDuration") / took_s * 100
        frames, longest_ms, renders, _ = page.evaluate(SEEN)
        sent += paced(server, [request], FURTHER_PER_S, count=max(0, sizes.chunks - sent))
        wait_for(page, HAS, sent)
        _, longest_of_all_ms, _, longest_task_ms = page.evaluate(SEEN)
        beside_ms = empty.evaluate("window.longest_ms")
        empty.close()
        figures = {
            "stream.paced_per_s": PER_S,
            "stream.renders_per_frame": renders / max(1, frames),
            "stream.cpu_percent": cpu,
            "stream.longest_frame_ms": longest_ms,
            "stream.all.chunks": sent,
            "stream.all.longest_frame_ms": longest_of_all_ms,
            "stream.all.empty_page.longest_frame_ms": beside_ms,
            "stream.all.longer_frame_ms": max(0.0, longest_of_all_ms - beside_ms),
            "stream.all.longest_task_ms": longest_task_ms,
            "stream.all.nodes": page.evaluate("document.getElementsByTagName('*').length"),
            "stream.all.heap_mb": metrics.heap_bytes() / 1e6,
        }
        page.close()
        page = context.new_page()
        page.add_init_script(FRAMES)
        began = time.monotonic()
        page.goto(f"{server.url}/console/endpoints/{endpoint.id}/requests/{job}")
        wait_for(page, HAS, sent)
        figures["stream.reload_ms"] = (time.monotonic() - began) * 1000
        figures["stream.reload.longest_frame_ms"] = page.evaluate("window.longest_ms")
    worker.done(job, {"output": None})
    return figures


def paced(server: Server, requests: list[bytes], per_s: int, seconds: float = math.inf, count: float = math.inf) -> int:
    """Sends requests in turn at a steady rate, for a time or a number of times; answers how many."""
    sent, began = 0, time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        while sent < count and time.monotonic() - began < seconds:
            due = min(int((time.monotonic() - began + PACE_S) * per_s), sent + BATCH, count) - sent
            batch = (requests[number % len(requests)] for number in range(sent, sent + due))
            send_batch(connection, b"".join(batch), due)
            sent += due
            until(lambda sent=sent: time.monotonic() - began >= sent / per_s - PACE_S, "the next requests are due", 10, 0.002)
    return sent


def submits_beside_tabs(server: Server, endpoints: list[Endpoint], tabs: int, sizes) -> tuple[float, float]:
    """What the streams of events of this many tabs cost the server while jobs are submitted to these endpoints in turn, at a
    steady rate: in percent of one processor, and the rate.

    At a steady rate, because without one the process that reads the streams would take its processor time from the submits.
    """
    requests = [submission(endpoint) for endpoint in endpoints]
    more, rates = [], []
    before, _ = busy(server, requests, sizes.submit_s)
    for _ in range(sizes.submit_rounds):
        with Readers(server, tabs):
            beside, rate = busy(server, requests, sizes.submit_s)
        after, _ = busy(server, requests, sizes.submit_s)
        # The machine becomes faster and slower with time: the neighbours on both sides are what it is compared with.
        more.append(beside - (before + after) / 2)
        rates.append(rate)
        before = after
    return statistics.median(more), statistics.median(rates)


def busy(server: Server, requests: list[bytes], seconds: float) -> tuple[float, float]:
    """The server's processor time for the submits of a second, in percent of one processor, and their rate."""
    before_s, _ = usage(server.process.pid)
    began = time.monotonic()
    jobs = paced(server, requests, PER_S, seconds=seconds)
    took_s = time.monotonic() - began
    after_s, _ = usage(server.process.pid)
    return (after_s - before_s) / took_s * 100, jobs / took_s


class Readers:
    """Streams of events that another process reads, as browsers do."""

    def __init__(self, server: Server, count: int):
        context = multiprocessing.get_context("spawn")
        self._is_open = context.Event()
        self._process = context.Process(target=read_streams, args=(server.port, count, self._is_open), daemon=True)

    def __enter__(self) -> "Readers":
        self._process.start()
        assert self._is_open.wait(60), "the streams are open"
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.join(10)


def read_streams(port: int, count: int, is_open) -> None:
    """Opens streams of events and reads what they bring, until the process is ended."""
    request = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\nAccept: text/event-stream\r\n\r\n"
    selector = selectors.DefaultSelector()
    for _ in range(count):
        stream = socket.create_connection(("127.0.0.1", port))
        stream.sendall(request.encode())
        assert b"200 OK" in stream.recv(4096)
        selector.register(stream, selectors.EVENT_READ)
    is_open.set()
    while True:
        for key, _ in selector.select():
            key.fileobj.recv(1 << 20)
