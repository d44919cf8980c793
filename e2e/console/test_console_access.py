"""The console for everyone: what opens over a page, the drawer of a phone, and keys alone."""

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, WIDE, key_for
from harness.keyboard import press_pair
from harness.wait import until


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
    tab = console().keep_asking().sign_in()
    page = tab.page
    # The two keys belong together only within a second.
    expect(page.locator(".loading, .loading-page")).to_have_count(0)
    press_pair(page, "g", "e")
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


# More than the drawer has links.
REACHED_MAX = 20


def test_the_drawer_of_a_narrow_window_has_the_focus_while_it_is_open(console):
    page = console(width=PHONE).sign_in().page
    menu, overview = page.get_by_role("button", name="Menu"), page.get_by_role("link", name="Overview", exact=True)
    for _ in range(2):
        menu.press("Enter")
        expect(overview).to_be_focused()
        # Nothing beside it is reached.
        for _ in range(REACHED_MAX):
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.closest('.main-column') === null")
        page.keyboard.press("Escape")
        expect(overview).to_be_hidden()
        expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    expect(overview).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Endpoints", level=1)).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
    # In a wide window it is no drawer.
    menu.press("Enter")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Endpoints")).to_be_focused()
    page.set_viewport_size({"width": WIDE, "height": 900})
    find = page.get_by_role("button", name="Find anything")
    # What cannot have the focus is not pressed.
    until(lambda: find.focus() or page.evaluate("document.activeElement.matches('.find')"), "the top bar is reached")
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Find anything")).to_be_focused()


# Keeps what a screen reader is told in `told`: each text, and whether it can be told, beside an open dialog or not.
LISTEN = """() => {
  window.told = [];
  new MutationObserver((changes) => changes.forEach(({ target, addedNodes }) => addedNodes.forEach(({ data }) => {
    if (data && target.matches("[aria-live]")) told.push([data, target.closest("dialog") === document.querySelector("dialog[open]")]);
  }))).observe(document, { childList: true, characterData: true, subtree: true });
}"""


def test_each_message_is_told_to_screen_readers(console, api):
    key_for(api, {"scope": "read"}, name="heard")
    page = console().sign_in(path="/api-keys").page
    page.evaluate(LISTEN)
    page.get_by_role("button", name="Make a key").click()
    dialog = page.get_by_role("dialog", name="Make a key")
    dialog.get_by_label("Name").fill("told")
    dialog.get_by_role("button", name="Make the key").click()
    told = []
    dialog = page.get_by_role("dialog", name="The key “told”")
    for _ in range(2):
        dialog.get_by_role("button", name="Copy", exact=True).first.click()
        told.append(["Copied.", True])
        # The second text is equal to the first.
        until(lambda: page.evaluate("told") == told, "it is told")
    dialog.get_by_role("button", name="I have kept it").click()
    row = page.get_by_role("row").filter(has_text="heard")
    row.get_by_role("button", name="Disable").click()
    row.get_by_role("button", name="Enable").click()
    # One comes before the other could be told.
    until(lambda: page.evaluate("told.slice(2)") == [["heard is disabled. heard works again.", True]], "both are told")
