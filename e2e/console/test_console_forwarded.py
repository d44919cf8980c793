"""The pages of a load-balancing endpoint, and a page of its worker that is served beside the console."""

import json
import re

import pytest
from playwright.sync_api import expect

from harness.browser import message
from harness.wait import until


@pytest.fixture(scope="module")
def forwarded(api):
    """A public endpoint whose worker is healthy."""
    endpoint = api.endpoint(
        "web_app.py", name="Forwarded", slug="forwarded", type="LB", scalerType="REQUEST_COUNT", workersMin=1, workersMax=1,
        lb={"public": True},
    )
    assert api.call("GET", "/lb/forwarded/echo", headers={"Authorization": None}).status_code == 200
    return endpoint


def test_the_page_of_an_endpoint_shows_its_requests_and_the_health_of_its_workers(console, api, forwarded):
    tab = console().sign_in(path="/endpoints/forwarded")
    page = tab.page
    expect(page.get_by_role("heading", name="Forwarded", exact=True)).to_be_visible()
    figures = page.locator(".gauge")
    expect(figures.filter(has_text="Healthy workers").locator(".value")).to_have_text("1")
    expect(page.get_by_role("region", name="Address")).to_contain_text("/lb/forwarded/")
    running = page.get_by_role("region", name="Running workers")
    expect(running.get_by_role("row").filter(has_text="Idle")).to_be_visible()
    # What is for jobs is not there.
    expect(page.get_by_role("button", name="Run a job")).to_have_count(0)
    tabs = page.get_by_role("navigation", name="Pages of this endpoint")
    expect(tabs.get_by_role("link", name="Playground")).to_have_count(0)
    assert tab.axe() == []

    def answered() -> int:
        assert api.call("GET", "/lb/forwarded/echo").status_code == 200
        return int(figures.filter(has_text="Requests").locator(".note").inner_text().split()[0])

    first = answered()
    until(lambda: answered() > first, "the page counts requests as they come")
    api.call("GET", "/lb/forwarded/none")
    expect(page.get_by_role("region", name="Address")).to_contain_text("4xx")
    for title in ("Requests", "Answered a second", "First byte", "Workers"):
        expect(page.get_by_role("region", name=title, exact=True).locator("canvas")).to_be_visible()


def test_a_page_of_a_worker_cannot_read_the_session_of_the_console(console, server, forwarded):
    tab = console().sign_in()
    assert tab.page.context.cookies(), "the browser is signed in"
    tab.forget("/lb/forwarded/page")
    tab.forget("blocked by CORS policy")
    tab.forget("net::ERR_FAILED")
    page = tab.page
    page.goto(f"{tab.root.removesuffix('/console')}/lb/forwarded/page")
    seen = page.locator("#seen")
    expect(seen).not_to_have_text("waits")
    origin, session, me, cookies, stored = json.loads(seen.inner_text())
    assert (origin, session, me, cookies, stored) == ("null", "TypeError", "TypeError", "SecurityError", "SecurityError")
    # The worker got no cookie of the console with the page.
    headers = page.goto(f"{tab.root.removesuffix('/console')}/lb/forwarded/echo").json()["headers"]
    assert not [value for name, value in headers if name == "cookie"]


def test_the_settings_of_forwarded_requests_are_changed_in_place_of_those_of_jobs(console, api):
    volumes = [api.ok("POST", "/v1/networkvolumes", json={"name": name, "size": 1})["id"] for name in ("weights", "data")]
    endpoint = api.endpoint("web_app.py", name="Tuned forwards", type="LB", lb={"port": 7003, "public": True})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    requests = page.get_by_role("region", name="Requests")
    expect(requests.get_by_label("Port lb.port", exact=True)).to_have_value("7003")
    for group in ("Jobs", "Results and webhooks", "Objectives", "Models and examples"):
        expect(page.get_by_role("region", name=group)).to_have_count(0)
    expect(page.get_by_label("Start patience startPatienceMs")).to_have_accessible_description(re.compile("^A worker that is not healthy"))
    requests.get_by_label("Port lb.port", exact=True).fill("")
    requests.get_by_label("Path of the health check lb.healthPath").fill("/healthy")
    requests.get_by_label("Most waiting requests lb.queueMax").fill("7")
    requests.get_by_label("Largest body that waits lb.bodyBytesMax").fill("1000000")
    requests.get_by_label("Requests need lb.public").select_option("a key")
    page.get_by_role("group", name="More volumes").get_by_label("data").check()
    expect(page.get_by_text("6 settings are changed.")).to_be_visible()
    assert tab.axe() == []
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog.get_by_role("row").filter(has_text="lb.public").get_by_role("cell")).to_have_text(["no key", "a key"])
    expect(dialog.get_by_role("row").filter(has_text="networkVolumeIds").get_by_role("cell")).to_have_text(["none", "data"])
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(message(page)).to_contain_text("The settings are saved.")
    record = api.ok("GET", f"/v1/endpoints/{endpoint.id}")
    assert record["networkVolumeIds"] == volumes[1:]
    lb = record["lb"]
    assert "port" not in lb, lb
    assert (lb["healthPath"], lb["queueMax"], lb["bodyBytesMax"], lb["public"], lb["drainTimeoutMs"]) == ("/healthy", 7, 1_000_000, False, 330_000)
