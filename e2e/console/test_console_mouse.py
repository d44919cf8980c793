"""The flows of the console by the mouse alone: no test here presses a key, except to type a text into a field."""

import re

from playwright.sync_api import expect

from harness.browser import message
from harness.client import unique
from harness.fake_worker import FakeWorker
from harness.wait import until

WAITING = 3


def test_a_failed_job_is_retried(console, api):
    endpoint = api.external(name="Fails by mouse")
    worker = FakeWorker(endpoint)
    job = endpoint.run({"n": 1})
    worker.done(worker.take()["id"], {"error": "out of memory"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    page.get_by_role("row").filter(has_text=job[-12:]).click()
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(message(page)).to_contain_text("The job is queued again.")
    assert worker.take()["id"] == job
    worker.done(job, {"output": "a harbour"})
    expect(page.get_by_role("region", name="Output")).to_contain_text("a harbour")


def test_the_queue_is_purged(console, api):
    endpoint = api.external(name="Purged by mouse")
    worker = FakeWorker(endpoint)
    running = endpoint.run()
    assert worker.take()["id"] == running
    waiting = [endpoint.run({"n": number}) for number in range(WAITING)]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    expect(page.get_by_role("row").filter(has_text="Queued")).to_have_count(WAITING)
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Purge the queue").click()
    dialog = page.get_by_role("dialog", name=f"Cancel {WAITING} waiting jobs of Purged by mouse?")
    expect(dialog).to_contain_text("1 that runs goes on.")
    # Nothing is cancelled before it is confirmed.
    dialog.get_by_role("button", name="Keep them").click()
    expect(dialog).to_have_count(0)
    assert endpoint.health()["jobs"]["inQueue"] == WAITING
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Purge the queue").click()
    dialog.get_by_role("button", name="Cancel the waiting jobs").click()
    expect(message(page)).to_contain_text(f"{WAITING} jobs are cancelled.")
    expect(page.get_by_role("row").filter(has_text="Cancelled")).to_have_count(WAITING)
    assert {endpoint.status(job)["status"] for job in waiting} == {"CANCELLED"}
    assert endpoint.status(running)["status"] == "IN_PROGRESS"


def test_a_crash_loop_is_explained_and_repaired_by_a_change_of_settings(console, api):
    crashes, works = (api.template(handler, name=unique(name)) for handler, name in (("crash.py", "crashes"), ("echo.py", "works")))
    endpoint = api.endpoint(name="Repaired by mouse", templateId=crashes["id"], workersMax=1)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    page.get_by_role("button", name="Run a job").click()
    page.get_by_label("Input, a JSON object").fill('{"prompt": "a harbour"}')
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="Every worker crashes while it starts")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("main")).to_contain_text("no model file: giving up")
    job = page.url.rsplit("/", 1)[1]
    page.get_by_role("navigation", name="Where you are").get_by_role("link", name="Repaired by mouse").click()
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    page.get_by_label(re.compile("^Template ")).select_option(label=works["name"])
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    row = dialog.get_by_role("row").filter(has_text="templateId")
    expect(row.get_by_role("cell")).to_have_text([crashes["name"], works["name"]])
    dialog.get_by_role("button", name="Save").click()
    expect(message(page)).to_contain_text("The settings are saved.")
    assert endpoint.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
    # The problem is no longer there to attend to.
    page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_have_count(1)
    attention = page.get_by_role("region", name="Attention").filter(has_text="Repaired by mouse")
    until(lambda: attention.count() == 0, "the problem is over", 30)
