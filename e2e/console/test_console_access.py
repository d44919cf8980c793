"""The console for everyone: what opens over a page, the drawer of a phone, and keys alone."""

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE


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
    expect(page.get_by_role("combobox", name="Find anything")).to_be_focused()
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
    shown = page.get_by_role("region", name=f"Request {job[-12:]}")
    expect(shown.get_by_text("Cancelled", exact=True)).to_be_visible()
    theme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    page.keyboard.press("t")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") != theme


def test_the_palette_makes_a_key_on_the_page_of_keys(console):
    page = console().sign_in(path="/api-keys").page
    for _ in range(2):
        expect(page.get_by_role("button", name="Make a key")).to_be_visible()
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Find anything").fill("Make a key")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Make a key")
        expect(dialog).to_be_visible()
        dialog.get_by_role("button", name="Close").last.click()
        expect(dialog).to_have_count(0)
