"""Lists that are read as a whole: they are searched, and what no event tells is read when it may have changed."""

import re

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, WIDE, is_quiet, key_for
from harness.client import Api
from harness.wait import until

# A list with fewer rows has no search.
ROWS = 8


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_keys_are_searched_by_name_endpoint_and_what_they_may(console, api, width):
    endpoint = api.external(name=f"Lighthouse {width}")
    for number in range(ROWS):
        key_for(api, {"scope": "jobs"}, name=f"ship {number} {width}")
    key_for(api, {"scope": "read", "endpointIds": [endpoint.id]}, name=f"keeper {width}")
    tab = console(width=width, has_touch=width == PHONE).sign_in(path="/api-keys")
    page = tab.page
    keys = page.get_by_role("region", name="Keys")
    expect(keys.get_by_role("row").filter(has_text=f"ship 7 {width}")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(f"lighthouse {width}")
    expect(keys.get_by_role("row")).to_have_count(2)
    expect(keys).to_contain_text(f"keeper {width}")
    expect(keys.locator("header")).to_contain_text("1 of ")
    assert tab.axe() == [] and tab.sideways() <= 0
    # The address holds what is searched for.
    page.reload()
    expect(page.get_by_label("Search keys")).to_have_value(f"lighthouse {width}")
    expect(keys.get_by_role("row")).to_have_count(2)
    page.get_by_label("Search keys").fill("no such key")
    expect(keys).to_contain_text("Nothing matches “no such key”.")
    keys.get_by_role("button", name="Show all").click()
    expect(keys.get_by_role("row").filter(has_text=f"ship 0 {width}")).to_be_visible()


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_endpoints_of_the_overview_are_searched_and_only_some_are_in_the_document(fresh_server, console, width):
    api = Api(fresh_server())
    for number in range(120):
        api.external(name=f"fleet {number:03}{' tanker' if number % 12 == 0 else ''}")
    tab = console(api.server, width=width, has_touch=width == PHONE).sign_in()
    page = tab.page
    card = page.get_by_role("region", name="Endpoints", exact=True)
    rows = card.get_by_role("row").filter(has_text="fleet")
    expect(rows.first).to_contain_text("fleet 000")
    assert rows.count() <= 60
    expect(card.locator("header")).to_contain_text("120")
    card.get_by_role("button", name="Endpoint", exact=True).click()
    expect(rows.first).to_contain_text("fleet 119")
    page.get_by_label("Search endpoints").fill("tanker fleet")
    expect(rows).to_have_count(10)
    expect(card.locator("header")).to_contain_text("10 of 120")
    assert tab.axe() == [] and tab.sideways() <= 0


def test_an_empty_server_has_three_ways_to_the_first_endpoint(fresh_server, console):
    tab = console(fresh_server())
    page = tab.sign_in().page
    for path in ("/", "/endpoints"):
        tab.go(path)
        main = page.get_by_role("main")
        expect(main.get_by_role("heading", name="No endpoint yet")).to_be_visible()
        expect(main.locator(".code-line")).to_have_text(["longshore dev examples/hello", "longshore deploy examples/hello"])
        expect(main.get_by_role("link", name="New endpoint").last).to_be_visible()


def test_volumes_are_read_again_when_a_measurement_no_longer_holds(console, api):
    made = api.ok("POST", "/v1/networkvolumes", json={"name": "weights", "size": 7})
    tab = console()
    tab.context.clock.install()
    asked = []
    tab.page.on("request", lambda request: request.url.endswith("/v1/networkvolumes") and asked.append(request))
    page = tab.sign_in(path="/volumes").page
    row = page.get_by_role("row").filter(has_text="weights")
    expect(row).to_contain_text("0 B of 7 GB")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    # While it holds, nothing is asked. The page may still read what the first events are about.
    until(lambda: is_quiet(page, asked), "nothing more is read", 20)
    before = len(asked)
    page.clock.fast_forward(120_000)
    expect(row).to_contain_text("0 B of 7 GB")
    assert len(asked) == before
    with page.expect_request(lambda request: request.url.endswith("/v1/networkvolumes")):
        page.clock.fast_forward(181_000)
    # What others change is told.
    api.ok("PATCH", f"/v1/networkvolumes/{made['id']}", json={"size": 9})
    page.clock.fast_forward(2_000)
    expect(row).to_contain_text("of 9 GB")


def test_the_states_of_the_jobs_of_many_endpoints_are_counted(console, api):
    added = [api.external(name=f"Counted {number}") for number in range(21)]
    for endpoint in added:
        endpoint.run({})
    page = console().sign_in(path="/requests").page
    queued = page.get_by_role("group", name="State").get_by_role("button", name=re.compile("^Queued"))
    counts = api.ok("GET", "/v1/requests?limit=1&counts=true")["counts"]
    assert counts["IN_QUEUE"] >= 21
    expect(queued).to_have_text(f"Queued {counts['IN_QUEUE']}")
    added[0].run({})
    expect(queued).to_have_text(f"Queued {counts['IN_QUEUE'] + 1}")
