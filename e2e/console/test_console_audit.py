"""The audit log in the console: what is in it, its filters in the address, news, more entries, and the file."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, intercept, key_for


def test_who_changed_what_is_listed_and_news_comes_by_itself(console, api):
    endpoint = api.external(name="Audited")
    page = console().sign_in(path="/audit").page
    row = page.get_by_role("row").filter(has_text=f"endpoints/{endpoint.id}").first
    expect(row).to_contain_text("the operator")
    expect(row).to_contain_text("Make")
    expect(row).to_contain_text("Done")
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 2})
    changed = page.get_by_role("row").filter(has_text="workersMax")
    expect(changed).to_contain_text("Change")
    changed.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Audited", level=1)).to_be_visible()


def test_a_phone_shows_the_changed_fields_too(console, api):
    endpoint = api.external(name="Seen on a phone")
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 2})
    page = console(width=PHONE, has_touch=True).sign_in(path="/audit").page
    row = page.get_by_role("row").filter(has_text=f"endpoints/{endpoint.id}").first
    expect(row.locator(".audit-who")).to_contain_text(": workersMax")


def test_a_filter_is_in_the_address_and_says_when_nothing_matches(console, api):
    endpoint = api.external(name="One of two")
    key = key_for(api, {"scope": "read"}, name="reader")
    page = console().sign_in(path="/audit").page
    page.get_by_label("Resource").fill("apikeys")
    expect(page.get_by_role("row").filter(has_text=f"apikeys/{key['id']}")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=f"endpoints/{endpoint.id}")).to_have_count(0)
    expect(page).to_have_url(re.compile("resource=apikeys"))
    page.get_by_role("button", name="1 hour").click()
    expect(page.get_by_role("button", name="1 hour")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_label("Resource")).to_have_value("apikeys")
    expect(page.get_by_role("row").filter(has_text=f"apikeys/{key['id']}")).to_be_visible()
    page.get_by_label("Key", exact=True).select_option(label="reader")
    expect(page.get_by_text("Nothing in this range.")).to_be_visible()
    expect(page).to_have_url(re.compile(f"key={key['id']}"))


def test_older_entries_come_when_asked_and_all_are_in_the_file(console, api):
    endpoint = api.external(name="Changed often")
    for number in range(105):
        api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 1 + number % 2})
    page = console().sign_in(path=f"/audit?resource=endpoints/{endpoint.id}").page
    expect(page.get_by_text("100 entries so far")).to_be_visible()
    page.get_by_role("button", name="Older entries").click()
    expect(page.get_by_text("106 entries", exact=True)).to_be_visible()
    # News moves entries out of the newest page of the server, but not out of the list.
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 3})
    expect(page.get_by_text("107 entries", exact=True)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSONL").click()
    lines = download.value.path().read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert len(entries) == 107
    assert [entry["id"] for entry in entries] == sorted((entry["id"] for entry in entries), reverse=True)
    assert entries[-1]["method"] == "POST"


def test_a_key_that_may_not_read_it_is_not_led_to_it(console, api):
    tab = console().sign_in(key_for(api, {"scope": "read"})["key"])
    expect(tab.page.get_by_role("link", name="Audit log")).to_have_count(0)
    # A refused request would be printed, and fail the test.
    tab.go("/audit")
    expect(tab.page.get_by_text("Only a key that manages all endpoints may read the audit log.")).to_be_visible()


class Log:
    """A log of `last` entries in place of the server's."""

    def __init__(self):
        self.last = 0

    def open(self, page) -> None:
        intercept(page, "**/v1/audit?*", self._answer)
        page.locator("#side").get_by_role("link", name="Audit log").click()

    def _answer(self, route) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        newest = min(self.last, int(query.get("cursor", [self.last + 1])[0]) - 1)
        numbers = range(newest, max(0, newest - int(query["limit"][0])), -1)
        change = {"at": "2026-01-01T00:00:00Z", "event": "change", "method": "PATCH", "path": "/", "outcome": "done"}
        route.fulfill(json=[change | {"id": number, "fields": [f"field{number}"]} for number in numbers])

    def numbers(self, page) -> list[int]:
        return [int(text.removeprefix("field")) for text in page.locator(".audit-table td:nth-child(4)").all_inner_texts()]


@pytest.fixture
def log() -> Log:
    return Log()


def test_entries_that_come_after_a_gap_are_not_put_before_older_ones(console, api, log):
    """More entries than a page come between two reads: the list begins anew, without a hole in it."""
    log.last = 150
    tab = console().sign_in()
    page = tab.page
    log.open(page)
    expect(page.get_by_text("100 entries so far")).to_be_visible()
    page.get_by_role("button", name="Older entries").click()
    expect(page.get_by_text("150 entries", exact=True)).to_be_visible()
    log.last = 400
    # What happens makes the page read again.
    endpoint = api.external(name="Much happened")
    expect(page.get_by_role("cell", name="field400")).to_be_visible()
    expect(page.get_by_text("100 entries so far")).to_be_visible()
    log.last = 401
    endpoint.patch(workersMax=2)
    expect(page.get_by_role("cell", name="field401")).to_be_visible()
    assert log.numbers(page) == list(range(401, 300, -1))
    for number in (201, 301):
        page.get_by_role("button", name="Older entries").click()
        expect(page.get_by_text(f"{number} entries so far")).to_be_visible()
    page.get_by_role("button", name="Older entries").click()
    expect(page.get_by_text("401 entries", exact=True)).to_be_visible()
    assert log.numbers(page) == list(range(401, 0, -1))


def test_what_becomes_older_than_the_range_leaves_the_list(console, api):
    api.external(name="Soon too old")
    page = console().sign_in(path="/audit?range=1h").page
    expect(page.locator(".audit-table tbody tr")).not_to_have_count(0)
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3700000; }")
    expect(page.get_by_text("Nothing in this range.")).to_be_visible()


def test_a_list_that_stays_open_does_not_grow_until_older_entries_are_asked_for(console, api, log):
    log.last = 100
    page = console().sign_in().page
    log.open(page)
    expect(page.get_by_text("100 entries so far")).to_be_visible()
    endpoint = api.external(name="Busy")
    for step in range(1, 4):
        log.last = 100 + step * 80
        # What happens makes the page read again.
        endpoint.patch(workersMax=step)
        expect(page.get_by_role("cell", name=f"field{log.last}", exact=True)).to_be_visible()
    expect(page.get_by_text("200 entries so far")).to_be_visible()
    assert log.numbers(page) == list(range(340, 140, -1))
    page.get_by_role("button", name="Older entries").click()
    expect(page.get_by_text("300 entries so far")).to_be_visible()
    log.last = 341
    endpoint.patch(workersMax=1)
    expect(page.get_by_text("301 entries so far")).to_be_visible()
