"""What is chosen stays chosen when news comes: the row of the keyboard in a list, and what Enter runs in `Ctrl K`."""

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from harness.browser import intercept, key_for
from harness.fake_worker import FakeWorker
from harness.server import Server

ROWS = 30


@pytest.fixture(scope="module")
def server():
    server = Server(flags=("--rate-limits", "off")).start()
    yield server
    server.close()


def marked(page: Page, grid: Locator) -> str | None:
    """The text of the row that the grid names to screen readers as that of the keyboard."""
    return page.evaluate("(id) => document.getElementById(id)?.textContent", grid.get_attribute("aria-activedescendant"))


def found(page: Page) -> Locator:
    """The choices of `Ctrl K`."""
    return page.get_by_role("listbox", name="Found").get_by_role("option")


def test_the_row_of_the_keyboard_stays_at_its_job_when_others_come(console, api):
    endpoint = api.external(name="Moved")
    jobs = [endpoint.run() for _ in range(3)]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    rows, row = page.locator(".vrow"), page.locator(".vrow.at")
    grid = page.get_by_role("grid", name="Requests")
    expect(rows).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(row).to_contain_text(jobs[1][-12:])
    endpoint.run()
    expect(rows).to_have_count(4)
    expect(row).to_contain_text(jobs[1][-12:])
    assert jobs[1][-12:] in marked(page, grid)
    page.keyboard.press("x")
    expect(page.locator(".vrow.chosen")).to_contain_text(jobs[1][-12:])
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(row).not_to_contain_text(jobs[2][-12:])
    page.keyboard.press("j")
    endpoint.run()
    expect(rows).to_have_count(5)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**job={jobs[2]}")


def test_the_row_of_the_keyboard_is_not_lost_from_sight_and_the_pill_leads_to_the_news(console, api):
    endpoint = api.external(name="Pushed down")
    chosen = [endpoint.run() for _ in range(3)][1]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    grid, row = page.get_by_role("grid", name="Requests"), page.locator(".vrow.at")
    expect(grid).to_have_attribute("aria-rowcount", "4")
    page.keyboard.press("j")
    page.keyboard.press("j")
    last = [endpoint.run() for _ in range(ROWS)][-1]
    pill = page.get_by_role("button", name="new", exact=False).and_(page.locator(".pill"))
    # Once it is at the end of what is seen, the list moves no more, and further news waits.
    for _ in range(ROWS):
        if pill.is_visible():
            break
        last = endpoint.run()
        page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(row).to_contain_text(chosen[-12:])
    expect(row).to_be_in_viewport()
    expect(pill).to_be_visible()
    pill.click()
    expect(page.locator(".vrow").filter(has_text=last[-12:])).to_be_in_viewport()
    # A key goes on from the same row, and to it.
    page.keyboard.press("k")
    expect(row).to_be_in_viewport()
    page.keyboard.press("j")
    expect(row).to_contain_text(chosen[-12:])


def test_the_row_of_the_keyboard_stays_at_its_chunk_beside_a_list_of_requests(console, api):
    endpoint = api.external(name="Both lists")
    job, worker = endpoint.run(), FakeWorker(endpoint)
    assert worker.take()["id"] == job
    for word in ("old", "middle", "new"):
        worker.chunk(job, word)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    requests, chunks = page.get_by_role("grid", name="Requests"), page.get_by_role("grid", name="Chunks")
    expect(page.locator(".vrow")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    stream = page.get_by_role("region", name="Stream")
    stream.get_by_role("button", name="Chunks").click()
    expect(chunks.get_by_role("row")).to_have_count(4)
    chunks.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    row = page.locator(".chunk-row.at")
    expect(row).to_contain_text("middle")
    # Each list names a row of its own.
    assert job[-12:] in marked(page, requests)
    assert "middle" in marked(page, chunks)
    assert page.evaluate("() => { const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id); return ids.length - new Set(ids).size; }") == 0
    worker.chunk(job, "newest")
    expect(chunks.get_by_role("row")).to_have_count(5)
    expect(row).to_contain_text("middle")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Chunk 1")
    expect(dialog).to_contain_text("middle")
    # Enter belongs to the dialog now.
    dialog.get_by_role("button", name="Close").last.focus()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    worker.done(job, {"output": None})


def test_what_the_server_finds_comes_behind_what_enter_would_run(console, api):
    endpoint = api.external(name="Lighthouse")
    key_for(api, {"scope": "read"}, name="Lighter")
    page = console().sign_in().page
    held: list[Route] = []
    intercept(page, "**/v1/search?*", lambda route: held.append(route))
    expect(page.get_by_role("main").get_by_text("Lighthouse").first).to_be_visible()
    page.keyboard.press("Control+k")
    field, options = page.get_by_role("combobox", name="Find anything"), found(page)
    with page.expect_request("**/v1/search?*"):
        field.fill("light")
    expect(options.first).to_contain_text("Lighthouse")
    # A page of the console has the word, too.
    known = options.count()
    page.keyboard.press("ArrowDown")
    chosen = options.and_(page.get_by_role("option", selected=True))
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    before = options.all_inner_texts()
    held[0].continue_()
    expect(options).to_have_count(known + 1)
    assert options.all_inner_texts()[:known] == before
    expect(options.last).to_contain_text("Lighter")
    expect(chosen).to_have_text(before[1].replace("\n", ""))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/endpoints/{endpoint.id}")


def test_enter_does_not_run_what_has_taken_the_place_of_the_choice(console, api):
    endpoint = api.external(name="Slipway", workersMax=3)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find anything").fill("slipway")
    options, chosen = found(page), found(page).and_(page.get_by_role("option", selected=True))
    pause = options.filter(has_text="Pause")
    expect(pause).to_be_visible()
    pause.hover()
    expect(chosen).to_contain_text("Pause")
    # Another person pauses it.
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMin": 0, "workersMax": 0})
    expect(options.filter(has_text="Resume")).to_be_visible()
    expect(chosen).to_have_count(0)
    page.keyboard.press("Enter")
    expect(options.filter(has_text="Resume")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_count(1)
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 0
