"""Measures what the console promises to stay under, in Debian's Chromium. Run it as `cargo xtask bench --only console`.

    LONGSHORE_BIN=target/release/longshore .tools/venv/bin/python e2e/measure_console.py [--quick] [--data FOLDER]

Prints the figures as one JSON object. A name ends with its unit.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

import requests

from harness.browser import Browser
from harness.client import ADMIN_KEY, Api, Endpoint
from harness.console_load import long_stream, submits_beside_tabs
from harness.fake_worker import FakeWorker
from harness.measured import Metrics, profile, shared_workers_s, submit, usage, wait_for
from harness.plain_page import PlainPage
from harness.reverse_proxy import ReverseProxy
from harness.server import Server
from harness.told_flood import ToldFlood
from harness.wait import until

ENDPOINTS = 3
# The pages of the side bar; the first one that is gone to is not the one that was opened.
SIDE = (
    "Endpoints", "Overview", "Requests", "Workers", "Webhooks", "Templates", "Volumes", "Registries", "API keys", "Audit log",
    "Machines and GPUs", "Usage and cost", "Health",
)  # fmt: skip
# The other pages, by the names of their figures. An address has the endpoint and one of its jobs in the places of the words.
PAGES = {
    "endpoints": "/endpoints", "requests": "/requests", "workers": "/workers", "webhooks": "/webhooks", "templates": "/templates",
    "volumes": "/volumes", "registries": "/registries", "api_keys": "/api-keys", "audit": "/audit", "machines": "/machines",
    "usage": "/usage", "health": "/health", "new_endpoint": "/new-endpoint",
    "endpoint": "/endpoints/{endpoint}",
    **{f"endpoint_{name}": f"/endpoints/{{endpoint}}/{name}" for name in ("requests", "workers", "logs", "metrics", "playground", "settings", "webhooks")},
    "request": "/endpoints/{endpoint}/requests/{job}",
}  # fmt: skip
SILENT_S = 0.5
# The jobs of a second of which the budget of a tab speaks: more than submits, workers and a browser on one computer reach.
TOLD_PER_S = 15_000

# Notes when the table of endpoints has a row, in ms since the page was asked for.
USABLE = """new MutationObserver(() => {
  if (window.usable_ms === undefined && document.querySelector("main tbody td")) window.usable_ms = performance.now();
}).observe(document, {childList: true, subtree: true});"""

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"

FONTS = """performance.getEntriesByType("resource").filter(({name}) => name.endsWith(".woff2"))
  .reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0)"""

# Follows a link of the side bar; answers after how many ms the page has its final layout.
CHANGE = """(name) => new Promise((resolve) => {
  const began = performance.now();
  const is_there = () => document.querySelector("main h1")?.textContent === name && !document.querySelector(".loading, .loading-page");
  const look = () => (is_there() ? resolve(performance.now() - began) : requestAnimationFrame(look));
  [...document.querySelectorAll("#side a.nav")].find((link) => link.textContent.trim().startsWith(name)).click();
  look();
})"""

# Follows a link from the overview to a page, 200 ms after it was pointed at, as people do at the least; answers after how many ms
# from the press the page has its final layout: the heading and all that it has read are there,
# and nothing has moved for 200 ms.
FIRST_CHANGE = """(path) => new Promise((resolve) => {
  const [before, still_ms, pointed_ms] = [document.querySelector("main h1"), 200, 200];
  let [began, moved] = [0, 0];
  new PerformanceObserver((list) => list.getEntries().forEach(({startTime}) => (moved = Math.max(moved, startTime)))).observe({type: "layout-shift"});
  let there = 0;
  const is_there = () => {
    const heading = document.querySelector("main h1");
    return heading && heading !== before && !document.querySelector(".loading, .loading-page");
  };
  const look = () => {
    if (!is_there()) there = 0;
    else there ||= performance.now();
    const last = Math.max(there, moved);
    if (there && performance.now() - last > still_ms) resolve(last - began);
    else requestAnimationFrame(look);
  };
  const link = document.body.appendChild(Object.assign(document.createElement("a"), {href: path}));
  link.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
  setTimeout(() => {
    began = moved = performance.now();
    link.click();
    look();
  }, pointed_ms);
})"""

# Whether the page has drawn its charts and reads nothing more.
IS_READ = """document.querySelector(".plot canvas") &&
  performance.now() - Math.max(...performance.getEntriesByType("resource").map(({responseEnd}) => responseEnd)) > 200"""

TWO_FRAMES = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"

# Notes when each job is shown first, by the clock of the computer.
SHOWN = """() => {
  window.shown = {};
  const look = () => document.querySelectorAll(".c-job").forEach(({title}) => (window.shown[title] ??= Date.now()));
  new MutationObserver(look).observe(document.querySelector("main"), {childList: true, subtree: true, attributes: true});
}"""


class Sizes:
    """How much is measured."""

    def __init__(self, quick: bool):
        self.visits = 1 if quick else 9
        self.rounds = 1 if quick else 5
        self.jobs = 600 if quick else 100_000
        self.frames = 10 if quick else 120
        self.jumps = 5 if quick else 60
        self.news = 2 if quick else 20
        self.flood_s = 0.5 if quick else 10
        self.tabs = 10 if quick else 200
        self.tabs_s = 0.5 if quick else 10
        self.endpoints = 20 if quick else 1_000
        self.scrapes = 2 if quick else 21
        self.submit_s = 0.3 if quick else 4
        self.submit_rounds = 1 if quick else 9
        self.chunks = 2_000 if quick else 200_000
        self.paced_s = 0.5 if quick else 10


class Relay:
    """Passes the bytes of connections on, and counts those that come from the server."""

    def __init__(self, port: int):
        self.received = 0
        self.at = time.monotonic()
        self._target = port
        # A loop of its own: Playwright's runs in this thread.
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._accept, "127.0.0.1", 0), loop)
        self._server = started.result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader, writer) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(self._pass(reader, to_server, False), self._pass(from_server, writer, True))

    async def _pass(self, reader, writer, is_counted: bool) -> None:
        try:
            while data := await reader.read(65536):
                if is_counted:
                    self.received += len(data)
                    self.at = time.monotonic()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def wait_silent(self) -> None:
        until(lambda: time.monotonic() - self.at > SILENT_S, f"the server sends nothing for {SILENT_S} s", 20, 0.05)


def visit(context, url: str, before: str = ""):
    """Opens the overview in a new tab, in which the page `before` was painted."""
    page = context.new_page()
    page.add_init_script(USABLE)
    if before:
        paint(page, before)
    page.goto(f"{url}/console/")
    wait_for(page, "window.usable_ms !== undefined")
    return page


def paint(page, url: str) -> float:
    """Goes to a page; answers after how many ms it was painted."""
    page.goto(url)
    wait_for(page, f"{PAINTED} !== undefined")
    return page.evaluate(PAINTED)


def visits(browser: Browser, server: Server, sizes: Sizes) -> dict[str, float]:
    """Bytes and times of the overview's first visit, and bytes of the second.

    Each visit is the first one of a profile without a cache, in a browser that runs already and in a tab that has shown a page of
    another site. In turn with them, such tabs paint a page of one sentence: what this computer needs for any page.
    """
    relay = Relay(server.port)
    with profile(browser, relay.url) as context:
        relay.wait_silent()
        sent = []
        for _ in range(2):
            before = relay.received
            page = visit(context, relay.url)
            page.locator(".plot canvas").first.wait_for()
            relay.wait_silent()
            sent.append(relay.received - before)
            fonts = page.evaluate(FONTS) if len(sent) == 1 else fonts
            page.close()
    painted, usable, plain = [], [], []
    with PlainPage() as sentence:
        # The first visit of all is left out: browsers that run already have their processes.
        for number in range(sizes.visits + 1):
            with profile(browser, server.url) as context:
                page = context.new_page()
                paint(page, sentence.other_site)
                plain_ms = paint(page, sentence.url)
            with profile(browser, server.url) as context:
                page = visit(context, server.url, sentence.other_site)
                wait_for(page, f"{PAINTED} !== undefined")
                if number > 0:
                    plain.append(plain_ms)
                    painted.append(page.evaluate(PAINTED))
                    usable.append(page.evaluate("window.usable_ms"))
    return {
        "first_visit.kb": (sent[0] - fonts) / 1000,
        "first_visit.with_fonts.kb": sent[0] / 1000,
        "second_visit.kb": sent[1] / 1000,
        "first_visit.painted_ms": statistics.median(painted),
        "first_visit.usable_ms": statistics.median(usable),
        "first_visit.plain_page_ms": statistics.median(plain),
    }


def first_changes(browser: Browser, server: Server, endpoint: Endpoint, sizes: Sizes) -> dict[str, float]:
    """The first change to each page, from the overview of a profile without a cache: its module and its data come from the server.
    The median of its repetitions for each page, and the slowest one."""
    job = endpoint.ok("GET", "/requests?limit=1")["requests"][0]["id"]
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    for _ in range(sizes.rounds):
        for name, path in PAGES.items():
            with profile(browser, server.url) as context:
                page = visit(context, server.url)
                wait_for(page, IS_READ)
                times[name].append(page.evaluate(FIRST_CHANGE, "/console" + path.format(endpoint=endpoint.id, job=job)))
    medians = {f"page_change.first.{name}_ms": statistics.median(values) for name, values in times.items()}
    return medians | {"page_change.first_ms": max(medians.values())}


def changes(browser: Browser, server: Server, sizes: Sizes) -> dict[str, float]:
    """Changes to pages that were visited: the slowest page, by the median of its visits."""
    times: dict[str, list[float]] = {name: [] for name in SIDE}
    with profile(browser, server.url) as context:
        page = visit(context, server.url)
        for _ in range(sizes.rounds):
            for name in SIDE:
                times[name].append(page.evaluate(CHANGE, name))
    return {"page_change_ms": max(statistics.median(values) for values in times.values())}


def long_list(browser: Browser, server: Server, endpoint: Endpoint, sizes: Sizes) -> dict[str, float]:
    """A list of many jobs, scrolled to its end."""
    submit(server, endpoint, sizes.jobs)
    with profile(browser, server.url) as context:
        page = context.new_page()
        page.goto(f"{server.url}/console/endpoints/{endpoint.id}/requests")
        grid = page.get_by_role("grid", name="Requests")
        page.locator(".vrow").first.wait_for()

        def at_the_end() -> bool:
            grid.evaluate("node => (node.scrollTop = node.scrollHeight)")
            return int(grid.get_attribute("aria-rowcount")) == sizes.jobs + 1

        until(at_the_end, f"all {sizes.jobs} jobs are loaded", 60 + sizes.jobs / 100, 0.05)
        metrics = Metrics(page)
        for step in range(sizes.frames):
            grid.evaluate("(node, step) => (node.scrollTop = 1000 + step * 120)", step)
            page.evaluate(TWO_FRAMES)
        scrolled_s = metrics.since("ScriptDuration")
        for step in range(sizes.jumps):
            grid.evaluate("(node, part) => (node.scrollTop = node.scrollHeight * part)", step * 0.618 % 1)
            page.evaluate(TWO_FRAMES)
        jumped_s = metrics.since("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        return {
            "list.scroll.script_ms": scrolled_s / sizes.frames * 1000,
            "list.jump.cpu_ms": jumped_s / sizes.jumps * 1000,
            "list.rows": page.locator(".vrow").count(),
            "list.nodes": page.evaluate("document.getElementsByTagName('*').length"),
            "list.heap_mb": metrics.heap_bytes() / 1e6,
        }


def news(browser: Browser, server: Server, endpoint: Endpoint, sizes: Sizes) -> dict[str, float]:
    """From the answer of a submit to its row, and the processor time of a tab while as many jobs come as the server takes."""
    late = []
    with profile(browser, server.url) as context:
        page = context.new_page()
        page.goto(f"{server.url}/console/endpoints/{endpoint.id}/requests")
        page.get_by_text("Live", exact=True).wait_for()
        endpoint.run({})
        page.locator(".vrow").first.wait_for()
        page.evaluate(SHOWN)
        for number in range(sizes.news):
            job = endpoint.run({"n": number})
            answered_ms = time.time() * 1000
            wait_for(page, "job => window.shown[job] !== undefined", job)
            late.append(page.evaluate("job => window.shown[job]", job) - answered_ms)
        metrics = Metrics(page)
        began = time.monotonic()
        sent = submit(server, endpoint, seconds=sizes.flood_s)
        took_s = time.monotonic() - began
        return {
            "news.shown_ms": max(late),
            "submitted.jobs_per_s": sent / took_s,
            "submitted.cpu_percent": metrics.since("TaskDuration") / took_s * 100,
        }


def flood(browser: Browser, server: Server, endpoint: Endpoint, sizes: Sizes) -> dict[str, float]:
    """The processor time of a tab that is told of very many jobs, with that of the worker that listens for all tabs of a browser.

    The load of this computer does not reach their number: a server before the real one makes the events and the pages of the
    list, in the form and at the rate of a real one (`harness/told_flood.py`).
    """
    told = ToldFlood(endpoint.id, TOLD_PER_S)
    with ReverseProxy(server.port, intercept=told.answer) as proxy, profile(browser, proxy.url) as context:
        page = context.new_page()
        page.goto(f"{proxy.url}/console/endpoints/{endpoint.id}/requests")
        page.get_by_text("Live", exact=True).wait_for()
        told.begin()
        page.locator(".vrow").first.wait_for()
        metrics, worker_before_s = Metrics(page), shared_workers_s()
        began, messages, pages = time.monotonic(), told.messages, told.pages
        until(lambda: time.monotonic() - began > sizes.flood_s, "the time of the measurement is over", sizes.flood_s + 5)
        took_s = time.monotonic() - began
        worker_s = shared_workers_s() - worker_before_s
        figures = {
            "flood.jobs_per_s": float(TOLD_PER_S),
            "flood.messages_per_s": (told.messages - messages) / took_s,
            "flood.pages_per_s": (told.pages - pages) / took_s,
            "flood.cpu_percent": (metrics.since("TaskDuration") + worker_s) / took_s * 100,
            "flood.worker.cpu_percent": worker_s / took_s * 100,
            "flood.heap_mb": metrics.heap_bytes() / 1e6,
        }
        told.end()
    return figures


def open_tabs(server: Server, sizes: Sizes) -> dict[str, float]:
    """What the server needs for the stream of events of a browser's tabs, while nothing happens."""
    request = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\nAccept: text/event-stream\r\n\r\n"
    streams = []

    def open_one() -> None:
        stream = socket.create_connection(("127.0.0.1", server.port))
        stream.sendall(request.encode())
        assert b"200 OK" in stream.recv(4096)
        streams.append(stream)

    # What the first one needs, all share.
    open_one()
    _, memory_before = usage(server.process.pid)
    for _ in range(sizes.tabs):
        open_one()
    cpu_before, _ = usage(server.process.pid)
    end = time.monotonic() + sizes.tabs_s
    until(lambda: time.monotonic() > end, "the time of the measurement is over", sizes.tabs_s + 5)
    cpu_after, memory_after = usage(server.process.pid)
    for stream in streams:
        stream.close()
    return {
        "tab.server.kib": max(0.0, memory_after - memory_before) / sizes.tabs,
        "tab.server.cpu_percent": (cpu_after - cpu_before) / sizes.tabs_s / sizes.tabs * 100,
    }


def usual(api: Api) -> Endpoint:
    """A few endpoints with a few jobs, as on a new server; answers one of them."""
    made = [api.external(name=f"Endpoint {number}") for number in range(ENDPOINTS)]
    worker = FakeWorker(made[0])
    for number in range(5):
        made[0].run({"n": number})
        worker.done(worker.take()["id"], {"output": {"n": number}})
    path = f"/v1/endpoints/{made[0].id}/history?last=900000&series=completed"
    until(lambda: api.ok("GET", path)["total"]["completed"] == 5, "the charts have something to show", 30)
    return made[0]


def submits(server: Server, api: Api, sizes: Sizes) -> dict[str, float]:
    """What events cost the server during submits: to one endpoint beside many tabs, and to many endpoints beside one tab."""
    of_one, per_s = submits_beside_tabs(server, [api.external(name="Busy")], sizes.tabs, sizes)
    template = api.template()["id"]
    many = [api.external(name=f"Busy {number}", templateId=template) for number in range(sizes.endpoints)]
    of_many, many_per_s = submits_beside_tabs(server, many, 1, sizes)
    return {
        "tabs.submit.more_cpu_percent": of_one,
        "tabs.submit.per_s": per_s,
        "endpoints.count": len(many),
        "endpoints.submit.more_cpu_percent": of_many,
        "endpoints.submit.per_s": many_per_s,
    }


def metrics_page(server: Server, sizes: Sizes) -> dict[str, float]:
    """How long the server takes for `/metrics` with all endpoints of the measurements before."""
    times_ms = []
    with requests.Session() as session:
        for _ in range(sizes.scrapes):
            began = time.monotonic()
            answer = session.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=30)
            times_ms.append((time.monotonic() - began) * 1000)
            assert answer.ok and answer.text.count("\nlongshore_endpoint_info{") >= sizes.endpoints
    return {"metrics.page_ms": statistics.median(times_ms), "metrics.page_kb": len(answer.content) / 1000}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", default=None)
    arguments = parser.parse_args()
    sizes = Sizes(arguments.quick)
    # The bench keeps itself on one processor. A browser and its server have all of them.
    os.sched_setaffinity(0, range(os.cpu_count()))
    with tempfile.TemporaryDirectory(prefix="console-", dir=arguments.data) as folder:
        server = Server(folder=Path(folder), flags=("--rate-limits", "off")).start()
        browser = Browser()
        try:
            api = Api(server)
            first = usual(api)
            figures = visits(browser, server, sizes)
            figures |= first_changes(browser, server, first, sizes)
            figures |= changes(browser, server, sizes)
            figures |= open_tabs(server, sizes)
            figures |= long_list(browser, server, api.external(name="Deep"), sizes)
            figures |= news(browser, server, first, sizes)
            figures |= flood(browser, server, api.external(name="Flooded"), sizes)
            figures |= long_stream(browser, server, api.external(name="Talking"), sizes)
            figures |= submits(server, api, sizes)
            figures |= metrics_page(server, sizes)
        finally:
            browser.close()
            server.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
