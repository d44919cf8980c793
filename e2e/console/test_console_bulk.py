"""Many failed jobs are retried as one task, by mouse and by keyboard alone: how many is said before, and how far it is meanwhile."""

import re

import pytest
from playwright.sync_api import Page, expect

from harness.browser import intercept
from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.keyboard import press, walk
from harness.server import Server
from harness.wait import until

FAILED, COMPLETED = 500, 7
# The endpoints of all whose tasks are shown in every tab.
TASKS_OF = 20


@pytest.fixture(scope="module")
def server():
    server = Server(flags=("--rate-limits", "off")).start()
    yield server
    server.close()


@pytest.fixture
def broken(api: Api) -> Endpoint:
    """An endpoint with many failed jobs, and a few that completed."""
    endpoint = api.external(name="Broken")
    worker = FakeWorker(endpoint)
    left = {endpoint.run({"n": number}): number for number in range(FAILED + COMPLETED)}
    while left:
        for job in worker.take_batch(10):
            worker.done(job["id"], {"output": 1} if left.pop(job["id"]) < COMPLETED else {"error": "out of memory"})
    return endpoint


def counts(endpoint: Endpoint) -> dict[str, int]:
    return endpoint.ok("GET", "/requests?counts=true&limit=1")["counts"]


def retry_by_mouse(page: Page) -> None:
    page.get_by_role("button", name=f"Failed {FAILED}").click()
    page.get_by_role("gridcell").first.click(modifiers=["Control"])
    page.get_by_role("button", name=f"All {FAILED} that match").click()
    page.get_by_role("button", name=f"Retry {FAILED}").click()
    page.get_by_role("dialog", name=f"Retry {FAILED} jobs of Broken?").get_by_role("button", name="Retry the jobs").click()


def retry_by_keyboard(page: Page) -> None:
    with page.expect_response(lambda answer: "status=FAILED" in answer.url):
        press(page, "Failed")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name=f"All {FAILED} that match")).to_be_visible()
    press(page, f"All {FAILED} that match")
    expect(page.get_by_role("button", name=f"Retry {FAILED}")).to_be_visible()
    press(page, f"Retry {FAILED}")
    dialog = page.get_by_role("dialog", name=f"Retry {FAILED} jobs of Broken?")
    # Enter alone changes nothing.
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    expect(dialog.get_by_role("button", name="Retry the jobs")).not_to_have_attribute("aria-disabled", "true")
    walk(page, "Retry the jobs")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    # What opened the dialog is gone: Tab goes on in the content.
    expect(page.locator("#content")).to_be_focused()


@pytest.mark.parametrize("retry", [retry_by_mouse, retry_by_keyboard])
def test_500_failed_jobs_are_retried(console, broken, retry):
    page = console().sign_in(path=f"/endpoints/{broken.id}/requests").page
    expect(page.get_by_role("button", name=f"Failed {FAILED}")).to_be_visible()
    retry(page)
    tasks = page.get_by_role("list", name="Tasks")
    expect(tasks.get_by_role("progressbar")).to_have_count(1)
    expect(tasks).to_contain_text(re.compile(f"{FAILED} jobs queued again"))
    assert counts(broken) | {"IN_QUEUE": FAILED, "FAILED": 0, "COMPLETED": COMPLETED} == counts(broken)
    [task] = broken.ok("GET", "/bulk")
    assert (task["do"], task["state"], task["matches"], task["done"], task["failed"]) == ("retry", "completed", FAILED, FAILED, 0), str(task)
    # The chips follow without a reload.
    expect(page.get_by_role("button", name=f"Queued {FAILED}")).to_be_visible()
    # All of them run again, each once.
    worker = FakeWorker(broken)
    ran: list[str] = []

    def ends() -> bool:
        for job in worker.take_batch(100):
            worker.done(job["id"], {"output": 2})
            ran.append(job["id"])
        return len(ran) >= FAILED

    until(ends, "all of them have run", 60)
    assert len(ran) == len(set(ran)) == FAILED
    expect(page.get_by_role("button", name=f"Completed {FAILED + COMPLETED}")).to_be_visible()


def test_a_task_that_cannot_begin_yet_begins_later(console, api):
    """The server runs four tasks of an endpoint at a time."""
    endpoints = [api.external(name=name) for name in ("Begins", "Begins later")]
    for endpoint in endpoints:
        endpoint.run({"mark": "later"})
    refusals = [{"error": "too many tasks run", "code": "too_many_bulk_tasks"}]
    begun: list[str] = []

    def only_one(route) -> None:
        asked = route.request
        if asked.method != "POST" or asked.post_data_json.get("dryRun"):
            return route.continue_()
        if begun and refusals:
            return route.fulfill(status=429, json=refusals.pop())
        begun.append(asked.url)
        return route.continue_()

    tab = console().sign_in(path="/requests?q=input.mark:later")
    tab.forget("429")
    page = tab.page
    intercept(page, "**/bulk", only_one)
    cells = page.get_by_role("grid").get_by_role("row").filter(has_text="Queued")
    expect(cells).to_have_count(2)
    cells.nth(0).click(modifiers=["Control"])
    cells.nth(1).click(modifiers=["Control"])
    page.get_by_role("button", name="Cancel 2").click()
    dialog = page.get_by_role("dialog", name="Cancel 2 jobs of 2 endpoints?")
    dialog.get_by_role("button", name="Cancel the jobs").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 of 2 tasks have begun. The server runs no more at a time")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("list", name="Tasks").get_by_text("1 job cancelled")).to_have_count(2)
    assert len(begun) == 2 and not refusals


def test_a_task_of_any_endpoint_is_shown_where_it_was_begun(console, api):
    template = api.template()["id"]
    for number in range(TASKS_OF):
        api.external(name=f"Before {number}", templateId=template)
    endpoint = api.external(name="Behind many", templateId=template)
    assert [one["id"] for one in api.ok("GET", "/v1/endpoints")].index(endpoint.id) >= TASKS_OF
    endpoint.run()
    page = console().sign_in(path="/requests").page
    page.get_by_role("grid").get_by_role("row").filter(has_text="Behind many").click(modifiers=["Control"])
    page.get_by_role("button", name="Cancel 1").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the jobs").click()
    task = page.get_by_role("list", name="Tasks").get_by_role("listitem").filter(has_text="Behind many: 1 job cancelled")
    expect(task).to_be_visible()
    # Also after another page was shown.
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("heading", name="API keys", level=1)).to_be_visible()
    page.get_by_role("link", name="Requests", exact=True).click()
    expect(task).to_be_visible()
