"""A key that is pressed again and again: what is shown once stays until it was kept."""

import pytest
from playwright.sync_api import expect

from harness.browser import Console


@pytest.fixture
def making(console) -> Console:
    """The page of keys with the dialog that makes one."""
    tab = console().sign_in(path="/api-keys")
    tab.page.get_by_role("button", name="Make a key").click()
    return tab


def test_escape_does_not_close_what_is_shown_once(making):
    page = making.page
    page.get_by_label("Name", exact=True).fill("shown once")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="The key “shown once”")
    key = dialog.get_by_text("ls_").first
    expect(key).to_be_visible()
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(key).to_be_visible()
    # Also where nothing in it has the focus.
    dialog.get_by_text("This is the only time that it is shown").click()
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(key).to_be_visible()
    page.get_by_role("button", name="I have kept it").click()
    expect(dialog).to_have_count(0)


def test_escape_asks_each_time_about_what_was_typed(making):
    page = making.page
    page.get_by_label("Name", exact=True).fill("not saved")
    for _ in range(3):
        page.keyboard.press("Escape")
        expect(page.get_by_text("Your changes are not saved.")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_text("Your changes are not saved.")).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_be_visible()
