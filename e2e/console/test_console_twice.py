"""A key that is pressed twice, or held, does once what it is for; and what is shown once stays until it was kept."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from harness.browser import Console, intercept, message
from harness.fake_worker import FakeWorker
from harness.wait import until


@pytest.fixture
def making(console) -> Console:
    """The page of keys with the dialog that makes one."""
    tab = console().sign_in(path="/api-keys")
    tab.page.get_by_role("button", name="Make a key").click()
    return tab


def hold(page: Page, path: str) -> list[Route]:
    """The requests that the page posts to a path from now on, none of which goes on by itself."""
    held: list[Route] = []
    intercept(page, path, lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    return held


def let_go(page: Page, held: list[Route], least: int, before: int = 0) -> int:
    """Lets what was posted after the first `before` go on, when that is `least` requests or more; how many requests it is."""
    # Requests are noticed while something is asked of the browser.
    until(lambda: page.evaluate("1") and len(held) - before >= least, f"{least} requests are sent")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    sent = held[before:]
    for route in sent:
        route.continue_()
    return len(sent)


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


def test_escape_is_an_answer_before_the_question_has_the_focus(making):
    page = making.page
    page.get_by_label("Name", exact=True).fill("not saved")
    # In one task of the page: nothing is drawn between.
    page.evaluate("""async () => {
        const press = () => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
        document.querySelector("dialog").dispatchEvent(new Event("cancel", { cancelable: true }));
        for (let turn = 0; turn < 1000 && !document.querySelector(".unsaved"); turn++) await null;
        press();
        await null;
    }""")
    expect(page.get_by_text("Your changes are not saved.")).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_have_value("not saved")


def test_enter_twice_makes_one_key(making):
    page = making.page
    held = hold(page, "**/v1/apikeys")
    page.get_by_label("Name", exact=True).fill("made once")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert let_go(page, held, 1) == 1
    expect(page.get_by_role("dialog", name="The key “made once”")).to_be_visible()


def test_ctrl_enter_twice_runs_one_job(console, api):
    endpoint = api.external(name="Run once")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    held = hold(page, f"**/v2/{endpoint.id}/run")
    page.get_by_role("button", name="Run a job").click()
    page.get_by_label("Input, a JSON object").fill("{}")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    assert let_go(page, held, 1) == 1
    expect(message(page)).to_contain_text("The job is queued.")


def test_the_playground_runs_one_job_while_ctrl_enter_is_held(console, api):
    endpoint = api.external(name="Played once")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    held = hold(page, f"**/v2/{endpoint.id}/run")
    page.get_by_label("Input, a JSON object").fill("{}")
    page.keyboard.press("Control+Enter")
    page.keyboard.down("Control")
    page.keyboard.down("Enter")
    assert let_go(page, held, 1) == 1
    expect(message(page)).to_contain_text("The job is queued.")
    # Pressed again without having been let go: the browser says that the key repeats.
    page.keyboard.down("Enter")
    assert let_go(page, held, 0, before=1) == 0
    page.keyboard.up("Enter")
    page.keyboard.press("Enter")
    page.keyboard.up("Control")
    expect(page.locator(".play-runs li")).to_have_count(1)
    assert let_go(page, held, 1, before=1) == 1
    expect(page.locator(".play-runs li")).to_have_count(2)


def test_the_first_job_of_an_endpoint_is_run_once(console, api):
    endpoint = api.external(name="Begun once")
    page = console().sign_in(path=f"/new-endpoint?made={endpoint.id}").page
    held = hold(page, f"**/v2/{endpoint.id}/run")
    page.get_by_label("Input, a JSON object").fill("{}")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    assert let_go(page, held, 1) == 1
    expect(page.get_by_role("region", name="First job")).to_be_visible()


def test_escape_in_a_menu_closes_only_the_menu(console, api):
    endpoint = api.external(name="Chosen and kept")
    jobs = [endpoint.run() for _ in range(3)]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    expect(page.get_by_role("row").filter(has_text=jobs[0][-12:])).to_be_visible()
    page.get_by_role("gridcell").first.click(modifiers=["Control"])
    chosen = page.get_by_role("group", name="Chosen jobs")
    expect(chosen).to_contain_text("1 chosen")
    for name, role in (("More", "menu"), ("Signed in as", "group")):
        button = page.get_by_role("button", name=name)
        button.click()
        opened = page.get_by_role(role, name="Signed in" if role == "group" else name, exact=True)
        expect(opened).to_be_visible()
        page.keyboard.press("Escape")
        expect(opened).to_have_count(0)
        expect(button).to_be_focused()
        expect(chosen).to_contain_text("1 chosen")
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)


@pytest.mark.parametrize("key", ["c", "Enter"])
def test_a_key_that_is_held_asks_and_does_not_answer(console, api, key):
    endpoint = api.external(name="Held")
    job = endpoint.run()
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    sent = hold(page, "**/cancel/*")
    cancel, sure = page.get_by_role("button", name="Cancel job"), page.get_by_role("button", name="Sure?")
    expect(cancel).to_be_visible()
    if key == "Enter":
        cancel.focus()
    page.keyboard.down(key)
    expect(sure).to_be_visible()
    # Pressed again without having been let go: the browser says that the key repeats.
    for _ in range(3):
        page.keyboard.down(key)
    expect(sure).to_be_visible()
    assert let_go(page, sent, 0) == 0
    page.keyboard.up(key)
    page.keyboard.press(key)
    expect(sure).to_have_count(0)
    assert let_go(page, sent, 1) == 1
    expect(page.get_by_role("main").get_by_text("Cancelled", exact=True).first).to_be_visible()


def test_a_job_is_retried_once_by_r_that_is_held_or_pressed_twice(console, api):
    endpoint = api.external(name="Retried once")
    job, worker = endpoint.run(), FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.done(job, {"error": "no ship"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    sent = hold(page, "**/retry/*")
    page.keyboard.down("r")
    page.keyboard.down("r")
    page.keyboard.up("r")
    page.keyboard.press("r")
    page.get_by_role("button", name="Retry").click()
    assert let_go(page, sent, 1) == 1
    expect(message(page)).to_contain_text("The job is queued again.")
    expect(page.get_by_role("button", name="Cancel job")).to_be_visible()


def test_j_and_k_go_on_while_they_are_held(console, api):
    endpoint = api.external(name="Gone along")
    jobs = [endpoint.run() for _ in range(4)]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    expect(page.locator(".vrow")).to_have_count(len(jobs))
    for _ in range(3):
        page.keyboard.down("j")
    page.keyboard.up("j")
    expect(page.locator(".vrow.at")).to_contain_text(jobs[1][-12:])


def test_ctrl_k_that_is_held_opens_what_finds_anything(console):
    page = console().sign_in().page
    field = page.get_by_role("combobox", name="Find anything")
    page.keyboard.down("Control")
    page.keyboard.down("k")
    expect(field).to_be_visible()
    page.keyboard.down("k")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(field).to_be_visible()


def test_the_browsers_back_does_not_close_what_is_shown_once(console, api):
    endpoint = api.external(name="Signed")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    tab.forget("dialog: ")
    page = tab.page
    page.get_by_role("navigation", name="Pages of this endpoint").get_by_role("link", name="Webhooks").click()
    page.get_by_role("button", name="Make a secret").click()
    secret = page.get_by_role("dialog", name="The new secret")
    expect(secret).to_be_visible()
    page.go_back()
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(secret).to_be_visible()
    expect(page).to_have_url(re.compile(f"/endpoints/{endpoint.id}/webhooks$"))
    page.get_by_role("button", name="I have kept it").click()
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("button", name="Make a key").click()
    page.get_by_label("Name", exact=True).fill("left behind")
    page.keyboard.press("Enter")
    key = page.get_by_role("dialog", name="The key “left behind”").get_by_text("ls_").first
    expect(key).to_be_visible()
    text = key.inner_text()
    for _ in range(2):
        page.go_back()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        expect(key).to_have_text(text)
    expect(page).to_have_url(re.compile("/api-keys$"))
    # Neither does closing the tab, unless the browser was told that it is meant.
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    expect(key).to_have_text(text)
    page.get_by_role("button", name="I have kept it").click()
    page.go_back()
    expect(page.get_by_role("heading", name="Signing secret")).to_be_visible()
