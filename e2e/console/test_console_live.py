"""The console is told what happens: one stream for all tabs of a browser, and nothing is asked again and again."""

import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, expect

from harness.browser import intercept, key_for, message
from harness.events import follow
from harness.fake_worker import FakeWorker
from harness.gate import Gate
from harness.server import ADMIN_KEY
from harness.wait import until

# The places of columns in the lists of the newest jobs, and of endpoints after the name.
RAN = 5
OLDEST = 2

TABS = 8
ASKED_MAX = 3
# The requests of a tab that are in flight at a time.
IN_FLIGHT_MAX = 4
QUIET_S = 2.5
# The jobs of an endpoint's newest that its page has read, some older ones, and those that are deleted together.
NEWEST, OLDER, DELETED = 50, 5, 10
# How long a page is without its server, the jobs that end meanwhile, and the time of which a rate is the mean.
AWAY_S, DONE, RATE_S = 600, 30, 10


@pytest.fixture(scope="module")
def live(api):
    """An endpoint without workers, so that nothing happens that a test does not do."""
    return api.external(name="Told")


class Asked:
    """The requests of all tabs, apart from the files of the page."""

    def __init__(self, tab):
        self.paths: list[str] = []
        self.last = time.monotonic()
        self.page = tab.page
        tab.context.on("request", self._note)
        # What the page shows first has been read once it asks for nothing for 2.5 s.
        self.begin()

    def begin(self) -> None:
        """Waits until nothing is asked for, and counts from there."""
        until(lambda: self.page.evaluate("1") and time.monotonic() - self.last > QUIET_S, "the page is quiet")
        del self.paths[:]

    def _note(self, request) -> None:
        address = urlsplit(request.url)
        if not address.path.startswith("/console"):
            self.paths.append(f"{request.method} {address.path}")
            self.last = time.monotonic()


def event_readers(api) -> int:
    return api.ok("GET", "/v1/server")["connections"]["eventReaders"]


def test_eight_tabs_share_one_stream_and_are_told_of_a_job(console, api, live):
    tab = console().sign_in(path=f"/endpoints/{live.id}/requests")
    asked = Asked(tab)
    pages = [tab.page, *(tab.open_page() for _ in range(TABS - 1))]
    for page in pages[1:]:
        page.goto(f"{tab.root}/endpoints/{live.id}/requests")
    for page in pages:
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    # Streams of tabs that are closed, those of other tests too, end a moment later.
    until(lambda: event_readers(api) == 1, "one stream of events is left, that of this browser")
    job = live.run()
    for page in pages:
        expect(page.get_by_role("row").filter(has_text=job[-12:])).to_contain_text("Queued")
    # A tab that began to listen late reads again what it shows, 2 s after it read it.
    asked.begin()
    # A state that changes changes in place; no tab asks for it.
    live.ok("POST", f"/cancel/{job}")
    for page in pages:
        expect(page.get_by_role("row").filter(has_text=job[-12:])).to_contain_text("Cancelled")
    lists = [path for path in asked.paths if path.endswith("/requests")]
    assert lists == [], lists
    assert event_readers(api) == 1


def test_a_page_asks_for_nothing_while_nothing_happens(console, live):
    tab = console()
    tab.sign_in(path=f"/endpoints/{live.id}")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    asked = Asked(tab)
    problems = follow(f"{live.api.server.url}/v1/events?topics=attention&endpoint={live.id}", ADMIN_KEY)
    jobs = [live.run() for _ in range(3)]
    expect(page.get_by_role("row").filter(has_text=jobs[2][-12:])).to_be_visible()
    # That no worker is there for them changes nothing else.
    assert any(event.json.get("code") == "no_external_worker" for event in problems if event.name == "attention")
    expect(page.get_by_role("row").filter(has_text=live.run()[-12:])).to_be_visible()
    waiting = live.health()["jobs"]["inQueue"]
    expect(page.get_by_role("main")).to_contain_text(f"Waiting{waiting}")
    # Charts and failures are of minutes; nothing else is asked.
    others = [path for path in asked.paths if not path.endswith(("/history", "/failures"))]
    assert others == [] and len(asked.paths) <= ASKED_MAX, asked.paths


def grows(cell: Locator) -> None:
    """A duration in the cell becomes longer."""
    first = until(lambda: seconds(cell), "there is a duration")
    until(lambda: seconds(cell) > first, "it becomes longer")


def seconds(cell: Locator) -> float:
    units = {"ms": 0.001, "s": 1, "min": 60}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+)\s(ms|min|s)", cell.inner_text()))


def test_the_time_of_a_running_job_goes_on_in_the_list_of_the_newest(console, api):
    endpoint = api.external(name="Runs on")
    job = endpoint.run()
    FakeWorker(endpoint).take()
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    row = page.get_by_role("region", name="Newest requests").get_by_role("row").filter(has_text=job[-12:])
    expect(row).to_contain_text("Running")
    grows(row.get_by_role("cell").nth(RAN))


def test_how_long_the_oldest_job_waits_is_told(console, api):
    endpoint = api.external(name="Waits long")
    tab = console()
    # What is recorded does not say it.
    intercept(tab.page, "**/v1/history?*", lambda route: route.fulfill(json={"endpoints": []}))
    page = tab.sign_in(path="/endpoints").page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    row = page.get_by_role("row").filter(has_text=endpoint.id)
    expect(row).to_be_visible()
    endpoint.run()
    grows(row.get_by_role("cell").nth(OLDEST))


def test_the_page_of_workers_reads_its_list_only_when_one_starts_or_ends(console, api):
    endpoint = api.endpoint("echo.py", name="Rests", workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1, 60)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/workers")
    row = tab.page.get_by_role("row").filter(has_text=endpoint.workers()[0].worker)
    expect(row).to_be_visible()
    asked = Asked(tab)
    events = follow(f"{api.server.url}/v1/events?topics=workers&endpoint={endpoint.id}", ADMIN_KEY)
    # Its memory, its use of the processor and when it was heard last are told, and shown.
    told = (event for event in events if event.name == "worker")
    assert len([next(told) for _ in range(3)]) == 3
    tab.page.evaluate("1")
    assert len([path for path in asked.paths if path.endswith("/workers")]) <= 1, asked.paths
    api.ok("POST", f"/v1/endpoints/{endpoint.id}/workers/{endpoint.workers()[0].worker}/stop")
    expect(tab.page.get_by_role("region", name="Ended").get_by_role("row").filter(has_text="Stopped")).to_be_visible()


def test_older_jobs_move_up_when_the_newest_ones_are_deleted(console, api):
    endpoint = api.external(name="Tidied")
    jobs = [endpoint.run() for _ in range(NEWEST + OLDER)]
    for job in jobs:
        endpoint.cancel(job)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    rows = page.get_by_role("region", name="Newest requests").get_by_role("row")
    expect(rows.filter(has_text=jobs[-1][-12:])).to_be_visible()
    # Of more in one event, the event names no jobs, and the page would read them for that.
    for at in range(OLDER, len(jobs), DELETED):
        deleted = jobs[at : at + DELETED]
        assert endpoint.call("POST", "/bulk", json={"do": "delete", "ids": deleted}).status_code == 202
        until(lambda deleted=deleted: all(map(endpoint.is_gone, deleted)), "they are deleted")
    for job in jobs[:OLDER]:
        expect(rows.filter(has_text=job[-12:])).to_be_visible()
    expect(rows).to_have_count(1 + OLDER)


def test_a_page_follows_what_others_do_to_its_endpoint(console, api):
    endpoint = api.external(slug="renamed")
    tab = console().sign_in(path="/endpoints")
    page = tab.page
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=endpoint.record["name"], exact=True)).filter(has_text="renamed")
    expect(row).to_be_visible()
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"slug": None})
    expect(page.get_by_role("row").filter(has_text=endpoint.id)).to_be_visible()
    expect(row).to_have_count(0)
    job = endpoint.run()
    tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
    why = page.get_by_role("main")
    expect(why).to_contain_text("No worker is there")
    # No worker, and no job, changes with a pause.
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 0})
    expect(why).to_contain_text("The endpoint is paused")
    tab.go(f"/endpoints/{endpoint.id}")
    expect(page.get_by_role("heading", name=endpoint.record["name"], level=1)).to_be_visible()
    tab.forget("404")
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    expect(page.get_by_role("heading", name=endpoint.record["name"], level=1)).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text("No endpoint has this name")


def test_a_page_stays_when_the_slug_in_its_address_is_changed(console, api):
    endpoint = api.external(name="Moves", slug="before")
    tab = console().sign_in(path="/endpoints/before")
    page = tab.page
    expect(page.get_by_role("heading", name="Moves", level=1)).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"slug": "after"})
    # What reads the old address again is told that it is gone.
    tab.forget("404")
    with page.expect_response(lambda answer: answer.url.endswith("/v1/endpoints/before") and answer.status == 404):
        page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume").first).to_be_visible()
    expect(page.get_by_role("heading", name="Moves", level=1)).to_be_visible()
    # One that is gone itself is not shown.
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    expect(page.get_by_text("No endpoint has this name")).to_be_visible()


def test_the_dot_says_when_the_server_is_gone_and_the_page_recovers(console, server, live):
    with Gate(server.port) as gate:
        tab = console(gate)
        tab.forget("ERR_")
        tab.context.clock.install()
        page = tab.sign_in(path=f"/endpoints/{live.id}/requests").page
        dot, root = page.locator(".live"), page.locator("html")
        expect(dot).to_have_text("Live")
        expect(page.get_by_label("Search requests")).to_be_visible()
        gate.cut()
        expect(dot).to_have_text(re.compile(r"^Reconnecting, last news \d+ s ago$"))
        expect(dot).to_have_class("live lost")
        # It is grey after 30 s, no earlier. The clock can only be paused at a time that has not yet come.
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 10)

        def is_24_s_old() -> bool:
            # By single steps: what is shown is up to a second behind.
            page.clock.run_for(1_000)
            return int(re.search(r"(\d+) s ago", dot.text_content())[1]) >= 24

        until(is_24_s_old, "the last news is 24 s old")
        expect(dot).to_have_text(re.compile(r"last news 2\d s ago$"))
        expect(root).not_to_have_class("stale")
        page.clock.run_for(10_000)
        expect(root).to_have_class("stale")
        page.clock.resume()
        job = live.run()
        gate.join()
        expect(dot).to_have_text("Live")
        expect(dot).to_have_class("live live")
        expect(root).not_to_have_class("stale")
        expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()


def test_a_rate_is_unknown_while_the_server_is_gone_and_then_a_mean(console, server, api):
    endpoint = api.external(name="Cut off")
    worker = FakeWorker(endpoint)
    with Gate(server.port) as gate:
        tab = console(gate)
        tab.forget("ERR_")
        tab.context.clock.install()
        page = tab.sign_in(path=f"/endpoints/{endpoint.id}").page
        completed = page.locator(".gauges > div").filter(has_text="in all")
        expect(completed).to_contain_text("Finished0")
        gate.cut()
        expect(page.locator(".live")).to_have_class("live lost")
        # A long time for the page, in which the server does much.
        for _ in range(AWAY_S // 10):
            page.clock.fast_forward(10_000)
        expect(completed).to_contain_text("Finished–")
        for _ in range(DONE):
            job = endpoint.run()
            assert worker.take()["id"] == job
            worker.done(job, {"output": 1})
        gate.join()
        expect(completed).to_contain_text(f"{DONE} completed in all")
        seen = []
        for _ in range(RATE_S // 2):
            page.clock.fast_forward(2_000)
            seen.append(re.match(r"Finished(–|[\d.]+)", completed.text_content())[1])
        known = [float(text) for text in seen if text != "–"]
        assert known and max(known) < 2 * DONE / AWAY_S, seen


# Whether the page is hidden, as a browser says it of a tab behind others.
HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.parametrize("worker", ["shared worker", "stream of its own"])
def test_a_hidden_tab_closes_the_stream_of_events_after_20_s(console, api, live, worker):
    tab = console()
    if worker == "stream of its own":
        tab.context.add_init_script("delete window.SharedWorker")
    tab.context.clock.install()
    page = tab.sign_in(path=f"/endpoints/{live.id}/requests").page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    # The modules are there before the session's answer.
    page.reload()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_label("Search requests")).to_be_visible()
    asked = Asked(tab)
    until(lambda: event_readers(api) == 1, "one stream of events is left, that of this tab")
    page.evaluate(HIDE, True)
    # The clock goes on between these two.
    page.clock.fast_forward(10_000)
    # What the tab is told until then costs no request.
    job = live.run()
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_have_count(1)
    assert event_readers(api) == 1
    page.clock.fast_forward(11_000)
    until(lambda: event_readers(api) == 0, "the stream is closed")
    job = live.run()
    page.clock.fast_forward(3_600_000)
    assert page.evaluate("1") and asked.paths == [], asked.paths
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_have_count(0)
    page.evaluate(HIDE, False)
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    until(lambda: event_readers(api) == 1, "the events are read again")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    job = live.run()
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()


def test_the_stream_of_events_goes_on_for_a_tab_that_is_seen_and_is_joined_again_by_one_that_was_hidden(console, api, live):
    tab = console()
    tab.context.clock.install()
    tab.sign_in(path=f"/endpoints/{live.id}/requests")
    seen = tab.open_page()
    seen.goto(tab.page.url)
    for page in (tab.page, seen):
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    until(lambda: event_readers(api) == 1, "both tabs have one stream")
    tab.page.evaluate(HIDE, True)
    tab.page.clock.fast_forward(21_000)
    job = live.run()
    expect(seen.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    assert event_readers(api) == 1
    expect(tab.page.get_by_role("row").filter(has_text=job[-12:])).to_have_count(0)
    # What a tab missed that the stream did not.
    tab.page.evaluate(HIDE, False)
    expect(tab.page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    job = live.run()
    expect(tab.page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    assert event_readers(api) == 1
    # What the stream had told before it was closed.
    tab.page.evaluate(HIDE, True)
    tab.page.clock.fast_forward(21_000)
    job = live.run()
    expect(seen.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    seen.close()
    until(lambda: event_readers(api) == 0, "the stream is closed")
    tab.page.evaluate(HIDE, False)
    expect(tab.page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()


def test_a_tab_that_was_hidden_does_not_say_live_before_it_is_told(console, server, live):
    with Gate(server.port) as gate:
        tab = console(gate)
        tab.forget("ERR_")
        tab.context.clock.install()
        page = tab.sign_in(path=f"/endpoints/{live.id}/requests").page
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        page.evaluate(HIDE, True)
        page.clock.fast_forward(21_000)
        expect(page.locator(".live")).to_have_text("Connecting")
        gate.cut()
        page.evaluate(HIDE, False)
        expect(page.locator(".live")).to_have_class("live lost")
        gate.join()
        expect(page.locator(".live")).to_have_text("Live")


def test_a_hidden_tab_reads_nothing_and_then_what_it_shows(console, server):
    tab = console()
    tab.context.clock.install()
    page = tab.sign_in(path="/machines").page
    expect(page.get_by_role("main")).to_contain_text("Processors")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    asked = Asked(tab)
    # What no event tells is read again while it is seen.
    page.clock.fast_forward(60_000)
    until(lambda: page.evaluate("1") and "GET /v1/machines" in asked.paths, "the machines are read")
    page.evaluate(HIDE, True)
    del asked.paths[:]
    for _ in range(3):
        page.clock.fast_forward(60_000)
    assert page.evaluate("1") and asked.paths == [], asked.paths
    page.evaluate(HIDE, False)
    until(lambda: page.evaluate("1") and "GET /v1/machines" in asked.paths, "the machines are read")


def test_the_dot_says_when_what_is_shown_could_not_be_read_again(console, api):
    api.external(name="Shown")
    tab = console().sign_in(path="/machines")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("Processors")
    tab.forget("503")
    failure = {"error": "the machines do not answer", "code": "unavailable"}
    intercept(page, "**/v1/machines", lambda route: route.fulfill(status=503, json=failure))
    dot = page.get_by_text(re.compile(r"^Some of this is \d+ s old$"))
    expect(dot).to_be_visible()
    expect(page.locator(".live")).to_have_attribute("title", re.compile("old. The machines do not answer"))
    # What is not shown does not count.
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("link", name="Machines").click()
    expect(dot).to_be_visible()
    page.unroute("**/v1/machines")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("Processors")


def test_the_reads_of_a_page_end_when_it_is_left(console, api):
    endpoint = api.external(name="Slow")
    tab = console()
    page = tab.page
    asked, ended = [], []
    # What the server answers late, of all that the page reads.
    intercept(page, re.compile(rf"/(v1/endpoints|v2)/{endpoint.id}/"), lambda route: asked.append(route))
    page.on("requestfailed", lambda request: ended.append(request.url))
    tab.sign_in(path=f"/endpoints/{endpoint.id}")
    until(lambda: page.evaluate("1") and len(asked) >= IN_FLIGHT_MAX, "the page waits for answers")
    page.get_by_role("link", name="API keys").click()
    # They had all the places of requests, for which those of the next page would wait.
    expect(page.get_by_role("rowheader", name="the operator's key").first).to_be_visible()
    until(lambda: page.evaluate("1") and sorted(ended) == sorted(route.request.url for route in asked), "the requests have ended")
    for route in asked:
        route.abort()
    page.unroute_all()
    # What was ended is read again, and is no failure.
    page.go_back()
    expect(page.get_by_role("main")).to_contain_text("nothing waits")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_a_read_goes_on_for_the_next_page_that_shows_the_same(console, api):
    endpoint = api.external(name="Shared read")
    tab = console()
    page = tab.page
    held = []
    intercept(page, f"**/v2/{endpoint.id}/health", lambda route: held.append(route))
    tab.sign_in(path=f"/endpoints/{endpoint.id}/requests")
    expect(page.get_by_text("No job is here").or_(page.get_by_text("No job in the last"))).to_be_visible()
    head = page.get_by_role("navigation", name="Pages of this endpoint")
    loads = []
    intercept(page, "**/pages/endpoint.js", lambda route: loads.append(route))
    head.get_by_role("link", name="Overview").click()
    expect(page.locator(".loading-page").first).to_be_visible()
    for load in loads:
        load.continue_()
    page.unroute("**/pages/endpoint.js")
    expect(page.get_by_role("region", name="Newest requests")).to_be_visible()
    # No page was there until the module was loaded, which the first read did not wait for.
    until(lambda: page.evaluate("1") and len(held) == 2, "it is read again")
    # Now one page is shown in place of the other.
    head.get_by_role("link", name="Requests").click()
    expect(page.get_by_label("Search requests")).to_be_visible()
    head.get_by_role("link", name="Overview").click()
    gauges = page.get_by_role("main")
    expect(gauges).to_contain_text("Waiting–")
    assert len(held) == 2, [route.request.url for route in held]
    for route in held:
        route.continue_()
    expect(gauges).to_contain_text("nothing waits")


def test_a_page_whose_module_did_not_load_is_loaded_again(console, live):
    tab = console().sign_in(path=f"/endpoints/{live.id}")
    tab.forget("ERR_INTERNET_DISCONNECTED")
    page = tab.page
    expect(page.get_by_role("link", name="Audit log")).to_be_visible()
    tab.context.set_offline(True)
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_text("This page could not be loaded")).to_be_visible()
    tab.context.set_offline(False)
    expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()


def test_a_browser_without_shared_workers_is_told_too(console, live):
    tab = console()
    tab.context.add_init_script("delete window.SharedWorker")
    tab.sign_in(path=f"/endpoints/{live.id}/requests")
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    job = live.run()
    expect(tab.page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()


def test_what_happened_just_now_is_last_on_the_overview(console, api):
    endpoint = api.external(name="Just changed")
    failing = FakeWorker(endpoint)
    job = endpoint.run({})
    tab = console().sign_in()
    now = tab.page.get_by_role("region", name="Just now")
    endpoint.patch(idleTimeout=77)
    change = now.get_by_role("listitem").filter(has_text="ChangeJust changed")
    expect(change).to_contain_text("by the operator's key, idleTimeout")
    failing.done(failing.take()["id"], {"error": "no customer 17"})
    failure = now.get_by_role("listitem").filter(has_text=job[-12:])
    expect(failure).to_contain_text("no customer 17")
    assert tab.axe() == []
    change.get_by_role("link").click()
    expect(tab.page.get_by_role("heading", name="Just changed", level=1)).to_be_visible()
    # What others changed is for keys that may read the audit log.
    reader = console().sign_in(key_for(api, {"scope": "read"})["key"])
    theirs = reader.page.get_by_role("region", name="Just now")
    expect(theirs.get_by_role("listitem").filter(has_text=job[-12:])).to_be_visible()
    expect(theirs.get_by_text("idleTimeout")).to_have_count(0)


def test_what_is_wrong_is_first_on_the_overview_and_goes_when_it_is_repaired(console, api):
    endpoint = api.external(name="Lonely")
    tab = console()
    page = tab.sign_in().page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    asked = Asked(tab)
    job = endpoint.run()
    problem = page.get_by_role("region", name="Attention").locator(".alert").filter(has_text="Lonely: No worker is there")
    expect(problem).to_be_visible()
    endpoint.ok("POST", f"/cancel/{job}")
    expect(problem).to_have_count(0)
    assert "GET /v1/attention" not in asked.paths, asked.paths


def test_a_request_shows_its_input_and_is_found_by_a_part_of_its_id(console, live):
    job = live.run({"prompt": "a lighthouse", "seed": 9007199254740993123})
    page = console().sign_in().page
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill(job[-12:])
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(job)
    page.keyboard.press("Enter")
    shown = page.get_by_role("region", name="Input")
    expect(shown).to_contain_text("a lighthouse")
    expect(shown).to_contain_text("9007199254740993123")
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("async")


def test_a_worker_and_a_page_are_found_by_a_part_of_their_names(console, api):
    endpoint = api.external(name="Quay")
    job, worker = endpoint.run(), FakeWorker(endpoint, name="crane-4711")
    assert worker.take()["id"] == job
    page = console().sign_in().page
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find anything")
    field.fill("ne-47")
    option = page.get_by_role("listbox").get_by_role("option").first
    expect(option).to_contain_text("Worker crane-4711")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="crane-4711")).to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("machines")
    expect(option).to_contain_text("Machines and GPUs")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Machines and GPUs", level=1)).to_be_visible()


def test_the_endpoint_of_the_page_is_paused_by_finding_that(console, api):
    endpoint = api.external(name="Berth", workersMax=3)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("pause berth")
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 0
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("settings")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Scaling")).to_be_visible()


def test_what_is_typed_before_the_palette_is_loaded_stands_in_it(console, server):
    page = console().sign_in().page
    held = []
    intercept(page, "**/ui/palette.js", lambda route: held.append(route))
    page.keyboard.press("Control+k")
    page.keyboard.type("gt machines")
    until(lambda: page.evaluate("true") and held, "the palette is asked for", 10)
    held[0].continue_()
    expect(page.get_by_role("combobox", name="Find anything")).to_have_value("gt machines")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_attached()


def test_a_text_in_an_input_is_found_and_how_far_was_searched_is_said(console, live):
    job = live.run({"customer": "Northern Lights Shipping"})
    page = console().sign_in(path=f"/endpoints/{live.id}/requests?q=northern+lights").page
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    total = live.ok("GET", "/requests")["of"]
    expect(page.get_by_text(f"searched {total} of {total} jobs")).to_be_visible()


def test_failures_are_told_in_groups_and_new_ones_are_marked(console, api):
    endpoint = api.external(name="Failing")
    worker = FakeWorker(endpoint)

    def fail(error: str) -> str:
        job = endpoint.run()
        assert worker.take()["id"] == job
        worker.done(job, {"error": error})
        return job

    fail("no customer 17")
    fail("no customer 18")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    failures = page.get_by_role("region", name="Failures")
    expect(failures.get_by_role("listitem")).to_have_count(1)
    expect(failures).to_contain_text("2 in the last 7 days")
    expect(failures).to_contain_text("no customer #")
    endpoint.patch(templateId=api.template(dockerStartCmd=["true"])["id"])
    job = fail("out of memory")
    new = failures.get_by_role("listitem").filter(has_text="out of memory")
    expect(new).to_contain_text("new in version 2")
    old = failures.get_by_role("listitem").filter(has_text="customer")
    expect(old).to_contain_text(re.compile(r"first .* ago none of 2 since version 2"))
    fail("no customer 19")
    expect(old).to_contain_text("1 of 3 since version 2")
    expect(old).not_to_contain_text("new in")
    assert tab.axe() == []
    new.get_by_role("link").click()
    expect(page.get_by_role("heading", name=job)).to_be_visible()


def test_an_endpoint_shows_whether_it_meets_its_objectives(console, api):
    slo = {"delayMs": 60_000, "delayTarget": 0.9, "successTarget": 0.99, "windowDays": 7}
    endpoint = api.external(name="Promised", slo=slo)
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.done(job, {"error": "out of memory"})
    burn = lambda: api.ok("GET", f"/v1/endpoints/{endpoint.id}/objectives")["success"]["burn"]["h1"]
    until(burn, "the failure is in the history", 30)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    objectives = tab.page.get_by_role("region", name="Objectives")
    expect(objectives).to_contain_text("of the last 7 days")
    # No job started late; the one that ended failed, and 1 % may.
    expect(objectives.get_by_role("row", name="start within 1 min")).to_contain_text("90 %")
    expect(objectives.get_by_role("row", name="complete")).to_contain_text("99 %")
    expect(objectives.get_by_role("row", name="complete").get_by_role("cell").nth(3)).to_have_text(re.compile(r"^100(\.0)?$"))
    assert tab.axe() == []
    tab.go(f"/endpoints/{endpoint.id}/metrics")
    expect(objectives.get_by_role("row", name="complete")).to_contain_text("99 %")
    endpoint.patch(slo=None)
    expect(objectives).to_have_count(0)


def test_a_costly_minute_leads_to_jobs_that_were_submitted_before_it(console, api):
    endpoint = api.external(name="Late", slo={"delayMs": 60_000, "delayTarget": 0.9, "successTarget": 0.99, "windowDays": 7})
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.done(job, {"error": "out of memory"})
    page = console().sign_in().page
    minute = {"from": "2090-01-31T12:00:00Z", "until": "2090-01-31T12:01:00Z", "objective": "success", "bad": 1, "total": 1}
    intercept(page, "**/objectives", lambda route: route.fulfill(json=api.ok("GET", f"/v1/endpoints/{endpoint.id}/objectives") | {"worst": [minute]}))
    page.goto(f"{page.url.split('/console')[0]}/console/endpoints/{endpoint.id}")
    page.get_by_text("The minutes that cost most").click()
    link = page.get_by_role("link", name="Those submitted before 12:01")
    expect(page.locator(".costly li")).to_contain_text("1 of 1 did not complete")
    link.click()
    expect(page.get_by_role("gridcell", name=job[-12:])).to_be_visible()


def test_a_search_that_fails_says_so(console):
    tab = console().sign_in()
    tab.forget("429")
    page = tab.page
    intercept(page, "**/v1/search?*", lambda route: route.fulfill(status=429, json={"error": "too many requests: try again in 5 s", "code": "rate_limited"}))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("crane-0815")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Jobs, workers and keys could not be searched. Too many requests: try again in 5 s.")
    expect(page.get_by_text("Nothing has this name")).to_have_count(0)
    page.unroute("**/v1/search?*")
    page.get_by_role("combobox", name="Find anything").fill("crane-081")
    expect(page.get_by_text("Nothing has this name")).to_be_visible()
    expect(alert).to_have_count(0)


def test_a_search_says_when_endpoints_did_not_answer(console, live):
    page = console().sign_in().page
    found = {"endpoints": [], "jobs": [], "workers": [], "keys": [], "searched": 0, "of": 0}
    intercept(page, "**/v1/search?q=crane*", lambda route: route.fulfill(json=found | {"unanswered": 2}))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("crane-0815")
    note = page.get_by_text("2 endpoints did not answer: jobs can be missing.")
    expect(note).to_be_visible()
    page.get_by_role("combobox", name="Find anything").fill(live.record["name"])
    expect(page.get_by_role("option", name=live.record["name"]).first).to_be_visible()
    expect(note).to_have_count(0)


def test_signing_out_by_finding_that_says_when_the_server_is_away(console):
    tab = console().sign_in()
    tab.forget("ERR_FAILED")
    page = tab.page
    intercept(page, "**/console/session", lambda route: route.abort())
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("sign out")
    page.keyboard.press("Enter")
    expect(message(page)).to_contain_text("The server does not answer.")
