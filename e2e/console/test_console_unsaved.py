"""Changes that are not saved: leaving the page asks first, by mouse, by keyboard and by the browser's buttons."""

import re

from playwright.sync_api import expect

from harness.browser import message
from harness.keyboard import press_pair


def test_settings_that_are_not_saved_are_asked_about(console, api):
    endpoint = api.external(name="Half done", workersMax=3)
    tab = console().sign_in(path="/endpoints")
    page = tab.page
    page.get_by_role("link", name="Half done").click()
    page.get_by_role("link", name="Settings").click()
    most = page.get_by_label("Most workers workersMax")
    question = page.get_by_text("Your changes are not saved.")
    most.fill("9")
    page.get_by_role("link", name="Audit log").click()
    expect(question).to_be_visible()
    expect(page.get_by_role("button", name="Stay")).to_be_focused()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(most).to_have_value("9")
    # Escape closes what is over the question first.
    page.get_by_role("link", name="Audit log").click()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_have_count(0)
    expect(question).to_be_visible()
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    # By keyboard.
    page.get_by_role("button", name="Review and save").focus()
    press_pair(page, "g", "e")
    expect(page.get_by_role("button", name="Stay")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question).to_have_count(0)
    # By the browser's button: the address stays, and going back works afterwards.
    page.go_back()
    expect(question).to_be_visible()
    expect(page).to_have_url(re.compile(f"/endpoints/{endpoint.id}/settings$"))
    page.get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_role("heading", name="Running workers")).to_be_visible()
    expect(page).to_have_url(re.compile(f"/endpoints/{endpoint.id}$"))
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 3
    # What is undone is not asked about.
    page.get_by_role("link", name="Settings").click()
    most.fill("9")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()


def test_the_browser_asks_before_a_tab_with_changes_is_closed(console, api):
    endpoint = api.external()
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    tab.forget("dialog: ")
    page = tab.page
    page.get_by_label("Most workers workersMax").fill("9")
    expect(page.get_by_text("1 setting is changed.")).to_be_visible()
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"


def test_a_template_and_a_new_endpoint_are_asked_about(console, api):
    template = api.template("echo.py")
    tab = console().sign_in(path="/templates")
    page = tab.page
    change = page.get_by_role("button", name=f"Change {template['name']}")
    dialog = page.get_by_role("dialog", name=f"Change {template['name']}")
    change.click()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    change.click()
    dialog.get_by_label("Image").fill("other")
    page.keyboard.press("Escape")
    expect(dialog.get_by_text("Your changes are not saved.")).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    expect(dialog.get_by_label("Image")).to_have_value("other")
    dialog.get_by_role("button", name="Close").last.click()
    dialog.get_by_role("button", name="Leave without saving").click()
    expect(dialog).to_have_count(0)
    page = tab.go("/new-endpoint")
    page.get_by_role("textbox", name="Name", exact=True).fill("Half done")
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_text("Your changes are not saved.")).to_be_visible()
    page.get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()


def test_signing_out_is_asked_about(console, api):
    endpoint = api.external(workersMax=3)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    page.get_by_label("Most workers workersMax").fill("9")
    tab.sign_out()
    expect(page.get_by_text("Your changes are not saved.")).to_be_visible()
    page.get_by_role("button", name="Stay").click()
    expect(page.get_by_label("Most workers workersMax")).to_have_value("9")
    tab.sign_out()
    page.get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_keys_and_logins_that_are_typed_are_asked_about(console, api):
    tab = console().sign_in(path="/api-keys")
    page = tab.page
    for path, button, label in (("/api-keys", "Make a key", "Name"), ("/registries", "Add a login", "Password or token")):
        tab.go(path)
        page.get_by_role("button", name=button).first.click()
        dialog = page.get_by_role("dialog", name=button)
        dialog.get_by_label(label, exact=True).fill("half done")
        page.keyboard.press("Escape")
        expect(dialog.get_by_text("Your changes are not saved.")).to_be_visible()
        dialog.get_by_role("button", name="Stay").click()
        expect(dialog.get_by_label(label, exact=True)).to_have_value("half done")
        page.keyboard.press("Escape")
        dialog.get_by_role("button", name="Leave without saving").click()
        expect(dialog).to_have_count(0)


def test_an_input_that_is_typed_is_asked_about_and_not_after_it_was_run(console, api):
    endpoint = api.external(name="Not run yet")
    tab = console().sign_in(path="/endpoints")
    page = tab.page
    page.get_by_role("link", name="Not run yet").click()
    run = page.get_by_role("button", name="Run a job")
    dialog = page.get_by_role("dialog", name="Run a job on Not run yet")
    text = dialog.get_by_label("Input, a JSON object")
    question = dialog.get_by_text("Your changes are not saved.")
    # What the dialog begins with is not asked about, also if it was typed back.
    run.click()
    first = text.input_value()
    text.fill("{}")
    text.fill(first)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    run.click()
    text.fill('{"half": "done"}')
    page.keyboard.press("Escape")
    expect(question).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    # By a press outside, and by the browser's button.
    page.mouse.click(5, 5)
    expect(question).to_be_visible()
    dialog.get_by_role("button", name="Stay").click()
    page.go_back()
    expect(question).to_be_visible()
    dialog.get_by_role("button", name="Stay").click()
    expect(text).to_have_value('{"half": "done"}')
    dialog.get_by_role("button", name="Close").last.click()
    dialog.get_by_role("button", name="Leave without saving").click()
    expect(dialog).to_have_count(0)
    run.click()
    text.fill('{"all": "done"}')
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(message(page)).to_contain_text("The job is queued.")
    expect(page).to_have_url(re.compile(f"/endpoints/{endpoint.id}/requests/"))
    expect(page.get_by_text("Your changes are not saved.")).to_have_count(0)
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()


def test_settings_below_an_input_that_was_typed_are_still_asked_about(console, api):
    endpoint = api.external(name="Both typed", workersMax=3)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    most = page.get_by_label("Most workers workersMax")
    question = page.get_by_text("Your changes are not saved.")
    most.fill("9")
    dialog = page.get_by_role("dialog", name="Run a job on Both typed")
    page.get_by_role("button", name="Run a job").click()
    dialog.get_by_label("Input, a JSON object").fill("{}")
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Leave without saving").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="Audit log").click()
    expect(question).to_be_visible()
    page.get_by_role("button", name="Stay").click()
    page.get_by_role("button", name="Run a job").click()
    dialog.get_by_label("Input, a JSON object").fill("{}")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(message(page)).to_contain_text("The job is queued.")
    expect(question).to_be_visible()
    page.get_by_role("button", name="Stay").click()
    expect(most).to_have_value("9")
