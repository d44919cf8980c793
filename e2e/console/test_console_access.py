"""The console for everyone: no page has a fault that axe-core knows, none scrolls sideways on a phone."""

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, WIDE
from harness.client import Api

SIZES = [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")]


@pytest.fixture(scope="module")
def things(server):
    """One endpoint with a waiting, a completed and a failed job."""
    api = Api(server)
    waiting = api.external(name="Whisper large v3")
    ended = api.endpoint("outcomes.py", name="Outcomes of every kind")
    api.ok("POST", "/v1/networkvolumes", json={"name": "weights of the models", "size": 200})
    api.ok("POST", "/v1/containerregistryauth", json={"name": "company registry", "username": "ada", "password": "hush"})
    completed, failed = ended.run({"mood": "list"}), ended.run({"mood": "raise"})
    ended.wait_for(completed, "COMPLETED", timeout_s=60)
    ended.wait_for(failed, "FAILED", timeout_s=60)
    return {
        "/": "Whisper large v3",
        "/endpoints": "Whisper large v3",
        f"/endpoints/{ended.id}": completed[-12:],
        f"/endpoints/{ended.id}/requests": completed[-12:],
        f"/endpoints/{ended.id}/workers": "Idle",
        f"/endpoints/{ended.id}/logs": completed[-12:],
        f"/endpoints/{ended.id}/settings": "is the present one",
        "/workers": "Outcomes of every kind",
        "/requests": failed[-12:],
        f"/endpoints/{ended.id}/requests/{completed}": "two",
        f"/endpoints/{ended.id}/requests/{failed}": "The handler raised ValueError",
        f"/endpoints/{waiting.id}/requests/{waiting.run()}": "Place in the line",
        f"/endpoints/{ended.id}/requests/none": "This job is not here",
        f"/endpoints/{ended.id}/playground": "The last 50 runs",
        f"/endpoints/{ended.id}/playground?job={completed}": "two",
        "/api-keys": "the operator",
        "/audit": f"endpoints/{ended.id}",
        "/templates": "Outcomes of every kind",
        "/volumes": "weights of the models",
        "/registries": "company registry",
        "/nowhere": "No page has this address",
    }


@pytest.mark.parametrize("width, scheme", SIZES)
def test_no_page_has_a_fault_and_none_scrolls_sideways(console, things, width, scheme):
    tab = console(width=width, color_scheme=scheme, has_touch=width == PHONE).sign_in()
    for path, text in things.items():
        tab.go(path)
        expect(tab.page.get_by_role("main").get_by_text(text).first).to_be_visible()
        assert tab.axe() == [], path
        assert tab.sideways() <= 0, path
        assert tab.page.get_by_role("heading", level=1).count() == 1, path
    tab.forget("404")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_opens_over_a_page_has_no_fault(console, api, scheme):
    endpoint = api.external(name="Opened")
    tab = console(color_scheme=scheme)
    tab.go("/sign-in")
    expect(tab.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert tab.axe() == []
    tab.sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    run = page.get_by_role("button", name="Run a job")
    run.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    # The focus returns to what opened the dialog.
    expect(run).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Copy as").click()
    expect(page.get_by_role("menuitem", name="curl")).to_be_focused()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    tab.go("/api-keys")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_role("dialog", name="Make a key")).to_be_visible()
    assert tab.axe() == []


def test_the_drawer_of_a_phone_opens_and_leads_on(console):
    tab = console(width=PHONE, has_touch=True).sign_in()
    page = tab.page
    link = page.get_by_role("link", name="API keys")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    assert tab.axe() == []
    link.click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()
    expect(page.get_by_role("link", name="Overview")).to_be_hidden()


def test_pages_are_reached_by_keys_alone(console, api):
    endpoint = api.external(name="By keys")
    job = endpoint.run()
    tab = console().sign_in()
    page = tab.page
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Endpoints", level=1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("By keys")
    expect(page.get_by_role("link", name="By keys", exact=True)).to_be_visible()
    page.get_by_role("link", name="By keys", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="By keys", exact=True)).to_be_visible()
    page.keyboard.press("]")
    expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=job)).to_be_visible()
    expect(page.get_by_role("button", name="Cancel job")).to_be_visible()
    page.keyboard.press("c")
    page.keyboard.press("c")
    expect(page.get_by_role("main").get_by_text("Cancelled", exact=True)).to_be_visible()
    theme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") != theme
