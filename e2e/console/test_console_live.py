"""The console is told what happens: one stream for all tabs of a browser, and nothing is asked again and again."""

import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from harness.browser import key_for, message
from harness.events import follow
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY
from harness.wait import until

TABS = 8
ASKED_MAX = 3
QUIET_S = 2.5


@pytest.fixture(scope="module")
def live(api):
    """An endpoint without workers, so that nothing happens that a test does not do."""
    return api.external(name="Told")


class Asked:
    """The requests of all tabs, apart from the files of the page."""

    def __init__(self, tab):
        self.paths: list[str] = []
        self.last = time.monotonic()
        tab.context.on("request", self._note)
        # What the page shows first has been read once it asks for nothing for 2.5 s.
        until(lambda: tab.page.evaluate("1") and time.monotonic() - self.last > QUIET_S, "the page is quiet")
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
    del asked.paths[:]
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


def test_the_dot_says_when_the_server_is_gone_and_the_page_recovers(console, live):
    tab = console()
    tab.sign_in(path=f"/endpoints/{live.id}/requests")
    page = tab.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_label("Search requests")).to_be_visible()
    tab.forget("ERR_INTERNET_DISCONNECTED")
    tab.context.set_offline(True)
    tab.context.set_offline(False)
    job = live.run()
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()


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
    page.route("**/ui/palette.js", lambda route: held.append(route))
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
    page.route("**/objectives", lambda route: route.fulfill(json=api.ok("GET", f"/v1/endpoints/{endpoint.id}/objectives") | {"worst": [minute]}))
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
    page.route("**/v1/search?*", lambda route: route.fulfill(status=429, json={"error": "too many requests: try again in 5 s", "code": "rate_limited"}))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("crane-0815")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Jobs, workers and keys could not be searched. Too many requests: try again in 5 s.")
    expect(page.get_by_text("Nothing has this name")).to_have_count(0)
    page.unroute("**/v1/search?*")
    page.get_by_role("combobox", name="Find anything").fill("crane-081")
    expect(page.get_by_text("Nothing has this name")).to_be_visible()
    expect(alert).to_have_count(0)


def test_signing_out_by_finding_that_says_when_the_server_is_away(console):
    tab = console().sign_in()
    tab.forget("ERR_FAILED")
    page = tab.page
    page.route("**/console/session", lambda route: route.abort())
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("sign out")
    page.keyboard.press("Enter")
    expect(message(page)).to_contain_text("The server does not answer.")
