"""The console with much to show: long lists, many endpoints and workers, fast news, long streams, and a tab that stays open.

Asserted are counts and ratios, which a busy computer does not change: nodes, rows, requests, renders, and the heap against
itself.
"""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import key_for
from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.measured import pipelined, submission
from harness.reverse_proxy import ReverseProxy
from harness.server import Server
from harness.standstills import Standstills
from harness.told_flood import ToldFlood
from harness.wait import until

JOBS = int(os.environ.get("LONGSHORE_LISTED_JOBS", "1200"))
ENDPOINTS = int(os.environ.get("LONGSHORE_LISTED_ENDPOINTS", "60"))
WORKERS = int(os.environ.get("LONGSHORE_LISTED_WORKERS", "30"))
CHUNKS = int(os.environ.get("LONGSHORE_LISTED_CHUNKS", "500"))
# After this number of jobs, each page and what it read last is known.
WARM_JOBS = 200
KEPT_ADDRESSES = 200
SOAK_S = float(os.environ.get("LONGSHORE_SOAK_S", "6"))
# Of a tab that stays open: the pages that one goes to in turn, one of them after each few jobs.
WALK = ("", "/requests", "/metrics", "/logs", "/requests/{job}", "/playground", "/workers", "/settings")
JOBS_OF_STEP = 10
NODES_MAX = 1500
ROW_NODES_MAX = 30
ROWS_MAX = 60
# A message names 100 jobs at most, and a page of the list has 1 000: these are more.
BURST = 1200
# News are read in pages of this length after the first one.
LONG_PAGE = 1000
# A waiting job as events name it: an id of 36 characters, two times, its state, key and owner, and their names: 155 bytes.
CHANGE_BYTES = 200
# What an event has beside the jobs: its name and number, and the counts of all states by their names: 330 bytes.
EVENT_BYTES = 600
# A waiting job in a page of the list: as in an event, and the members that are null and its sizes: 210 bytes.
ROW_BYTES = 250
CLIENTS = 4


@pytest.fixture(scope="module")
def server():
    server = Server(flags=("--rate-limits", "off")).start()
    yield server
    server.close()


def submit(endpoint: Endpoint, count: int) -> None:
    """Hands in jobs over a few connections at a time."""

    def some(numbers: range) -> None:
        mine = Endpoint(Api(endpoint.api.server), endpoint.record)
        for number in numbers:
            mine.run({"n": number})

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(some, [range(start, count, CLIENTS) for start in range(CLIENTS)]))


def nodes(page) -> int:
    """Elements and texts of the document, as the budget counts them."""
    return page.evaluate("document.getElementsByTagName('*').length")


def held(tab) -> dict[str, int]:
    """What the page holds after what is garbage was collected: bytes of its scripts, of what the browser has for them and of their
    buffers, and nodes and listeners, also those that are in no document."""
    devtools = tab.context.new_cdp_session(tab.page)
    devtools.send("Performance.enable")

    def count() -> dict[str, int]:
        # What a timer or a request of the page before held is garbage only when that has ended.
        tab.page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 100))")
        devtools.send("HeapProfiler.collectGarbage")
        return {one["name"]: int(one["value"]) for one in devtools.send("Performance.getMetrics")["metrics"]}

    metrics, before = count(), None
    while before is None or metrics["Nodes"] < before["Nodes"]:
        metrics, before = count(), metrics
    used = devtools.send("Runtime.getHeapUsage")
    devtools.detach()
    heap = int(sum(used[part] for part in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")))
    return {"heap": heap, "nodes": metrics["Nodes"], "listeners": metrics["JSEventListeners"]}


def cpu_s(devtools) -> float:
    """Processor time of the page's thread so far."""
    metrics = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"]


COUNT_FRAMES = """() => {
  window.frames_seen = 0;
  window.changes_seen = 0;
  new MutationObserver(() => (window.changes_seen += 1)).observe(document.querySelector("main"), {childList: true, subtree: true, characterData: true, attributes: true});
  const next = () => ((window.frames_seen += 1), requestAnimationFrame(next));
  requestAnimationFrame(next);
}"""


STEP_PX, ROW_PX = 100, 36
# How many rows each step of scrolling gives another place in the list: their ids have the place.
CHANGED_ROWS = """async (node) => {
  const numbers = [];
  for (let step = 0; step < 20; step += 1) {
    const rows = new Set();
    const watcher = new MutationObserver((changes) => changes.forEach(({target}) => rows.add(target)));
    watcher.observe(node.querySelector(".grid-rows"), {subtree: true, attributeFilter: ["id"]});
    node.scrollTop += STEP;
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    watcher.disconnect();
    numbers.push(rows.size);
  }
  return numbers;
}""".replace("STEP", str(STEP_PX))


def test_scrolling_changes_only_the_rows_that_come_into_view(console, api):
    endpoint = api.external(name="Scrolled")
    submit(endpoint, 200)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    grid = tab.page.get_by_role("grid", name="Requests")
    expect(grid).to_have_attribute("aria-rowcount", "201")
    grid.evaluate("node => (node.scrollTop = 1000)")
    expect(tab.page.locator(".vrow[aria-rowindex=\"42\"]")).to_be_visible()
    changed = grid.evaluate(CHANGED_ROWS)
    assert 0 < max(changed) <= STEP_PX // ROW_PX + 1, changed


def test_a_list_of_many_requests_has_few_rows_everywhere(console, api):
    endpoint = api.external(name="Deep")
    submit(endpoint, JOBS)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    page = tab.page
    grid = page.get_by_role("grid", name="Requests")
    expect(page.locator(".vrow").first).to_be_visible()
    devtools = tab.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def at_the_end() -> bool:
        grid.evaluate("node => (node.scrollTop = node.scrollHeight)")
        assert page.locator(".vrow").count() <= ROWS_MAX
        return int(grid.get_attribute("aria-rowcount")) == JOBS + 1

    until(at_the_end, f"all {JOBS} jobs are loaded", 30 + JOBS / 200, 0.1)
    before, jumps = cpu_s(devtools), 40
    # A jump replaces every row; then the nodes are used again.
    for step in range(jumps):
        grid.evaluate("(node, part) => (node.scrollTop = node.scrollHeight * part)", (step * 7919 % jumps) / jumps)
        page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    print(f"a jump that replaces all rows of {JOBS}: {(cpu_s(devtools) - before) / jumps * 1000:.1f} ms of processor time")
    assert page.locator(".vrow").count() <= ROWS_MAX
    assert nodes(page) <= NODES_MAX, nodes(page)
    heap = held(tab)["heap"]
    print(f"{nodes(page)} nodes, {heap / 1e6:.1f} MB of heap with {JOBS} rows")
    assert heap <= 60_000_000


def expect_order(page, jobs: list[str]) -> None:
    """The rows at the beginning, in the middle and at the end of these jobs are theirs, in their order."""
    for first in (0, len(jobs) // 2, len(jobs) - 30):
        page.locator(".grid-scroll").evaluate("(node, top) => (node.scrollTop = top)", first * 36)
        wanted = {str(number + 2): jobs[number] for number in range(first, first + 10)}

        def are_there(wanted=wanted) -> bool:
            rows = page.locator(".vrow").evaluate_all("rows => rows.map((row) => [row.getAttribute('aria-rowindex'), row.querySelector('.c-job').title])")
            return wanted.items() <= dict(rows).items()

        until(are_there, f"the jobs from {first} on are shown in their order", 10)


def test_fast_news_cost_few_messages_requests_and_renders(console, api, server):
    endpoint = api.external(name="Fast")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    submit(endpoint, 1)
    expect(page.locator(".vrow")).to_have_count(1)
    asked: list[str] = []
    answers = []
    # What is likely opened next is loaded meanwhile.
    tab.context.on("request", lambda request: "/console/a/" not in request.url and asked.append(urlsplit(request.url).path))
    tab.context.on("response", lambda answer: answers.append(answer))
    session = requests.Session()
    told: list[str] = []
    stop = threading.Event()

    def listen() -> None:
        headers = {"Authorization": f"Bearer {api.key}", "Accept": "text/event-stream"}
        with session.get(f"{server.url}/v1/events", headers=headers, stream=True, timeout=60) as answer:
            for line in answer.iter_lines():
                told.append(line.decode())
                if stop.is_set():
                    return

    threading.Thread(target=listen, daemon=True).start()
    until(lambda: any("hello" in line for line in told), "events are read", 20)
    page.evaluate(COUNT_FRAMES)
    began = time.monotonic()
    pipelined(server, submission(endpoint), BURST)
    # No row is missing between those that a message named, and none is read again by hand.
    expect(page.locator(".grid-scroll")).to_have_attribute("aria-rowcount", str(BURST + 2))
    frames, changes = page.evaluate("[window.frames_seen, window.changes_seen]")
    took = time.monotonic() - began
    stop.set()
    expect_order(page, [job["id"] for job in endpoint.ok("GET", "/requests?limit=1000")["requests"]])
    messages, events = sum(line == "event: jobs" for line in told), sum(line.startswith("event: ") for line in told)
    print(f"{BURST} jobs in {took:.1f} s: {messages} messages, {len(asked)} requests, {changes} changes in {frames} frames")
    assert messages <= took * 4 + 4
    # An event and an answer change the rows and the counts, and each second changes the ages: not each frame.
    assert changes <= 2 * (events + len(asked)) + took + 10, (changes, events, asked)
    told_bytes = sum(len(line) + 1 for line in told)
    lists = [answer for answer in answers if urlsplit(answer.url).path.endswith("/requests")]
    reads, listed_bytes = sum("cursor=" not in answer.url for answer in lists), sum(len(answer.body()) for answer in lists)
    print(f"for each job {told_bytes / BURST:.0f} bytes of events and {listed_bytes / BURST:.0f} of {len(lists)} pages in {reads} reads")
    # A job was changed once, and is named once at most.
    assert told_bytes <= BURST * CHANGE_BYTES + events * EVENT_BYTES, told_bytes
    # A read ends at the jobs of the one before: its last page has such jobs, too.
    assert reads <= took / 2 + 2
    assert listed_bytes <= (BURST + reads * LONG_PAGE) * ROW_BYTES, listed_bytes
    # A message with more jobs than it names is a reason to read; not more often than every 2 s.
    assert len(asked) <= took + 10, asked
    assert page.locator(".vrow").count() <= ROWS_MAX


# The time of two messages, which come every 250 ms: the rows change once in it.
TWO_MESSAGES_MS = 500
# Counts how often the button for news was shown, and how often the first row got another job.
WATCH_ROWS = """() => {
  [window.pills, window.firsts, window.watched_from] = [0, 0, performance.now()];
  let first = "";
  new MutationObserver(() => {
    if (document.querySelector(".pill")) window.pills += 1;
    const title = document.querySelector('[aria-rowindex="2"] .c-job')?.title;
    if (title && title !== first) [first, window.firsts] = [title, window.firsts + 1];
  }).observe(document.querySelector("main"), {childList: true, subtree: true, attributes: true});
}"""


def test_of_more_jobs_than_pages_reach_the_newest_are_read_and_shown_calmly(console, api, server):
    endpoint = api.external(name="Crowded")
    told = ToldFlood(endpoint.id, 15_000)
    with ReverseProxy(server.port, intercept=told.answer) as proxy:
        tab = console(proxy).sign_in(path=f"/endpoints/{endpoint.id}/requests")
        page = tab.page
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        told.begin()
        expect(page.locator(".vrow").first).to_be_visible()
        # The first read may begin before an event has told of all these jobs.
        read = told.pages
        until(lambda: told.pages >= read + 4, "news are read", 20)
        told.longest_page = 0
        page.evaluate(WATCH_ROWS)
        read, messages = told.pages, told.messages
        until(lambda: told.pages >= read + 6, "news are read", 20)
        pills, firsts, watched_ms = page.evaluate("[window.pills, window.firsts, performance.now() - window.watched_from]")
        seen = told.messages - messages
        print(f"{firsts} changes of the first row for {seen} messages in {watched_ms:.0f} ms, {told.pages - read} pages")
        # The long pages would not reach what the list has.
        assert told.longest_page < LONG_PAGE
        assert firsts >= 2
        # The rows change with every second message at most, also while news are read. By the page's clock: messages that come late
        # are fewer, and each of them may then change the rows.
        assert firsts <= watched_ms / TWO_MESSAGES_MS + 2
        assert pills == 0
        told.end()
        tab.close()


def test_many_endpoints_are_listed_without_too_many_requests(console, api):
    template = api.template()["id"]
    made = [api.external(name=f"Endpoint {number:04}", templateId=template) for number in range(ENDPOINTS)]
    asked: list[str] = []
    tab = console().sign_in()
    tab.context.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page = tab.go("/endpoints")
    expect(page.get_by_role("link", name="Endpoint 0000", exact=True)).to_be_visible()
    expect(page.get_by_text(str(len(api.ok("GET", "/v1/endpoints")))).first).to_be_visible()
    assert nodes(page) <= NODES_MAX, nodes(page)
    page.mouse.move(700, 600)
    page.mouse.wheel(0, 1_000_000)
    expect(page.get_by_role("link", name=f"Endpoint {ENDPOINTS - 1:04}", exact=True)).to_be_visible()
    assert nodes(page) <= NODES_MAX, nodes(page)
    page.get_by_label("Search endpoints").fill(f"Endpoint {ENDPOINTS - 1:04}")
    expect(page.get_by_role("link", name=f"Endpoint {ENDPOINTS - 1:04}", exact=True)).to_be_visible()
    tab.go("/")
    expect(page.get_by_role("link", name="Endpoint 0000", exact=True)).to_be_visible()
    assert nodes(page) <= 2 * NODES_MAX, nodes(page)
    # Too many requests would be refused with 429, which the browser prints, and the test fails. The counts are in one answer.
    assert len(made) == ENDPOINTS and len(asked) < 400, len(asked)
    assert len([path for path in asked if path.endswith("/health")]) < ENDPOINTS, asked
    tab.go("/endpoints")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    for endpoint in (made[0], made[-1]):
        endpoint.run()
        page.get_by_label("Search endpoints").fill(endpoint.record["name"])
        expect(waiting_of(page, endpoint.record["name"])).to_have_text("1")


def waiting_of(page, name: str):
    """The cell with the number of jobs that wait, in the table of endpoints."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).get_by_role("cell").nth(1)


def test_the_counts_of_more_addresses_than_are_kept_follow_the_events(fresh_server, console):
    """A key for jobs reads the counts of each endpoint by itself. Those of other tests would be too many for its rate limit."""
    server = fresh_server()
    api = Api(server)
    template = api.template()["id"]
    made = [api.external(name=f"Kept {number}", slug=f"kept-{number:03}", templateId=template) for number in range(KEPT_ADDRESSES + 10)]
    tab = console(server).sign_in(key_for(api, {"scope": "jobs"})["key"], "/endpoints")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="kept-")).not_to_have_count(0)
    for endpoint in (made[0], made[-1]):
        page.get_by_label("Search endpoints").fill(endpoint.id)
        expect(waiting_of(page, endpoint.id)).to_have_text("0")
        endpoint.run()
        expect(waiting_of(page, endpoint.id)).to_have_text("1")
    # An address with a slug is that of an endpoint whose jobs the key may read.
    tab.go(f"/endpoints/{endpoint.record['slug']}/requests")
    expect(page.get_by_role("row").filter(has_text="Queued")).to_be_visible()


def test_many_workers_are_listed(console, api):
    endpoint = api.external(name="Crowded", workersMax=WORKERS)
    token = endpoint.worker_token()["token"]
    workers = [FakeWorker(endpoint, name=f"crowd{number:04}", token=token) for number in range(WORKERS)]
    for worker in workers:
        worker.ping()
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/workers")
    page = tab.page
    shown = page.get_by_role("row").filter(has_text="crowd")
    expect(shown.filter(has_text="crowd0000")).to_be_visible()
    expect(page.get_by_role("region", name="Running")).to_contain_text(f"Running{WORKERS}")
    expect(shown).to_have_count(WORKERS)
    # Each is a row of the document, with few nodes.
    assert nodes(page) <= NODES_MAX + WORKERS * ROW_NODES_MAX, nodes(page)
    assert tab.sideways() <= 0


def test_a_long_stream_is_shown_without_a_stall(console, api):
    endpoint = api.external(name="Talking")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}")
    page = tab.page
    expect(page.get_by_text("Running").first).to_be_visible()
    # Text of several pieces, with lines and without.
    parts = ["first ", "harbour lights\n" * 1500, "x" * 20_000]
    for part in parts:
        worker.chunk(job, part)
    log = page.get_by_role("log", name="Streamed text")
    until(lambda: log.text_content() == "".join(parts), "all of the text is shown", 20)
    assert page.locator(".piece").count() >= 4
    page.evaluate(COUNT_FRAMES)
    began = time.monotonic()
    for number in range(CHUNKS):
        worker.chunk(job, f"{number} ")
    expect(page.get_by_role("region", name="Stream")).to_contain_text(f" {CHUNKS - 1} ")
    frames, changes = page.evaluate("[window.frames_seen, window.changes_seen]")
    took = time.monotonic() - began
    print(f"{CHUNKS} chunks: {changes} changes of the page in {frames} frames and {took:.1f} s")
    # One render for a frame, however many chunks it brought, and the clocks of the page.
    assert changes <= frames + 60
    assert nodes(page) <= NODES_MAX, nodes(page)
    worker.done(job, {"output": None})
    expect(page.get_by_role("main").get_by_text("Completed", exact=True)).to_be_visible()


# How many bytes have come to the page.
RECEIVED = "performance.getEntriesByType('resource').reduce((bytes, one) => bytes + one.encodedBodySize, 0)"
# The longest text that is parsed in one part.
WATCH_PARSING = """
window.parsed_at_once = 0;
const parse = JSON.parse;
JSON.parse = (text, ...rest) => ((window.parsed_at_once = Math.max(window.parsed_at_once, text.length)), parse(text, ...rest));
"""
# Counts, from the next click until the tree is there, how often the page was busy for more than 10 ms and then did something else. Parts are
# counted, not timed: a computer that stands still makes one of them longer. While the page has nothing to do, turns are 4 ms apart.
COUNT_PARTS = """() => {
  [window.parts, window.longest_ms] = [0, 0];
  let at = 0;
  const turn = () => {
    const busy_ms = performance.now() - at;
    if (busy_ms > 10) window.parts += 1;
    window.longest_ms = Math.max(window.longest_ms, busy_ms);
    at = performance.now();
    if (!document.querySelector('[aria-label="Unfold"]')) setTimeout(turn);
  };
  addEventListener("click", () => ((at = performance.now()), setTimeout(turn)), { capture: true, once: true });
}"""
# Read in one part, the text has 2 to 4 of these, with what the page does around it; in parts of 12 ms, 17 or more. A fast computer has
# fewer, of which none is a long task.
PARTS_MIN = 10
LONG_TASK_MS = 50


def test_a_large_output_is_made_a_tree_while_the_page_goes_on(console, api):
    endpoint = api.external(name="Large")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    output = [{"id": number, "name": f"ship {number}", "tags": ["a", "\u2693", str(number)]} for number in range(120_000)]
    text = json.dumps({"output": output})
    assert 6_000_000 < len(text) < 10_000_000, len(text)
    worker.done(job, text)
    tab = console()
    tab.context.add_init_script(WATCH_PARSING)
    asked = []
    tab.page.on("request", lambda request: asked.append(urlsplit(request.url).path.rsplit("/", 1)[1]))
    page = tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    shown = page.get_by_role("region", name="Output")
    button = shown.get_by_role("button", name="Show it")
    expect(button).to_be_visible()
    assert "output" not in asked and page.evaluate(RECEIVED) < 1_000_000
    page.evaluate(COUNT_PARTS)
    with Standstills() as standstills:
        began = time.monotonic()
        button.click()
        expect(shown.get_by_role("button", name="Unfold")).to_be_visible()
        ended = time.monotonic()
    took_ms = (ended - began) * 1000
    parts, longest_ms, parsed = page.evaluate("[window.parts, window.longest_ms, window.parsed_at_once]")
    print(f"{len(text) / 1e6:.1f} MB of JSON are a tree after {took_ms:.0f} ms, in {parts} parts of at most {longest_ms:.0f} ms")
    assert parts >= PARTS_MIN or longest_ms < LONG_TASK_MS
    assert longest_ms < took_ms / 2 or standstills.any_between(began, ended), standstills
    assert asked.count("output") == 1
    assert parsed < 1_000_000, parsed
    shown.get_by_role("button", name="Unfold").click()
    shown.get_by_label("Find in output").fill("ship 119999")
    expect(shown.get_by_role("status")).to_have_text("1 of 1")
    expect(shown.locator("code")).to_have_text(".[119999].name")


@pytest.mark.timeout(300 + 2 * SOAK_S)
def test_a_tab_that_stays_open_does_not_grow(console, api):
    endpoint = api.external(name="Steady")
    worker = FakeWorker(endpoint)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()

    def go(path: str) -> None:
        page.evaluate("path => (history.pushState(null, '', path), dispatchEvent(new PopStateEvent('popstate')))", f"/console{path}")
        expect(page.locator(".loading-page")).to_have_count(0)

    def work(jobs: int, seconds: float) -> int:
        """This many jobs come and end, and more until this time is over, and one looks around."""
        ended, until_s = 0, time.monotonic() + seconds
        while ended < jobs or time.monotonic() < until_s:
            job = endpoint.run({"n": ended})
            taken = worker.take()["id"]
            worker.done(taken, {"output": {"n": ended}})
            ended += 1
            if ended % JOBS_OF_STEP == 0:
                part = WALK[ended // JOBS_OF_STEP % len(WALK)]
                go(f"/endpoints/{endpoint.id}{part.format(job=job)}")
        return ended

    def at_rest() -> dict[str, int]:
        """What is held on a page without a list of jobs: a list may keep its rows."""
        go("/templates")
        expect(page.get_by_role("heading", name="Templates", level=1)).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        return held(tab)

    # What is kept of the newest jobs and of each page is there before it is measured.
    seen = work(WARM_JOBS, SOAK_S / 3) // (JOBS_OF_STEP * len(WALK))
    before = at_rest()
    ended = work(80, SOAK_S)
    after = at_rest()
    print(f"{ended} jobs in {SOAK_S:.0f} s: {before} before, {after} after")
    # The page keeps what it read last of 200 addresses: until it has seen that number of jobs, that grows.
    room = {"heap": 0 if seen >= KEPT_ADDRESSES else 1_000_000, "nodes": 50, "listeners": 10}
    for what, number in before.items():
        assert after[what] <= number * 1.1 + room[what], (what, before, after)
